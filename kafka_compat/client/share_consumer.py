"""A single-threaded member of a share group (KIP-932). It acknowledges each record explicitly."""

from __future__ import annotations

import base64
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID, uuid4

from kafka_compat.client.connection_settings import whole_number
from kafka_compat.client.consumed import Consumed, consumed
from kafka_compat.client.partitions import PASSING, check
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.int_enum import IntEnum
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster

_CALL: Final = "shareConsumer"
_JOIN, _LEAVE = 0, -1
_OPEN, _CLOSE = 0, -1
_BACKOFF_S: Final = 0.1
_REMOVED: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
_SESSION_LOST: Final = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})
_PASSING: Final = PASSING | {
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
}
_UNSUPPORTED: Final = "The cluster does not support share groups: they need share.version 1 or 2"

Place = tuple[UUID, int]
"""A partition: the ID of its topic, and its number."""


class Acknowledgement(IntEnum):
    """What a member has done with a record. A gap is an acquired offset without a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3


class ShareSettings(NamedTuple):
    """The Java share consumer's settings that this consumer supports."""

    group_id: str
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024
    records_max: int = 500
    rack_id: str | None = None
    metadata_max_age_s: float = 300.0


def share_settings(given: Mapping[str, str]) -> ShareSettings:
    """Convert a Java share consumer's settings. Raises ValueError, naming the setting, if a value is
    invalid.
    """
    number = partial(whole_number, given)
    return ShareSettings(
        given["group.id"],
        max_wait_ms=number("fetch.max.wait.ms", 500),
        min_bytes=number("fetch.min.bytes", 1),
        max_bytes=number("fetch.max.bytes", 50 * 1024 * 1024),
        records_max=number("max.poll.records", 500),
        rack_id=given.get("client.rack") or None,
        metadata_max_age_s=number("metadata.max.age.ms", 300_000) / 1000,
    )


class _Session:
    """The share session with one leader: its epoch, its partitions, and acknowledgements to be sent."""

    def __init__(self) -> None:
        self.epoch = _OPEN
        self.partitions: set[Place] = set()
        self.pending: dict[Place, dict[int, Acknowledgement]] = {}

    def acknowledge(self, place: Place, offset: int, how: Acknowledgement) -> None:
        self.pending.setdefault(place, {})[offset] = how

    def take_pending(self) -> dict[Place, dict[int, Acknowledgement]]:
        pending, self.pending = self.pending, {}
        return pending

    def reset(self) -> None:
        """Forget the session, after which the leader releases all acquired records."""
        self.epoch, self.partitions, self.pending = _OPEN, set(), {}

    def advance(self) -> None:
        self.epoch = self.epoch + 1 if self.epoch < 2**31 - 1 else 1


def batches_of(offsets: Mapping[int, Acknowledgement]) -> list[tuple[int, int, list[int]]]:
    """Combine acknowledgements of consecutive offsets: first offset, last offset, and either one type for all
    offsets or one for each.
    """
    found: list[tuple[int, int, list[int]]] = []
    for offset, how in sorted(offsets.items()):
        if found and found[-1][1] == offset - 1:
            first, _, types = found[-1]
            types.append(int(how))
            found[-1] = first, offset, types
        else:
            found.append((offset, offset, [int(how)]))
    return [(first, last, types[:1] if len(set(types)) == 1 else types) for first, last, types in found]


class ShareConsumer:
    """A member of a share group that consumes one topic. Records that are taken must be acknowledged before
    the next `poll`; the acknowledgements are sent with the next fetch, or when the consumer is closed.
    """

    def __init__(self, cluster: Cluster, settings: ShareSettings, topic: str) -> None:
        self._cluster = cluster
        self._settings = settings
        self._topic = topic
        self._member_id = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        self._epoch = _JOIN
        self._due_s = float("-inf")
        self._assigned: set[Place] = set()
        self._leaders: dict[int, int] = {}
        self._topic_id: UUID | None = None
        self._looked_s = float("-inf")
        self._sessions: dict[int, _Session] = {}
        self._records: deque[tuple[_Session, Place, Consumed]] = deque()
        self._taken: dict[tuple[int, int], tuple[_Session, Place]] = {}

    def take(self) -> Consumed | None:
        """Return the next record from the buffer, or None if the buffer is empty."""
        if not self._records:
            return None
        session, place, record = self._records.popleft()
        self._taken[record.partition, record.offset] = session, place
        return record

    def acknowledge(self, record: Consumed, how: Acknowledgement) -> None:
        """Acknowledge a record that was taken since the last `poll` that fetched records."""
        session, place = self._taken.pop((record.partition, record.offset))
        if place in session.partitions:
            session.acknowledge(place, record.offset, how)

    def poll(self, wait_s: float) -> None:
        """Send a heartbeat if it is due, and fetch from the leaders unless records are buffered. Raises
        KafkaError if a broker reports an error, StorageError if records are corrupt, and the same errors as
        `Cluster.ask`.
        """
        if self._records:
            return
        if time.monotonic() >= self._due_s:
            self._heartbeat()
        if not self._assigned:
            time.sleep(max(min(wait_s, _BACKOFF_S, self._due_s - time.monotonic()), 0.0))
            return
        if time.monotonic() - self._looked_s > self._settings.metadata_max_age_s:
            self._look_up()
        wanted = self._by_leader()
        if not wanted:
            time.sleep(min(wait_s, _BACKOFF_S))
            self._looked_s = float("-inf")
            return
        left_s = min(wait_s, self._due_s - time.monotonic())
        share_ms = max(int(min(self._settings.max_wait_ms, left_s * 1000) / len(wanted)), 0)
        for node_id, places in wanted.items():
            self._fetch(node_id, places, 0 if self._records else share_ms)

    def close(self) -> None:
        """Send pending acknowledgements, close the share sessions, and leave the group. Records without an
        acknowledgement are released. Raises the same errors as `poll`.
        """
        self._records.clear()
        try:
            for node_id, session in self._sessions.items():
                if session.epoch != _OPEN and node_id in self._cluster.nodes:
                    self._end(node_id, session)
        finally:
            if self._epoch != _JOIN:
                self._ask_group(member_epoch=_LEAVE)

    # --- membership

    def _ask_group(self, **fields: Any) -> Any:
        return self._cluster.ask_coordinator(
            self._settings.group_id,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            _CALL,
            group_id=self._settings.group_id,
            member_id=self._member_id,
            **fields,
        )

    def _heartbeat(self) -> None:
        joins = self._epoch == _JOIN
        answer = self._ask_group(
            member_epoch=self._epoch,
            rack_id=self._settings.rack_id if joins else None,
            subscribed_topic_names=[self._topic] if joins else None,
        )
        if answer.error_code in _REMOVED:
            self._epoch, self._due_s, self._assigned = _JOIN, float("-inf"), set()
            return
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, _UNSUPPORTED)
        check(answer.error_code, answer.error_message)
        self._epoch = answer.member_epoch
        self._due_s = time.monotonic() + answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            self._assigned = {
                (each.topic_id, number)
                for each in answer.assignment.topic_partitions
                for number in each.partitions
            }

    # --- leaders

    def _look_up(self) -> None:
        answer = self._cluster.metadata([self._topic])
        self._leaders = {}
        self._looked_s = time.monotonic()
        for topic in answer.topics:
            if topic.error_code not in _PASSING:
                check(topic.error_code)
            self._topic_id = topic.topic_id
            for one in topic.partitions:
                if one.leader_id in self._cluster.nodes:
                    self._leaders[one.partition_index] = one.leader_id

    def _by_leader(self) -> dict[int, set[Place]]:
        """Return the assigned partitions of each leader, and no partitions for a leader whose session has
        others, or acknowledgements to be sent.
        """
        found: dict[int, set[Place]] = {}
        for topic_id, number in self._assigned:
            leader = self._leaders.get(number) if topic_id == self._topic_id else None
            if leader is not None:
                found.setdefault(leader, set()).add((topic_id, number))
        for node_id, session in self._sessions.items():
            if (session.partitions or session.pending) and node_id in self._cluster.nodes:
                found.setdefault(node_id, set())
        return found

    # --- fetches and acknowledgements

    def _fetch(self, node_id: int, places: set[Place], wait_ms: int) -> None:
        from kafka_compat.protocol.messages.share_fetch import FetchPartition, FetchTopic, ForgottenTopic

        session = self._sessions.setdefault(node_id, _Session())
        pending = session.take_pending()
        new = places - session.partitions
        forgotten = session.partitions - places
        settings = self._settings
        answer = self._cluster.ask_broker(
            node_id,
            ApiKey.SHARE_FETCH,
            _CALL,
            group_id=settings.group_id,
            member_id=self._member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            max_records=settings.records_max,
            batch_size=settings.records_max,
            topics=_topics(new | pending.keys(), pending, FetchTopic, FetchPartition),
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=[number]) for topic_id, number in forgotten
            ],
        )
        if answer.error_code in _SESSION_LOST:
            session.reset()
            return
        if answer.error_code in _PASSING:
            session.reset()
            time.sleep(_BACKOFF_S)
            return
        check(answer.error_code, answer.error_message)
        session.partitions = set(places)
        session.advance()
        has_moved = False
        for topic in answer.responses:
            for one in topic.partitions:
                has_moved |= self._take_partition(session, (topic.topic_id, one.partition_index), one)
        if has_moved:
            time.sleep(_BACKOFF_S)
            self._looked_s = float("-inf")

    def _take_partition(self, session: _Session, place: Place, answer: Any) -> bool:
        """Buffer the acquired records of a partition. Return whether it may have another leader."""
        if answer.error_code in _PASSING:
            return True
        check(answer.error_code, answer.error_message)
        acquired = {
            offset: one.delivery_count
            for one in answer.acquired_records
            for offset in range(one.first_offset, one.last_offset + 1)
        }
        if not acquired:
            return False
        start = min(acquired)
        for _, records in consumed(self._topic, place[1], answer.records or b"", start, []):
            for record in records:
                count = acquired.pop(record.offset, None)
                if count is not None:
                    self._records.append((session, place, record._replace(delivery_count=count)))
        for offset in acquired:
            session.acknowledge(place, offset, Acknowledgement.GAP)
        return False

    def _end(self, node_id: int, session: _Session) -> None:
        from kafka_compat.protocol.messages.share_acknowledge import AcknowledgePartition, AcknowledgeTopic

        pending = session.take_pending()
        answer = self._cluster.ask_broker(
            node_id,
            ApiKey.SHARE_ACKNOWLEDGE,
            _CALL,
            group_id=self._settings.group_id,
            member_id=self._member_id,
            share_session_epoch=_CLOSE,
            topics=_topics(pending, pending, AcknowledgeTopic, AcknowledgePartition),
        )
        if answer.error_code not in _SESSION_LOST:
            check(answer.error_code, answer.error_message)


def _topics(
    places: Iterable[Place],
    pending: Mapping[Place, Mapping[int, Acknowledgement]],
    topic_of: Callable[..., Any],
    partition_of: Callable[..., Any],
) -> list[Any]:
    """Build the `topics` field of a request from its partitions and their acknowledgements."""
    from kafka_compat.protocol.messages.share_fetch import AcknowledgementBatch

    found: dict[UUID, list[Any]] = {}
    for place in sorted(places):
        batches = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in batches_of(pending.get(place, {}))
        ]
        part = partition_of(partition_index=place[1], acknowledgement_batches=batches)
        found.setdefault(place[0], []).append(part)
    return [topic_of(topic_id=topic_id, partitions=parts) for topic_id, parts in found.items()]
