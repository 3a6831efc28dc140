"""Read offset ranges from Spark's checkpoint. Spark stores a batch's range before it first runs the batch."""

import json
from pathlib import Path

Offsets = dict[str, dict[int, int]]
"""An offset for each topic and partition."""


def batch_range(checkpoint: Path, batch_id: int) -> tuple[Offsets, Offsets]:
    """Return the start (inclusive) and end (exclusive) offsets of a batch of a query with one Kafka source.

    A partition that was created during the batch has only an end offset.
    """
    if batch_id == 0:
        start = _json_at_end((checkpoint / "sources" / "0" / "0").read_bytes())
    else:
        start = _logged(checkpoint, batch_id - 1)
    return start, _logged(checkpoint, batch_id)


def next_offsets(checkpoint: Path) -> Offsets:
    """Return the start offsets of the next new batch, or {} before the first run."""
    folder = checkpoint / "offsets"
    batches = [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return _logged(checkpoint, max(batches)) if batches else {}


def committed_offsets(checkpoint: Path) -> Offsets:
    """Return the end offsets of the last finished batch, or {} if no batch is finished."""
    folder = checkpoint / "commits"
    batches = [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return _logged(checkpoint, max(batches)) if batches else {}


def _logged(checkpoint: Path, batch_id: int) -> Offsets:
    """Read an offset log entry: a version, the query's metadata, and one line of JSON per source."""
    return _json_at_end((checkpoint / "offsets" / str(batch_id)).read_bytes().rstrip(b"\n").splitlines()[-1])


def _json_at_end(data: bytes) -> Offsets:
    begin = data.index(b"{")
    topics = json.loads(data[begin:])
    return {topic: {int(p): offset for p, offset in parts.items()} for topic, parts in topics.items()}
