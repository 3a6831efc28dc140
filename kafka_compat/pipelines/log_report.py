"""The report on the logs in data directories, as JSON, tables and text."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.progress import text_table, utc


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """Figures for one partition: sizes in bytes, codecs, and records that retention will delete.

    The broker's next retention check deletes `due_rows`. `next_due_ms` is the time when retention can delete
    the next segment (None: never, by time). `future_rows` counts the records in segments with a timestamp
    more than a day in the future. Such a segment delays its own deletion and that of all later segments.
    """

    topic: str
    partition: int
    rows: int
    size_bytes: int
    raw_bytes: int
    value_bytes_p50: int
    value_bytes_p99: int
    value_bytes_max: int
    codecs: tuple[str, ...]
    due_rows: int
    due_bytes: int
    next_due_ms: int | None
    future_rows: int


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A hot key (as UTF-8 if valid, otherwise hexadecimal), and its `share` of the topic's records."""

    topic: str
    key: str
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class LogReport:
    """The results of a report: lines for partitions and hot keys, the duration, and the paths of plots."""

    partitions: list[PartitionLine]
    keys: list[KeyLine]
    seconds: float
    plots: tuple[Path, ...] = ()
    exit_code: int = 0

    def skew(self, topic: str) -> float:
        """Return the record count of the topic's largest partition divided by the mean. 1.0 means no skew."""
        rows = [line.rows for line in self.partitions if line.topic == topic]
        return max(rows) * len(rows) / sum(rows) if sum(rows) else 1.0

    def size_bytes(self, topic: str) -> int:
        """Return the topic's size on disk, in bytes."""
        return sum(line.size_bytes for line in self.partitions if line.topic == topic)

    @property
    def topics(self) -> list[str]:
        """Sorted names of the topics."""
        return sorted({line.topic for line in self.partitions})

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dict."""
        return {
            "job": "report",
            "seconds": round(self.seconds, 3),
            "plots": [str(path) for path in self.plots],
            "topics": [{"topic": topic, "skew": round(self.skew(topic), 3)} for topic in self.topics],
            "partitions": [asdict(line) for line in self.partitions],
            "hot_keys": [{**asdict(line), "share": round(line.share, 6)} for line in self.keys],
        }

    def tables(self) -> list[list[list[str]]]:
        """Return the tables of partitions, skew by topic, and hot keys. Each table begins with its header."""
        head = ["TOPIC", "PARTITION", "ROWS", "BYTES", "P50", "P99", "MAX", "CODEC", "RATIO", "DUE-ROWS"]
        head += ["NEXT-DUE", "FUTURE-ROWS"]
        partitions = [
            [
                *(p.topic, str(p.partition), str(p.rows), str(p.size_bytes)),
                *(str(p.value_bytes_p50), str(p.value_bytes_p99), str(p.value_bytes_max)),
                *("+".join(p.codecs), f"{p.raw_bytes / max(p.size_bytes, 1):.2f}", str(p.due_rows)),
                *("-" if p.next_due_ms is None else utc(p.next_due_ms), str(p.future_rows)),
            ]
            for p in self.partitions
        ]
        keys = [[k.topic, k.key, str(k.rows), f"{k.share:.2%}"] for k in self.keys]
        return [
            [head, *partitions],
            [["TOPIC", "SKEW"], *([topic, f"{self.skew(topic):.2f}"] for topic in self.topics)],
            [["TOPIC", "KEY", "ROWS", "SHARE"], *keys],
        ]

    def as_text(self) -> str:
        """Return the tables that have rows, as text."""
        shown = [text_table(table[0], table[1:]) for table in self.tables() if len(table) > 1]
        return "\n\n".join(shown) or "No records."
