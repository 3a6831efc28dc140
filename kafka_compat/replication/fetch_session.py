"""Fetch sessions (KIP-227): a client names its partitions once, then only what changed.

Pure. Rules
1. Epoch -1 asks for a full answer outside any session, and ends the session it names.
2. Epoch 0 asks for a full answer and a new session; where the cache has no room, the answer carries session
   id 0.
3. Any other epoch must be the next one of the session it names; it adds, changes and forgets partitions, and
   the answer holds only partitions with records, an error, or a high watermark or log start that the client
   has not seen.
4. A partition that a request names several times is asked for once, as the last one says.
5. A partition that was in an incremental answer goes to the end, so that each gets its turn under a byte
   limit.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka_compat.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafka_compat.replication.partition import Partition

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
_EPOCH_MAX: Final = 2**31 - 1

PartitionKey = tuple[str | int, int]
"""Topic name (Fetch up to 12) or topic id as a number (from 13), and partition. A number, since the hash of a
UUID costs a call of Python, and every fetch looks up its partitions many times.
"""


def partition_key(topic: str | UUID, partition: int) -> PartitionKey:
    return (topic if isinstance(topic, str) else topic.int, partition)


@dataclass(slots=True)
class FetchTarget:
    """One partition as a client wants it, and what it was last told about it."""

    topic: str | UUID
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    told_high_watermark: int = -1
    told_log_start_offset: int = -1
    replica: Partition | None = None
    """The partition that a follower's target was read from."""
    agrees: bool = False
    """Whether the log of `replica` agreed with the follower's up to `fetch_offset`."""
    key: PartitionKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = partition_key(self.topic, self.partition)


Told = list[tuple[FetchTarget, int, int]]
"""High watermarks and log starts that a client knows."""


@dataclass(slots=True)
class FetchSession:
    """One client's session."""

    session_id: int
    uses_topic_ids: bool
    targets: OrderedDict[PartitionKey, FetchTarget]
    next_epoch: int
    last_used_ms: int


@dataclass(slots=True)
class FetchPlan:
    """What a request asks for after sessions are resolved. `incremental` answers leave out what did not
    change.
    """

    session_id: int
    incremental: bool
    targets: list[FetchTarget]
    session: FetchSession | None
    denied: Sequence[FetchTarget] = ()
    """Partitions that are in the request, or in its session, and that the client may not read."""

    def told(self) -> Told:
        """What the client knows, in the order of its partitions, for `take_back`."""
        if self.session is None:
            return []
        return [
            (target, target.told_high_watermark, target.told_log_start_offset)
            for target in self.session.targets.values()
        ]

    def take_back(self, before: Told) -> None:
        """What was to be told since then is not, and the order of the partitions is as it was."""
        for target, high_watermark, log_start_offset in before:
            target.told_high_watermark = high_watermark
            target.told_log_start_offset = log_start_offset
            if self.session is not None and target.key in self.session.targets:
                self.session.targets.move_to_end(target.key)

    def must_answer(
        self, target: FetchTarget, high_watermark: int, log_start_offset: int, notable: bool
    ) -> bool:
        """Whether the answer holds this partition; remembers what the client is told. `notable`: records or
        an error.
        """
        changed = (
            target.told_high_watermark != high_watermark or target.told_log_start_offset != log_start_offset
        )
        target.told_high_watermark = high_watermark
        target.told_log_start_offset = log_start_offset
        if not self.incremental:
            return True
        if (notable or changed) and self.session is not None and target.key in self.session.targets:
            self.session.targets.move_to_end(target.key)
        return notable or changed


class FetchSessionCache:
    """The sessions of one broker, at most `slots` of them."""

    def __init__(self, slots: int, eviction_ms: int) -> None:
        self.slots = slots
        self.eviction_ms = eviction_ms
        self.evictions = 0
        """Sessions that were given up for new ones."""
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """How many partitions there are in all sessions."""
        return sum(len(session.targets) for session in self._sessions.values())

    def plan(
        self,
        session_id: int,
        epoch: int,
        targets: list[FetchTarget],
        forgotten: Iterable[PartitionKey],
        uses_topic_ids: bool,
        now_ms: int,
    ) -> FetchPlan:
        """Resolve a request. Raises KafkaError 70, 71 or 106 as KIP-227 and KIP-516 say."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            session = None
            if len(targets) > 1:
                targets = list({target.key: target for target in targets}.values())
            if epoch == INITIAL_EPOCH and targets:
                session = self._open(targets, uses_topic_ids, now_ms)
            return FetchPlan(session.session_id if session else NO_SESSION, False, targets, session)
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.next_epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        self._update(session, targets, forgotten)
        session.next_epoch = 1 if session.next_epoch == _EPOCH_MAX else session.next_epoch + 1
        session.last_used_ms = now_ms
        if not session.targets:
            del self._sessions[session_id]
            return FetchPlan(NO_SESSION, False, [], None)
        self._sessions.move_to_end(session_id)
        return FetchPlan(session_id, True, list(session.targets.values()), session)

    def targets(self, session_id: int) -> Iterable[FetchTarget]:
        """What a session asks for by itself; nothing where there is none."""
        session = self._sessions.get(session_id)
        return () if session is None else session.targets.values()

    def drop(self, session: FetchSession) -> None:
        """A new session of which the client was not told."""
        self._sessions.pop(session.session_id, None)

    def _update(
        self, session: FetchSession, targets: list[FetchTarget], forgotten: Iterable[PartitionKey]
    ) -> None:
        known = session.targets
        for target in targets:
            old = known.get(target.key)
            if old is not None:
                target.told_high_watermark = old.told_high_watermark
                target.told_log_start_offset = old.told_log_start_offset
                target.replica = old.replica
            known[target.key] = target
        for key in forgotten:
            known.pop(key, None)

    def _open(self, targets: list[FetchTarget], uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        if len(self._sessions) >= self.slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms < self.eviction_ms:
                return None
            del self._sessions[oldest.session_id]
            self.evictions += 1
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = random.randrange(1, 2**31)
        session = FetchSession(
            session_id, uses_topic_ids, OrderedDict((target.key, target) for target in targets), 1, now_ms
        )
        self._sessions[session_id] = session
        return session
