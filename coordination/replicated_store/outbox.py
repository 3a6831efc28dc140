"""Records of this node on their way to the leader of the quorum, sent again until they are applied."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from kafka_compat.coordination.replicated_store.metadata_log import LogNode
from kafka_compat.coordination.replicated_store.records import RECORD_BYTES_MAX

RETRY_BACKOFF_S = 0.02
RETRY_BACKOFF_S_MAX = 1.0


class Outbox:
    """Sends records in order. Records sent in one pass of the event loop share an append.

    After a failure, all outstanding records are sent again: a record that follows a lost one has no effect.
    """

    def __init__(self, node: LogNode, outstanding: Callable[[], Iterable[bytes]]) -> None:
        """`outstanding` returns the records that have not been applied yet, in order, including new ones."""
        self._node = node
        self._outstanding = outstanding
        self._loop = asyncio.get_running_loop()
        self._is_leader_known = False
        self._unsent: list[bytes] = []
        self._next_flush: asyncio.Handle | None = None
        self._next_try: asyncio.TimerHandle | None = None
        self._backoff_s = RETRY_BACKOFF_S
        self._round = 0
        """Counts the times that everything was sent again. Failures of earlier rounds do not matter."""

    def send(self, record: bytes) -> None:
        """Send a new outstanding record, now or, if there is no leader, as soon as one is known."""
        if not self._is_leader_known or self._next_try is not None:
            return
        self._unsent.append(record)
        if self._next_flush is None:
            self._next_flush = self._loop.call_soon(self._flush)

    def leader_changed(self, is_known: bool) -> None:
        """Send everything again: the earlier leader may not have committed what it took."""
        self._is_leader_known = is_known
        self._backoff_s = RETRY_BACKOFF_S
        self._drop_plans()
        if is_known:
            self.send_again()

    def send_again(self) -> None:
        """Send all outstanding records again, at once."""
        self._drop_plans()
        if not self._is_leader_known:
            return
        self._unsent.extend(self._outstanding())
        if self._unsent:
            self._next_flush = self._loop.call_soon(self._flush)

    def applied(self) -> None:
        """A record was applied, so appends succeed."""
        self._backoff_s = RETRY_BACKOFF_S

    def close(self) -> None:
        """Send nothing any more."""
        self._is_leader_known = False
        self._drop_plans()

    def _drop_plans(self) -> None:
        self._round += 1
        self._unsent.clear()
        if self._next_flush is not None:
            self._next_flush.cancel()
            self._next_flush = None
        if self._next_try is not None:
            self._next_try.cancel()
            self._next_try = None

    def _flush(self) -> None:
        self._next_flush = None
        records, self._unsent = self._unsent, []
        batch: list[bytes] = []
        size_bytes = 0
        for record in records:
            if batch and size_bytes + len(record) > RECORD_BYTES_MAX:
                self._append(batch)
                batch, size_bytes = [], 0
            batch.append(record)
            size_bytes += len(record)
        if batch:
            self._append(batch)

    def _append(self, batch: list[bytes]) -> None:
        self._node.append(batch, partial(self._failed, self._round))

    def _failed(self, sent_in: int) -> None:
        if sent_in != self._round or not self._is_leader_known:
            return
        self._drop_plans()
        self._next_try = self._loop.call_later(self._backoff_s, self.send_again)
        self._backoff_s = min(2 * self._backoff_s, RETRY_BACKOFF_S_MAX)
