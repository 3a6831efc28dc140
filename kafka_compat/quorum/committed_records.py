"""Application of committed records: reads them from the metadata log, in steps, and passes them to the store.

Rules
1. Records are applied in order, each once, and only below the high watermark. `applied` is always the end of
   a batch.
2. Work on the event loop yields after TURN_S. A step that has begun is finished before a snapshot replaces
   everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Final

from kafka_compat.coordination.raft.values import OffsetAndEpoch

if TYPE_CHECKING:
    from kafka_compat.coordination.replicated_store.metadata_log import LogApplication
    from kafka_compat.quorum.batches import CommittedBatch
    from kafka_compat.quorum.checkpoints import Checkpoints
    from kafka_compat.quorum.metadata_log import MetadataLog

TURN_S: Final = 0.004
"""Time in seconds after which applying records yields to the event loop."""
_READ_BYTES: Final = 256 * 1024


class CommittedRecords:
    """The records that the store of this node has applied, and those that it is about to apply."""

    def __init__(
        self,
        metadata_log: MetadataLog,
        checkpoints: Checkpoints,
        application: LogApplication,
        applied: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`applied` is called when all known committed records are applied, and `failed` after an error."""
        self._log = metadata_log
        self._checkpoints = checkpoints
        self._application = application
        self._on_applied = applied
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self.applied = OffsetAndEpoch(0, 0)
        """The end of the applied records."""
        self.bytes_since_snapshot = 0
        """Size of the records applied since the last snapshot."""
        self._high_watermark = 0
        self._snapshot: OffsetAndEpoch | None = None
        self._steps: Generator[None, None, None] | None = None
        self._scheduled: asyncio.Handle | None = None
        self._closed = False

    @property
    def is_idle(self) -> bool:
        """Whether everything that is known to be committed is applied."""
        return self._steps is None and self._scheduled is None

    def committed(self, high_watermark: int) -> None:
        """Apply the records below the high watermark soon."""
        self._high_watermark = max(self._high_watermark, high_watermark)
        self._soon()

    def restore(self, snapshot: OffsetAndEpoch) -> None:
        """Replace everything with a snapshot on disk soon, before any later record."""
        self._snapshot = snapshot
        self._high_watermark = max(self._high_watermark, snapshot.offset)
        self._soon()

    def close(self) -> None:
        """Apply nothing any more."""
        self._closed = True
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _soon(self) -> None:
        if self._scheduled is None and not self._closed:
            self._scheduled = self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = None
        if self._steps is None:
            self._steps = self._work()
        end_s = self._loop.time() + TURN_S
        try:
            for _ in self._steps:
                if self._loop.time() > end_s:
                    self._soon()
                    return
            self._steps = None
            self._on_applied()
        except Exception as error:
            self._closed = True
            self._failed(error)

    def _work(self) -> Generator[None, None, None]:
        while True:
            if self._snapshot is not None:
                snapshot, self._snapshot = self._snapshot, None
                if snapshot.offset > self.applied.offset:
                    yield from self._application.restore(snapshot.offset, self._checkpoints.records(snapshot))
                    self.applied = snapshot
                    self.bytes_since_snapshot = 0
            elif self.applied.offset < self._high_watermark:
                for batch in self._committed():
                    if batch.records:
                        yield from self._application.apply(batch.records)
                    self.applied = OffsetAndEpoch(batch.end_offset, batch.epoch)
                    self.bytes_since_snapshot += batch.size_bytes
                    yield
                    if self._snapshot is not None:
                        break
            else:
                return

    def _committed(self) -> Iterator[CommittedBatch]:
        return self._log.committed(self.applied.offset, _READ_BYTES, self._high_watermark)
