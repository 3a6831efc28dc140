"""The part of `dedupe` that runs on Spark's executors; it needs pyarrow there."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def keep_first(batches: Iterator[Any], within_ms: int) -> Iterator[Any]:
    """Rows that repeat no row before them.

    Rows come sorted by id; of one id first those that are remembered (their topic is null, and they are not
    given back), then the others by at_ms. A row repeats one that is remembered or was kept when both have its
    id and times at most `within_ms` apart. Memory: a batch, and what is remembered of one id.
    """
    current: bytes | None = None
    remembered: list[int] = []
    last_kept: int | None = None
    for batch in batches:
        keep = []
        columns = (batch.column(name).to_pylist() for name in ("id", "at_ms"))
        known = batch.column("topic").is_null().to_pylist()
        for identity, at_ms, is_known in zip(*columns, known, strict=True):
            if identity != current:
                current, remembered, last_kept = identity, [], None
            if is_known:
                remembered.append(at_ms)
                keep.append(False)
                continue
            repeats = last_kept is not None and at_ms - last_kept <= within_ms
            repeats = repeats or any(abs(at_ms - other) <= within_ms for other in remembered)
            keep.append(not repeats)
            if not repeats:
                last_kept = at_ms
        yield batch.filter(pa.array(keep, pa.bool_()))
