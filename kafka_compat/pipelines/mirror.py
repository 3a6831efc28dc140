"""Job `mirror`: copy topics from one cluster to another exactly once, partition by partition.

See exact_sink for the exactly-once delivery. A record that came from the target contains the target's name in
a header, and is not sent back: two mirrors in opposite directions do not form a loop.

    DIR/offset_map/N.csv   topic, partition, source_offset, target_offset as batch N began: records at or
                           after source_offset are at or after target_offset
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.checkpoint import Offsets, batch_range
from kafka_compat.pipelines.exact_sink import Ends, Target, write_exactly_once
from kafka_compat.pipelines.job_folder import JobFolder
from kafka_compat.pipelines.kafka_options import named_values
from kafka_compat.pipelines.stream_job import Process, StreamJob, StreamReport, run_stream
from kafka_compat.pipelines.whole_file import write_whole

CLUSTER_HEADER = "kafka-compat-cluster"
"""Header with the name of a record's source cluster. Each mirror job adds one header to a record."""

_NOTHING = {"mirrored_total": 0, "looped_total": 0}


@dataclass(frozen=True, slots=True)
class MirrorJob:
    """Parameters of a mirror. `source` selects the records. Topics have the same names in both clusters.

    `target_options` contains librdkafka properties for the cluster at `target_servers`. With `create`,
    missing topics are created with the source's number of partitions, and missing partitions are added.
    """

    source: StreamJob
    source_name: str
    target_servers: str
    target_name: str
    target_options: Sequence[str] = ()
    create: bool = False


def mirror_rows(rows: Any, source_name: str, target_name: str) -> Any:
    """Convert rows for exact_sink. The column `to_topic` is null for records that came from the target."""
    from pyspark.sql import functions as f

    empty = f.array().cast("array<struct<key: string, value: binary>>")
    headers = f.coalesce(f.col("headers"), empty)
    own = f.struct(f.lit(CLUSTER_HEADER).alias("key"), f.lit(source_name).cast("binary").alias("value"))
    came_from_target = f.exists(
        headers, lambda h: (h["key"] == CLUSTER_HEADER) & (h["value"].cast("string") == target_name)
    )
    return rows.select(
        f.when(~came_from_target, f.col("topic")).alias("to_topic"),
        f.col("partition").alias("to_partition"),
        *("key", "value"),
        f.concat(headers, f.array(own)).alias("headers"),
        "timestamp",
        *(f.col(name).alias(f"{name}_from") for name in ("topic", "partition", "offset")),
    )


def run_mirror(job: MirrorJob) -> StreamReport:
    """Mirror the existing records, or mirror continuously. Raises PipelineError if the job fails."""
    target = Target({"bootstrap.servers": job.target_servers, **named_values(job.target_options)})
    names = [job.source_name, job.target_name]
    folder = job.source.folder("mirror", names=names, to=job.target_servers)

    def process(spark: Any, job_id: str) -> Process:
        return partial(_mirror, job, target, folder, job_id)

    def look_at_target(partitions: Mapping[str, int]) -> None:
        target.look(partitions, create=job.create)

    run = run_stream("mirror", job.source, folder, process, look_at_target=look_at_target)
    mirrored, looped = (folder.recorded(_NOTHING)[name] for name in _NOTHING)
    return StreamReport(
        "mirror",
        run,
        {
            "mirrored_total": mirrored,
            "looped_total": looped,
            "offset_map": str(job.source.directory / "offset_map"),
        },
        f"{run.rows:,} records read in {run.seconds:.1f} s.\n"
        f"In total, {mirrored:,} were mirrored; {looped:,} were omitted, because they came from the target.",
    )


def _mirror(
    job: MirrorJob, target: Target, folder: JobFolder, job_id: str, rows: Any, batch_id: int
) -> dict[str, Any]:
    start, end = batch_range(folder.checkpoint, batch_id)
    wanted = {topic: max(partitions) + 1 for topic, partitions in end.items()}
    target.provide(wanted, create=job.create)
    begun: Ends = folder.begin(batch_id, {"ends": target.ends(sorted(wanted))})["ends"]
    _write_map(folder.directory / "offset_map" / f"{batch_id:012d}.csv", start, begun)
    chosen = mirror_rows(rows, job.source_name, job.target_name)
    done = write_exactly_once(chosen, target, job_id, begun, folder.directory)
    mirrored = done.written + done.written_before
    before = folder.recorded(_NOTHING)
    return {
        "rows": mirrored + done.left_out,
        "mirrored_total": before["mirrored_total"] + mirrored,
        "looped_total": before["looped_total"] + done.left_out,
    }


def _write_map(path: Path, start: Offsets, begun: Ends) -> None:
    """Write a batch's offset map. Retries of the batch write the same map."""
    path.parent.mkdir(exist_ok=True)
    lines = ["topic,partition,source_offset,target_offset"]
    for topic, partitions in sorted(start.items()):
        for part, offset in sorted(partitions.items()):
            if str(part) in begun.get(topic, {}):
                lines.append(f"{topic},{part},{offset},{begun[topic][str(part)]}")
    write_whole(path, ("\n".join(lines) + "\n").encode())
