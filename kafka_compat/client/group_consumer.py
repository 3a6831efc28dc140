"""A single-threaded member of a classic group: joins, assignments, heartbeats, commits and fetches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.client.groups import CONSUMERS, Committed, assigned, commit_topics, committed_offsets
from kafka_compat.client.partitions import TopicPartition, by_topic, error_codes
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.fetcher import Fetcher

_AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)


class Membership:
    """State machine of a group member, without I/O (KIP-62, KIP-394).

        unjoined --join--> joined --sync--> stable --rebalance in heartbeat--> unjoined --join--> …

    If the coordinator no longer knows the member, the member joins again without its ID. If the coordinator
    rejects the member, a KafkaError is raised. Times are in seconds on a monotonic clock.
    """

    def __init__(self, heartbeat_interval_s: float) -> None:
        self.is_stable = False
        self.member_id = ""
        self.generation_id = -1
        self._heartbeat_interval_s = heartbeat_interval_s
        self._heard_s = 0.0

    def joined(self, code: int, member_id: str, generation_id: int) -> bool:
        """Process a JoinGroup response, and return whether a SyncGroup request comes next."""
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
            return False
        if code:
            self._put_back(code)
            return False
        self.member_id, self.generation_id = member_id, generation_id
        return True

    def synced(self, code: int, now_s: float) -> bool:
        """Process a SyncGroup response, and return whether the member has joined."""
        if code:
            self._put_back(code)
            return False
        self.is_stable, self._heard_s = True, now_s
        return True

    def is_heartbeat_due(self, now_s: float) -> bool:
        """Return whether a stable member should send a heartbeat."""
        return now_s - self._heard_s >= self._heartbeat_interval_s

    def wait_s(self, now_s: float) -> float:
        """Return the time in seconds until the next heartbeat."""
        return max(self._heard_s + self._heartbeat_interval_s - now_s, 0.0)

    def heard(self, code: int, now_s: float) -> bool:
        """Process a heartbeat response. Return False if the member must join the group again."""
        self._heard_s = now_s
        if code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            return True
        self._put_back(code)
        return False

    def _put_back(self, code: int) -> None:
        self.is_stable = False
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation_id = "", -1
        elif code == ErrorCode.ILLEGAL_GENERATION:
            self.generation_id = -1
        elif code not in _AGAIN:
            raise KafkaError(known_code(code))


Assignment = dict[str, list[TopicPartition]]


def assign_ranges(members: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Assignment:
    """Assign contiguous partitions of each topic to each member, as Kafka's `range` assignor does. `members`
    maps member IDs to topics, and `counts` maps topics to numbers of partitions.
    """
    found: Assignment = {member: [] for member in members}
    for topic in sorted({topic for topics in members.values() for topic in topics}):
        takers = sorted(member for member, topics in members.items() if topic in topics)
        each, more = divmod(counts.get(topic, 0), len(takers))
        start = 0
        for index, member in enumerate(takers):
            end = start + each + (index < more)
            found[member] += [(topic, number) for number in range(start, end)]
            start = end
    return found


def assign_in_turn(members: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Assignment:
    """Assign the partitions of all topics to the members in turn, as in Kafka's `roundrobin` assignor."""
    found: Assignment = {member: [] for member in members}
    order = sorted(members)
    turn = 0
    for topic in sorted({topic for topics in members.values() for topic in topics}):
        for number in range(counts.get(topic, 0)):
            while topic not in members[order[turn % len(order)]]:
                turn += 1
            found[order[turn % len(order)]].append((topic, number))
            turn += 1
    return found


ASSIGNORS: Final = {"range": assign_ranges, "roundrobin": assign_in_turn}
"""Assignors by their names in the group protocol."""


_FORBIDDEN: Final = {
    "CLASSIC": ("group.remote.assignor",),
    "CONSUMER": ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms"),
}
"""Maps each group protocol to the settings that must not be given with it."""
_CALL: Final = "consumer"
_BACKOFF_S: Final = 0.1


class GroupSettings(NamedTuple):
    """The Java consumer's group settings that this consumer supports."""

    group_id: str
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_s: float = 3.0
    auto_commit_interval_s: float | None = 5.0
    """auto.commit.interval.ms in seconds, or None if enable.auto.commit is false."""
    assignor: str | None = None
    """group.remote.assignor, or None for the broker's default assignor."""
    rack_id: str | None = None


def uses_consumer_protocol(given: Mapping[str, str]) -> bool:
    """Return whether group.protocol selects the consumer protocol (KIP-848). Raises ValueError, with the
    message of Kafka's client, if the settings contradict it.
    """
    protocol = given.get("group.protocol", "classic")
    if protocol.upper() not in _FORBIDDEN:
        raise ValueError(
            f"Invalid value {protocol} for configuration group.protocol: String must be one of (case "
            "insensitive): CONSUMER, CLASSIC"
        )
    wrong = [name for name in _FORBIDDEN[protocol.upper()] if name in given]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} cannot be set when group.protocol={protocol.upper()}")
    return protocol.upper() == "CONSUMER"


def group_settings(given: Mapping[str, str]) -> GroupSettings:
    """Convert a Java consumer's group settings."""
    commits = given.get("enable.auto.commit", "true").strip().lower() == "true"
    interval_s = int(given.get("auto.commit.interval.ms", "5000")) / 1000
    return GroupSettings(
        given["group.id"],
        given.get("group.instance.id"),
        int(given.get("session.timeout.ms", "45000")),
        int(given.get("max.poll.interval.ms", "300000")),
        int(given.get("heartbeat.interval.ms", "3000")) / 1000,
        interval_s if commits else None,
        given.get("group.remote.assignor"),
        given.get("client.rack") or None,
    )


def stable_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, Committed]:
    """Return the group's committed offsets. Wait while an open transaction contains offsets of the group.
    Raises KafkaError if the request fails, and the same errors as `Cluster.ask`.
    """
    while True:
        try:
            return committed_offsets(cluster, group_id, require_stable=True)
        except KafkaError as error:
            if error.code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                raise
            time.sleep(_BACKOFF_S)


def changed_offsets(fetcher: Fetcher, known: Mapping[TopicPartition, int]) -> dict[TopicPartition, Committed]:
    """Return the positions of a consumer that differ from the offsets `known` to be committed."""
    return {
        place: Committed(offset)
        for place, offset in fetcher.consumed_to().items()
        if known.get(place) != offset
    }


class GroupConsumer:
    """A consumer in a group. At each join, it calls `topics()` to determine its subscription."""

    def __init__(
        self, cluster: Cluster, fetcher: Fetcher, settings: GroupSettings, topics: Callable[[], Iterable[str]]
    ) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._settings = settings
        self._topics = topics
        self._subscribed: list[str] = []
        self._member = Membership(settings.heartbeat_interval_s)
        self._committed_s = time.monotonic()
        self._known_offsets: dict[TopicPartition, int] = {}
        self.joining_s = 0.0
        """Total time in seconds spent on joining the group."""

    def poll(self, wait_s: float) -> None:
        """Join the group if necessary, send a heartbeat and auto-commit if they are due, and fetch records.
        Raises KafkaError if the member is rejected, and the same errors as `Fetcher.poll`.
        """
        if not self._member.is_stable:
            self._join(time.monotonic() + wait_s)
            if not self._member.is_stable:
                return
        now_s = time.monotonic()
        if self._member.is_heartbeat_due(now_s):
            self._heartbeat()
        interval_s = self._settings.auto_commit_interval_s
        if interval_s is not None and now_s - self._committed_s >= interval_s:
            self.commit()
        if self._member.is_stable:
            self._fetcher.poll(min(wait_s, self._member.wait_s(now_s)))

    def close(self) -> None:
        """Auto-commit, and leave the group unless the member is static. Raises the same errors as `poll`."""
        if not self._member.member_id:
            return
        if self._settings.auto_commit_interval_s is not None:
            self.commit()
        if self._settings.instance_id is None:
            from kafka_compat.protocol.messages.leave_group import MemberIdentity

            member_id = self._member.member_id
            leaving = MemberIdentity(member_id=member_id, reason="the consumer is being closed")
            self._ask(ApiKey.LEAVE_GROUP, member_id=member_id, members=[leaving])

    def commit(self) -> None:
        """Commit this member's positions if they have changed. Raises the same errors as `poll`."""
        offsets = changed_offsets(self._fetcher, self._known_offsets)
        self._committed_s = time.monotonic()
        if not offsets:
            return
        answer = self._ask(
            ApiKey.OFFSET_COMMIT,
            generation_id_or_member_epoch=self._member.generation_id,
            **self._identity,
            topics=commit_topics(offsets),
        )
        codes = [code for code in error_codes(answer) if code]
        if not codes:
            self._known_offsets |= {place: one.offset for place, one in offsets.items()}
        elif not self._member.heard(codes[0], time.monotonic()):
            self._fetcher.assign({})

    def _ask(self, key: ApiKey, **request: Any) -> Any:
        group_id = self._settings.group_id
        return self._cluster.ask_coordinator(group_id, key, _CALL, group_id=group_id, **request)

    @property
    def _identity(self) -> dict[str, str | None]:
        return {"member_id": self._member.member_id, "group_instance_id": self._settings.instance_id}

    def _heartbeat(self) -> None:
        answer = self._ask(ApiKey.HEARTBEAT, generation_id=self._member.generation_id, **self._identity)
        if not self._member.heard(answer.error_code, time.monotonic()):
            if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS and self._settings.auto_commit_interval_s:
                self.commit()
            self._fetcher.assign({})

    def _join(self, deadline: float) -> None:
        from kafka_compat.protocol.codec import encode_versioned
        from kafka_compat.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
        from kafka_compat.protocol.messages.join_group import JoinGroupRequestProtocol

        began_s = time.monotonic()
        while True:
            self._subscribed = sorted(self._topics())
            subscription = encode_versioned(ConsumerProtocolSubscription(topics=self._subscribed), 1)
            answer = self._ask(
                ApiKey.JOIN_GROUP,
                session_timeout_ms=self._settings.session_timeout_ms,
                rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
                **self._identity,
                protocol_type=CONSUMERS,
                protocols=[JoinGroupRequestProtocol(name=name, metadata=subscription) for name in ASSIGNORS],
            )
            is_in = self._member.joined(answer.error_code, answer.member_id, answer.generation_id)
            if is_in and self._sync(answer):
                self.joining_s += time.monotonic() - began_s
                return
            if answer.error_code not in (0, ErrorCode.MEMBER_ID_REQUIRED):
                if time.monotonic() > deadline:
                    return
                time.sleep(_BACKOFF_S)

    def _sync(self, joined: Any) -> bool:
        from kafka_compat.protocol.messages.sync_group import SyncGroupRequestAssignment

        shares = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            shares = self._shares(joined)
        answer = self._ask(
            ApiKey.SYNC_GROUP,
            generation_id=self._member.generation_id,
            **self._identity,
            protocol_type=CONSUMERS,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=share)
                for member, share in shares.items()
            ],
        )
        if not self._member.synced(answer.error_code, time.monotonic()):
            return False
        self._begin(assigned(answer.assignment))
        return True

    def _shares(self, joined: Any) -> dict[str, bytes]:
        from kafka_compat.protocol.codec import decode_versioned, encode_versioned
        from kafka_compat.protocol.messages.consumer_protocol import (
            ConsumerProtocolAssignment,
            ConsumerProtocolAssignmentTopicPartition,
            ConsumerProtocolSubscription,
        )

        members = {
            one.member_id: decode_versioned(ConsumerProtocolSubscription, one.metadata)[0].topics
            for one in joined.members
        }
        topics = sorted({topic for topics in members.values() for topic in topics})
        answer = self._cluster.metadata(topics)
        counts = {topic.name: len(topic.partitions) for topic in answer.topics}
        found = {}
        for member, places in ASSIGNORS[joined.protocol_name](members, counts).items():
            share = ConsumerProtocolAssignment(
                assigned_partitions=[
                    ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
                    for topic, numbers in by_topic(places).items()
                ]
            )
            found[member] = encode_versioned(share, 1)
        return found

    def _begin(self, places: Iterable[TopicPartition]) -> None:
        mine = set(places)
        offsets = stable_offsets(self._cluster, self._settings.group_id) if mine else {}
        self._known_offsets = {place: one.offset for place, one in offsets.items() if place in mine}
        self._fetcher.assign({place: self._known_offsets.get(place) for place in mine})
        self._committed_s = time.monotonic()
