"""Job `latest`: maintain a table of the latest record of each key in a changelog topic.

A record without a value deletes its key.

    DIR/latest                   a link to the table as of the last finished batch
    DIR/versions/N-RUN/table     Parquet: the records, one per topic and key
    DIR/versions/N-RUN/deleted   keys whose latest record has no value

A batch writes a new version of the table to its own directory, commits its name, and then points the link at
the directory. A repeated merge of a batch has no effect, so a crash at any moment costs only time.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.archive import COLUMNS
from kafka_compat.pipelines.decode.decoding import DecodeSettings, Decoding
from kafka_compat.pipelines.job_folder import JobFolder
from kafka_compat.pipelines.replay import archive_schema
from kafka_compat.pipelines.stream_job import Process, StreamJob, StreamReport, run_stream
from kafka_compat.pipelines.versions import Versions

_NOTHING = {"keys": 0, "deleted": 0, "without_key": 0}
_PLACE = ("partition", "offset")


def merge_latest(before: Any, rows: Any) -> Any:
    """Return the latest record of each topic and key in `before` and `rows`, which have the source's columns.

    The latest record has the highest partition and offset. Records without a value are kept, because they
    must replace earlier records. Records in `rows` without a key are dropped.
    """
    from pyspark.sql import functions as f

    everything = before.select(*COLUMNS).unionByName(rows.select(*COLUMNS).where("key IS NOT NULL"))
    return (
        everything.groupBy("topic", "key")
        .agg(f.max_by(f.struct(*COLUMNS), f.struct(*_PLACE)).alias("latest"))
        .select("latest.*")
    )


def run_latest(job: StreamJob, decode: DecodeSettings | None = None) -> StreamReport:
    """Update the table, once or continuously. `decode` adds columns with decoded values. Raises PipelineError
    if the job fails.
    """
    folder = job.folder("latest")
    decoding = None if decode is None else Decoding(decode, one_schema=True)

    def show() -> None:
        _show(folder)

    def merger(spark: Any, _: str) -> Process:
        # Switch the link now, because an earlier run may have ended between its commit and the switch.
        show()
        return partial(_merge, spark, folder, decoding)

    check = None if decoding is None else decoding.check
    run = run_stream("latest", job, folder, merger, committed=show, look_at_target=check)
    keys, deleted, without_key = (folder.recorded(_NOTHING)[name] for name in _NOTHING)
    table = job.directory / "latest"
    undecoded = folder.recorded({}).get("undecoded", 0)
    bad = f"\n{undecoded:,} values could not be decoded: the column decode_error has the reason."
    return StreamReport(
        "latest",
        run,
        {
            "table": str(table),
            "keys": keys,
            "deleted": deleted,
            "without_key": without_key,
            **({} if decode is None else {"undecoded": undecoded}),
        },
        f"{run.rows:,} records read in {run.seconds:.1f} s.\n"
        f"{table} holds {keys:,} keys; {deleted:,} are deleted; "
        f"{without_key:,} records had no key and were omitted.{bad if undecoded else ''}",
    )


def _merge(
    spark: Any, folder: JobFolder, decoding: Decoding | None, rows: Any, batch_id: int
) -> dict[str, Any]:
    last, versions = folder.last(), Versions(folder.directory)
    schema = archive_schema()
    before = spark.createDataFrame([], schema)
    if last is not None:
        paths = [versions.path(last[1]["version"], table) for table in ("table", "deleted")]
        before = spark.read.schema(schema).parquet(*paths)
    name = versions.new(batch_id)
    merged = merge_latest(before, rows).persist()
    try:
        table, undecoded = merged.where("value IS NOT NULL"), {}
        if decoding is not None:
            # Decode all values again: the newest schema may have changed since the last batch.
            table = decoding.added(table)
        table.write.parquet(versions.path(name, "table"))
        if decoding is not None:
            written = versions.table(name, "table", ["decode_error"]).column("decode_error")
            undecoded = {"undecoded": len(written) - written.null_count}
        merged.where("value IS NULL").write.parquet(versions.path(name, "deleted"))
        keys, everything = merged.where("value IS NOT NULL").count(), merged.count()
    finally:
        merged.unpersist()
    count, without_key = rows.selectExpr("count(*)", "count_if(key IS NULL)").collect()[0]
    return {
        "version": name,
        "rows": count,
        "keys": keys,
        "deleted": everything - keys,
        "without_key": without_key + (last[1]["without_key"] if last else 0),
        **undecoded,
    }


def _show(folder: JobFolder) -> None:
    """Link the committed version. Keep the previous version, which may be in use, and delete all others."""
    last = folder.last()
    if last is None:
        return
    name = last[1]["version"]
    link, scratch = folder.directory / "latest", folder.directory / "_latest.new"
    shown = Path(os.readlink(link)).parent.name if link.is_symlink() else name
    if shown != name or not link.is_symlink():
        scratch.unlink(missing_ok=True)
        scratch.symlink_to(os.path.join("versions", name, "table"))
        os.replace(scratch, link)
    Versions(folder.directory).forget_all_but((name, shown))
