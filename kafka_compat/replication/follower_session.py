"""Follower side of a fetch session (KIP-227). No I/O.

Rules
1. The first request lists all partitions, with epoch 0. If the response has a session ID, later requests list
   only new, changed and removed partitions.
2. After a top-level error or a lost response, the next request again lists all partitions. It contains the ID
   of the old session, so that the leader closes that session.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka_compat.replication.fetch_session import INITIAL_EPOCH, NO_SESSION, PartitionKey

_EPOCH_MAX: Final = 2**31 - 1


class Wanted(NamedTuple):
    """The entry of one partition in a Fetch request."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FollowerSession:
    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self._sent: dict[PartitionKey, Wanted] = {}

    def changes(
        self, wanted: Mapping[PartitionKey, Wanted]
    ) -> tuple[dict[PartitionKey, Wanted], list[PartitionKey]]:
        """Return the entries of the next request: (partitions to fetch, partitions to forget)."""
        sent = self._sent if self.epoch != INITIAL_EPOCH else {}
        named = {key: item for key, item in wanted.items() if sent.get(key) != item}
        forgotten = [key for key in sent if key not in wanted]
        self._sent = dict(wanted)
        return named, forgotten

    def changes_among(self, changed: Mapping[PartitionKey, Wanted]) -> dict[PartitionKey, Wanted]:
        """Return the entries for an incremental request, if no entries other than `changed` have changed."""
        sent = self._sent
        named = {key: item for key, item in changed.items() if sent.get(key) != item}
        sent.update(named)
        return named

    @property
    def is_open(self) -> bool:
        """Whether the next request belongs to a session and omits unchanged partitions."""
        return self.epoch != INITIAL_EPOCH

    def responded(self, session_id: int) -> None:
        """Handle a response without an error."""
        self.session_id = session_id
        if session_id == NO_SESSION:
            self.epoch = INITIAL_EPOCH
        else:
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def lost(self, *, unknown: bool = False) -> None:
        """Handle a lost response or an error. `unknown` is true if the leader does not know the session."""
        if unknown:
            self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
