"""Log directories written by Apache Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.interop import dataset
from tests.interop.contents import Contents

FEW_INTERNAL_PARTITIONS = {
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "3",
}


@dataclass
class GenuineFolders:
    """Two copies of a log directory, after kill -9 and after a clean stop, and the content that Apache Kafka
    served.
    """

    after_kill: Path
    after_clean_stop: Path
    contents: Contents
    broker_id: int
    producer: tuple[int, int]
    """The id and epoch of an idempotent producer whose records 0 to 9 are in the topic "sequences"."""


ALL_TOPICS = {**dataset.TOPICS, **dataset.TRANSACTIONAL_TOPICS, "cleaned": (1, dataset.CLEANED)}


def is_cleaned(log_dir: Path, topic: str) -> bool:
    """Return whether the cleaner has cleaned all segments except the active one."""
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    active = max(int(file.stem) for file in (log_dir / f"{topic}-0").glob("*.log"))
    return checkpoint.exists() and f"{topic} 0 {active}\n" in checkpoint.read_text()
