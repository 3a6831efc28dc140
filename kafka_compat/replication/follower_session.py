"""The follower's half of a fetch session (KIP-227). Pure.

Rules
1. The first request names all partitions with epoch 0; where the answer gives a session id, later ones name
   only partitions that are new or asked for otherwise than before, and those that are no longer wanted.
2. After an error of the whole answer, or a lost one, the next request is a first one again; it names the old
   session so that the leader drops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka_compat.replication.fetch_session import INITIAL_EPOCH, NO_SESSION, PartitionKey

_EPOCH_MAX: Final = 2**31 - 1


class Wanted(NamedTuple):
    """What a follower asks for of one partition. Offsets and epochs as in Fetch."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FollowerSession:
    """See the rules above."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self._told: dict[PartitionKey, Wanted] = {}

    def changes(
        self, wanted: Mapping[PartitionKey, Wanted]
    ) -> tuple[dict[PartitionKey, Wanted], list[PartitionKey]]:
        """What the next request names: (partitions to fetch, partitions to forget)."""
        told = self._told if self.epoch != INITIAL_EPOCH else {}
        named = {key: item for key, item in wanted.items() if told.get(key) != item}
        forgotten = [key for key in told if key not in wanted]
        self._told = dict(wanted)
        return named, forgotten

    def changes_among(self, changed: Mapping[PartitionKey, Wanted]) -> dict[PartitionKey, Wanted]:
        """As `changes`, when only these of the partitions can be wanted otherwise than before, and none is no
        longer wanted; not for a first request.
        """
        told = self._told
        named = {key: item for key, item in changed.items() if told.get(key) != item}
        told.update(named)
        return named

    @property
    def is_open(self) -> bool:
        """Whether the next request is one of a session, in which unchanged partitions need no name."""
        return self.epoch != INITIAL_EPOCH

    def answered(self, session_id: int) -> None:
        """The request was carried out."""
        self.session_id = session_id
        if session_id == NO_SESSION:
            self.epoch = INITIAL_EPOCH
        else:
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def lost(self, *, unknown: bool = False) -> None:
        """The answer was lost or an error; `unknown`: the leader does not have the session."""
        if unknown:
            self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
