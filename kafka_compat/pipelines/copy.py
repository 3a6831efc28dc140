"""Job `copy`: copy topics with all fields of their records, exactly once, in Kafka transactions.

Executors write the records, in one transaction for each source partition of a batch (see the rules in
transactional_writer). The driver therefore does not limit the throughput, and partitions do not wait for each
other. A batch becomes visible partition by partition.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka_compat.pipelines import transactional_writer
from kafka_compat.pipelines.checkpoint import Offsets, batch_range
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.exact_sink import Target, target_of
from kafka_compat.pipelines.executors import send_code_to_executors
from kafka_compat.pipelines.job_folder import JobFolder
from kafka_compat.pipelines.kafka_options import source_options
from kafka_compat.pipelines.stream_job import Process, StreamJob, StreamReport, run_stream

_NOTHING = {"copied_total": 0}
_SPLITTING = ("minPartitions", "maxRecordsPerPartition")


@dataclass(frozen=True, slots=True)
class CopyJob:
    """Parameters of a copy. `source` selects the records.

    If `to_topic` is None, the topics keep their names, and the target must be a different cluster. If
    `target_servers` is None, the target is the source cluster. `target_options` contains librdkafka
    properties. With `create`, missing topics are created and missing partitions added. `group` is the
    consumer group for the tokens. If it is None, it is named after the job's ID.
    """

    source: StreamJob
    to_topic: str | None = None
    target_servers: str | None = None
    target_options: Sequence[str] = ()
    create: bool = False
    group: str | None = None


def run_copy(job: CopyJob) -> StreamReport:
    """Copy the existing records, or copy continuously. Raises PipelineError if the job fails."""
    options = source_options(job.source.kafka_options)
    _check(job, options)
    target = target_of(job.source, job.target_servers, job.target_options)
    folder = job.source.folder("copy", to_topic=job.to_topic, target=job.target_servers, group=job.group)
    counts = {"copied": 0, "skipped": 0}
    named = {"group": job.group or ""}

    def process(spark: Any, job_id: str) -> Process:
        named["group"] = job.group or f"kafka-compat-copy-{job_id}"
        return partial(_copy, job, target, folder, named["group"], counts)

    def look_at_target(partitions: Mapping[str, int]) -> None:
        target.look(_wanted(job, partitions), create=job.create)

    source = _read_committed(job.source)
    run = run_stream("copy", source, folder, process, look_at_target=look_at_target)
    total = folder.recorded(_NOTHING)["copied_total"]
    rate = run.rows / max(run.seconds, 1e-3)
    return StreamReport(
        "copy",
        run,
        {**counts, "copied_total": total, **named},
        f"{counts['copied']:,} records copied in {run.seconds:.1f} s ({rate:,.0f} records/s); "
        f"{counts['skipped']:,} had been copied by an interrupted run.\n"
        f"In total, {total:,} were copied. The group {named['group']} has the job's position.",
    )


def write_in_transactions(rows: Any, plan: transactional_writer.Slices) -> tuple[int, int]:
    """Write a batch, and return the numbers of copied and skipped records. Each Kafka partition must be one
    Spark partition.
    """
    send_code_to_executors()
    write = partial(transactional_writer.write_slice, plan=plan)
    chosen = rows.select(*transactional_writer.COLUMNS)
    done = chosen.mapInArrow(write, transactional_writer.DONE_SCHEMA).collect()
    return sum(row["copied"] for row in done), sum(row["skipped"] for row in done)


def _wanted(job: CopyJob, partitions: Mapping[str, int]) -> dict[str, int]:
    wanted: dict[str, int] = {}
    for topic, count in partitions.items():
        name = job.to_topic or topic
        wanted[name] = max(wanted.get(name, 0), count)
    return wanted


def _copy(
    job: CopyJob,
    target: Target,
    folder: JobFolder,
    group: str,
    counts: dict[str, int],
    rows: Any,
    batch_id: int,
) -> dict[str, Any]:
    start, end = batch_range(folder.checkpoint, batch_id)
    wanted = _wanted(job, {topic: max(partitions) + 1 for topic, partitions in end.items()})
    target.provide(wanted, create=job.create)
    plan = transactional_writer.Slices(
        dict(target.properties), group, job.to_topic, job.target_servers is None, end
    )
    if folder.begun(batch_id) is None:
        _place_tokens(plan, start)
        folder.begin(batch_id, {"tokens": "placed"})
    copied, skipped = write_in_transactions(rows, plan)
    counts["copied"] += copied
    counts["skipped"] += skipped
    before = folder.recorded(_NOTHING)["copied_total"]
    return {"rows": copied + skipped, "copied_total": before + copied + skipped}


def _place_tokens(plan: transactional_writer.Slices, start: Offsets) -> None:
    """Before the first attempt to write a batch, commit its start offsets for partitions without a token.

    Tokens of new or long idle partitions are missing. The target does not contain records of the batch yet,
    so the start offsets are correct. If a token is missing in a later attempt, it has expired, and the
    partition's writer aborts.
    """
    from confluent_kafka import Consumer

    own = {"enable.auto.commit": "false", "isolation.level": "read_committed"}
    for topic, partitions in plan.ends.items():
        group, _ = plan.token(topic, 0)
        consumer = Consumer({"log_level": "2", **plan.properties, **own, "group.id": group})
        try:
            missing = []
            for partition in partitions:
                _, token = plan.token(topic, partition)
                if transactional_writer.committed_token(consumer, token) is None:
                    token.offset = start.get(topic, {}).get(partition, 0)
                    missing.append(token)
            if missing:
                consumer.commit(offsets=missing, asynchronous=False)
        finally:
            consumer.close()


def _check(job: CopyJob, options: dict[str, str]) -> None:
    """Raise NotStarted if the job would copy a topic to itself, or split a partition into several tasks."""
    import re

    for name in _SPLITTING:
        if name in options:
            raise NotStarted(f"--kafka-option {name}: copy writes each partition by one task.")
    if job.target_servers is None:
        if job.to_topic is None:
            raise NotStarted("Give --to-topic, or another cluster with --target.")
        pattern = job.source.pattern
        if job.to_topic in job.source.topics or (pattern and re.fullmatch(pattern, job.to_topic)):
            raise NotStarted(f"{job.to_topic} would be copied into itself.")


def _read_committed(source: StreamJob) -> StreamJob:
    """Return the source with isolation level read_committed, unless the user set the isolation level."""
    from dataclasses import replace

    if any("isolation.level=" in option for option in source.kafka_options):
        return source
    return replace(source, kafka_options=[*source.kafka_options, "isolation.level=read_committed"])
