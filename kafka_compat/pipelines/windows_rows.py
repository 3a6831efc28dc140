"""Transform DataFrames for `windows`: validate rows, and count them by window. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

REASON_HEADER = "kafka-compat-reason"
DETAIL_HEADER = "kafka-compat-detail"
DECODED_COLUMNS = ("parsed", "schema_id", "decode_error")
"""Columns of rows whose values were decoded with a schema registry."""
_CORRUPT = "_corrupt"


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """An aggregation of record values, by window and group.

    `schema` (in SQL: "carrier STRING, distance DOUBLE") describes a value; it is empty if values are decoded
    with a schema registry. `format` is json, csv, avro or protobuf. In CSV,
    `null_text` stands for a missing value. `time` is the column with a record's time (default: the record's
    timestamp). Windows have a length of `window_ms`. Rows are grouped by `group_by`; `sums`, `minima` and
    `maxima` are columns to aggregate. `checks` contains SQL conditions over the columns that must be true. A
    window stays open until the watermark is `lateness_ms` past the window's end.
    """

    schema: str
    window_ms: int
    lateness_ms: int
    format: str = "json"
    null_text: str = ""
    time: str | None = None
    group_by: Sequence[str] = ()
    sums: Sequence[str] = ()
    minima: Sequence[str] = ()
    maxima: Sequence[str] = ()
    checks: Sequence[str] = ()

    @property
    def keys(self) -> list[str]:
        """Columns that identify a window and its group."""
        return ["window_start_ms", *self.group_by]


def judge(rows: Any, query: WindowQuery, watermark_ms: int | None) -> Any:
    """Return the source's rows with the columns `parsed`, `at_ms`, `window_start_ms` and `reason` added. Rows
    that were decoded with a schema registry have `parsed` and `decode_error` already.

    `reason` is null for a valid row, or says why the row is invalid or late.
    """
    from pyspark.sql import functions as f

    decoded = "decode_error" in rows.columns
    text = f.col("value").cast("string")
    if not decoded:
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "nullValue": query.null_text}
        schema = f"{query.schema}, {_CORRUPT} STRING"
        parse = f.from_json if query.format == "json" else f.from_csv
        rows = rows.withColumn("parsed", parse(text, schema, options))
    stamp = f.col("timestamp")
    if query.time is not None:
        stamp = f.expr(f"try_cast(parsed.`{query.time}` AS TIMESTAMP)")
    at = f.unix_millis(stamp)
    rows = rows.withColumn("at_ms", at)
    rows = rows.withColumn("window_start_ms", f.col("at_ms") - f.pmod(f.col("at_ms"), f.lit(query.window_ms)))
    structure = [
        f.when(f.col("value").isNull(), f.lit("no value")),
        *([] if decoded else _misfits(query, text)),
        f.when(
            f.col("decode_error" if decoded else f"parsed.{_CORRUPT}").isNotNull(),
            f.lit(f"not {query.format} of the schema"),
        ),
        f.when(f.col("at_ms").isNull(), f.lit(f"{query.time}: no time")),
    ]
    rows = rows.withColumn("reason", f.coalesce(*structure))
    content = [
        f.when(~f.coalesce(f.expr(check), f.lit(False)), f.lit(f"not so: {check}")) for check in query.checks
    ]
    if watermark_ms is not None:
        closed = f.col("__window_start_ms") + query.window_ms + query.lateness_ms <= watermark_ms
        content.append(f.when(closed, f.lit("late: its window is closed")))
    # Rename the source's columns: checks refer to the value's columns, which may have the same names.
    hidden = rows.select(*(f.col(name).alias(f"__{name}") for name in rows.columns), "parsed.*")
    others = [name for name in rows.columns if name != "reason"]
    return hidden.select(
        *(f.col(f"__{name}").alias(name) for name in others), f.coalesce("__reason", *content).alias("reason")
    )


def count_by_window(good: Any, query: WindowQuery) -> Any:
    """Aggregate valid rows by window and group. The columns are the keys, rows, sum_…, min_… and max_…."""
    from pyspark.sql import functions as f

    types = {field.name: field.dataType.typeName() for field in good.schema["parsed"].dataType.fields}

    def total(name: str) -> Any:
        kind = types[name]
        wide = "decimal(38,6)" if kind == "decimal" else "double" if kind in ("double", "float") else "bigint"
        return f.sum(f.col(f"parsed.`{name}`").cast(wide)).alias(f"sum_{name}")

    groups = [f.col(f"parsed.`{name}`").alias(name) for name in query.group_by]
    return good.groupBy("window_start_ms", *groups).agg(
        f.count("*").alias("rows"),
        *(total(name) for name in query.sums),
        *(f.min(f"parsed.`{name}`").alias(f"min_{name}") for name in query.minima),
        *(f.max(f"parsed.`{name}`").alias(f"max_{name}") for name in query.maxima),
    )


def merge(before: Any, added: Any, query: WindowQuery) -> Any:
    """Merge two tables from `count_by_window`. The column `changed` marks the rows that `added` changed."""
    from pyspark.sql import functions as f

    both = before.withColumn("changed", f.lit(False)).unionByName(added.withColumn("changed", f.lit(True)))
    merged = both.groupBy(*query.keys).agg(
        f.max("changed").alias("changed"),
        f.sum("rows").alias("rows"),
        *(f.sum(f"sum_{name}").alias(f"sum_{name}") for name in query.sums),
        *(f.min(f"min_{name}").alias(f"min_{name}") for name in query.minima),
        *(f.max(f"max_{name}").alias(f"max_{name}") for name in query.maxima),
    )
    kinds = {field.name: field.dataType for field in before.schema.fields}
    return merged.select("changed", *(f.col(name).cast(kind).alias(name) for name, kind in kinds.items()))


def dead_letters(bad: Any, topic: str) -> Any:
    """Convert invalid rows to rows for exact_sink, and add a header with the reason. If values were decoded
    with a schema registry, add a second header with the decoder's message.
    """
    from pyspark.sql import functions as f

    empty = f.array().cast("array<struct<key: string, value: binary>>")
    header = f.struct(f.lit(REASON_HEADER).alias("key"), f.col("reason").cast("binary").alias("value"))
    added = f.array(header)
    if "decode_error" in bad.columns:
        detail = f.struct(
            f.lit(DETAIL_HEADER).alias("key"), f.col("decode_error").cast("binary").alias("value")
        )
        added = f.when(f.col("decode_error").isNotNull(), f.array(header, detail)).otherwise(added)
    return bad.select(
        f.lit(topic).alias("to_topic"),
        f.col("partition").alias("to_partition"),
        *("key", "value"),
        f.concat(f.coalesce(f.col("headers"), empty), added).alias("headers"),
        "timestamp",
        *(f.col(name).alias(f"{name}_from") for name in ("topic", "partition", "offset")),
    )


def results(lines: Any, query: WindowQuery, topic: str, partitions: int, batch_id: int) -> Any:
    """Return table rows as rows for exact_sink, in JSON, keyed by window and group.

    Only the last record of a key is valid. `latest` and compacted topics keep that record.
    """
    from pyspark.sql import functions as f

    start = f.timestamp_millis("window_start_ms")
    shown = f.date_format(start, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").alias("window_start")
    end = f.timestamp_millis(f.col("window_start_ms") + query.window_ms)
    shown_end = f.date_format(end, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").alias("window_end")
    others = [name for name in lines.columns if name not in ("window_start_ms", "changed")]
    whole = {"ignoreNullFields": "false"}
    key = f.to_json(f.struct(shown, *query.group_by), whole)
    value = f.to_json(f.struct(shown, shown_end, *others), whole)
    return lines.select(
        f.lit(topic).alias("to_topic"),
        f.pmod(f.xxhash64(key), f.lit(partitions)).cast("int").alias("to_partition"),
        key.cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        f.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
        start.alias("timestamp"),
        key.alias("topic_from"),
        f.lit(0).alias("partition_from"),
        f.lit(batch_id).cast("bigint").alias("offset_from"),
    )


def _misfits(query: WindowQuery, text: Any) -> list[Any]:
    """Return an expression for each JSON field: a reason if its value has the wrong type, otherwise null."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    if query.format != "json":
        return []
    return [
        f.when(
            f.col(f"parsed.`{field.name}`").isNull()
            & f.get_json_object(text, f"$['{field.name}']").isNotNull(),
            f.lit(f"{field.name}: not {field.dataType.simpleString()}"),
        )
        for field in StructType.fromDDL(query.schema).fields
    ]
