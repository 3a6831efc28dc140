"""Fetch sessions (KIP-227): the first request lists all partitions, and later requests list only changes. No
I/O.

Rules
1. Epoch -1 requests a full response without a session, and closes the session with the request's session ID.
2. Epoch 0 requests a full response and a new session, even if no partition is listed. The session is opened
   with the response, so a throttled request opens none. If the cache is full, the response has session ID 0.
3. Any other epoch must be the next epoch of the session with the request's session ID. The request adds,
   changes and forgets partitions. The response contains only partitions with records, an error, or a high
   watermark or log start that the client has not seen. A session without partitions is closed, and the
   request is processed without a session.
4. A partition that occurs several times in a request is fetched once, as specified by its last entry.
5. A partition whose records were in an incremental response moves to the end of the session, so that a byte
   limit does not prevent other partitions from being read.
6. If the cache is full, a new session replaces the least recently used session, if that has been unused for
   longer than the eviction time. Otherwise it replaces the session with the lowest priority, unless the new
   session has a lower priority. Sessions of followers have the highest priority, then sessions with more
   partitions. A client's session replaces only sessions that are older than the eviction time; a follower's
   session also replaces newer sessions of clients.
7. A session remembers the names of its topic IDs, so that its client can tell a deleted topic from an ID that
   was never known.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka_compat.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafka_compat.protocol.messages.fetch import PartitionData
    from kafka_compat.replication.partition import Partition

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
_EPOCH_MAX: Final = 2**31 - 1

PartitionKey = tuple[str | int, int]
"""The topic name (Fetch up to version 12) or topic ID (later versions), and the partition. The ID is a
number, because hashing a UUID calls Python code and each fetch looks up its partitions many times.
"""
Worth = tuple[bool, int, int]
"""The priority of a session: whether it is a follower's, the number of its partitions, and its ID."""


def partition_key(topic: str | UUID, partition: int) -> PartitionKey:
    return (topic if isinstance(topic, str) else topic.int, partition)


class FetchTarget:
    """One partition that a client fetches, and the offsets last sent to the client."""

    __slots__ = (
        "agrees",
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "name",
        "partition",
        "replica",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: str | UUID,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.name: str | None = None
        """The name that belonged to the topic ID in the last request, also after the topic's deletion."""
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.replica: Partition | None = None
        """The partition from which a follower's target was last read."""
        self.agrees = False
        """Whether the log of `replica` matched the follower's log up to `fetch_offset`."""
        self.key = (topic if isinstance(topic, str) else topic.int, partition)


class FetchSession:
    """The fetch session of one client."""

    __slots__ = (
        "created_ms",
        "is_old",
        "is_privileged",
        "last_used_ms",
        "next_epoch",
        "session_id",
        "targets",
        "uses_topic_ids",
        "worth",
    )

    def __init__(
        self,
        session_id: int,
        is_privileged: bool,
        uses_topic_ids: bool,
        targets: OrderedDict[PartitionKey, FetchTarget],
        created_ms: int,
        last_used_ms: int,
    ) -> None:
        self.session_id = session_id
        self.is_privileged = is_privileged
        """Whether the client is a follower."""
        self.uses_topic_ids = uses_topic_ids
        self.targets = targets
        self.created_ms = created_ms
        self.last_used_ms = last_used_ms
        self.next_epoch = 1
        self.worth: Worth | None = None
        """The priority under which the cache has stored the session."""
        self.is_old = False
        """Whether the session was older than the eviction time when `worth` was set."""


class FetchPlan:
    """The partitions that a request fetches, including the partitions of its session."""

    __slots__ = (
        "denied",
        "next_epoch",
        "session",
        "session_id",
        "targets",
        "uses_topic_ids",
        "wants_session",
    )

    def __init__(
        self,
        targets: list[FetchTarget],
        session: FetchSession | None = None,
        next_epoch: int = FINAL_EPOCH,
        wants_session: bool = False,
        uses_topic_ids: bool = False,
    ) -> None:
        self.targets = targets
        self.session = session
        """The session of an incremental request, or None for a full request."""
        self.session_id = NO_SESSION if session is None else session.session_id
        self.next_epoch = next_epoch
        """The epoch of the next request in `session`."""
        self.wants_session = wants_session
        """Whether a full request asks for a session, which `FetchSessionCache.open` then creates."""
        self.uses_topic_ids = uses_topic_ids
        self.denied: Sequence[FetchTarget] = ()
        """The partitions of the request or its session that the client is not authorized to read."""

    @property
    def is_outdated(self) -> bool:
        """Whether a later request of the same session has since arrived on another connection."""
        return self.session is not None and self.session.next_epoch != self.next_epoch

    def would_send(self, target: FetchTarget, data: PartitionData, size_bytes: int) -> bool:
        """Return whether the response includes this partition if it has `size_bytes` of records."""
        return (
            size_bytes > 0
            or self.session is None
            or target.sent_high_watermark != data.high_watermark
            or target.sent_log_start_offset != data.log_start_offset
            or data.error_code != 0
            or data.diverging_epoch.end_offset >= 0
            or data.preferred_read_replica >= 0
        )

    def send(self, target: FetchTarget, data: PartitionData, size_bytes: int) -> bool:
        """Return whether the response includes this partition, and record its offsets as sent."""
        session = self.session
        is_sent = session is None or self.would_send(target, data, size_bytes)
        # Send the high watermark again later, because a follower that must truncate ignores it.
        is_diverging = data.diverging_epoch.end_offset >= 0
        target.sent_high_watermark = -1 if is_diverging else data.high_watermark
        target.sent_log_start_offset = data.log_start_offset
        if size_bytes > 0 and session is not None and target.key in session.targets:
            session.targets.move_to_end(target.key)
        return is_sent


class FetchSessionCache:
    """The fetch sessions of one broker. `slots` is the maximum number of sessions."""

    def __init__(self, slots: int, eviction_ms: int) -> None:
        self.slots = slots
        self.eviction_ms = eviction_ms
        self.evictions = 0
        """The number of sessions evicted to make room for new sessions."""
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """The sessions by ID, the least recently used first."""
        self._evictable: list[Worth] = []
        """The sessions that new sessions of clients may replace, sorted by priority."""
        self._evictable_by_followers: list[Worth] = []

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The number of partitions in all sessions."""
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
        """Determine the partitions that a request fetches. Raises KafkaError if the session ID or epoch is
        wrong (KIP-227), or if the session uses topic IDs and the request uses names or vice versa (KIP-516).
        """
        if len(targets) > 1:
            targets = list({target.key: target for target in targets}.values())
        session = self._sessions.get(session_id)
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session is not None:
                self._remove(session)
            wants_session = epoch == INITIAL_EPOCH
            return FetchPlan(targets, None, FINAL_EPOCH, wants_session, uses_topic_ids)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.next_epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        self._update(session, targets, forgotten)
        if not session.targets:
            self._remove(session)
            return FetchPlan(targets)
        session.next_epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        self._touch(session, now_ms)
        return FetchPlan(list(session.targets.values()), session, session.next_epoch)

    def targets(self, session_id: int) -> Iterable[FetchTarget]:
        """Return the partitions of a session, or an empty sequence if the session does not exist."""
        session = self._sessions.get(session_id)
        return () if session is None else session.targets.values()

    def open(self, plan: FetchPlan, now_ms: int, *, is_follower: bool) -> int:
        """Open the session for a full request, with the partitions of its response. Return the session ID, or
        NO_SESSION if the cache is full and no session may be evicted.
        """
        targets = [*plan.targets, *plan.denied]
        if len(self._sessions) >= self.slots and not self._evict(is_follower, len(targets), now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = random.randrange(1, 2**31)
        by_key = OrderedDict((target.key, target) for target in targets)
        session = FetchSession(session_id, is_follower, plan.uses_topic_ids, by_key, now_ms, now_ms)
        self._sessions[session_id] = session
        self._file(session)
        return session_id

    def _update(
        self, session: FetchSession, targets: list[FetchTarget], forgotten: Iterable[PartitionKey]
    ) -> None:
        known = session.targets
        for target in targets:
            old = known.get(target.key)
            if old is not None:
                target.sent_high_watermark = old.sent_high_watermark
                target.sent_log_start_offset = old.sent_log_start_offset
                target.replica = old.replica
                target.name = old.name
            known[target.key] = target
        for key in forgotten:
            known.pop(key, None)

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        is_old = now_ms - session.created_ms > self.eviction_ms
        worth = session.worth
        if worth is None or worth[1] != len(session.targets) or is_old != session.is_old:
            self._unfile(session)
            session.is_old = is_old
            self._file(session)

    def _file(self, session: FetchSession) -> None:
        worth = session.worth = (session.is_privileged, len(session.targets), session.session_id)
        if session.is_old:
            insort(self._evictable, worth)
        if session.is_old or not session.is_privileged:
            insort(self._evictable_by_followers, worth)

    def _unfile(self, session: FetchSession) -> None:
        worth = session.worth
        if worth is not None:
            for filed in (self._evictable, self._evictable_by_followers):
                at = bisect_left(filed, worth)
                if at < len(filed) and filed[at] == worth:
                    del filed[at]

    def _remove(self, session: FetchSession) -> None:
        del self._sessions[session.session_id]
        self._unfile(session)

    def _evict(self, is_follower: bool, size: int, now_ms: int) -> bool:
        """Evict a session for a new session of `size` partitions (rule 6). Return whether one was evicted."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms <= self.eviction_ms:
            evictable = self._evictable_by_followers if is_follower else self._evictable
            if not evictable or (is_follower, size, 0) < evictable[0]:
                return False
            oldest = self._sessions[evictable[0][2]]
        self._remove(oldest)
        self.evictions += 1
        return True
