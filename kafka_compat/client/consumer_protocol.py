"""A single-threaded member of a group with the consumer protocol (KIP-848): the broker assigns partitions in
responses to heartbeats.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from kafka_compat.client.group_consumer import GroupSettings, changed_offsets, stable_offsets
from kafka_compat.client.groups import commit_topics
from kafka_compat.client.partitions import TopicPartition, error_codes
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.fetcher import Fetcher

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_TEMPORARILY_EPOCH: Final = -2
_REMOVED: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
"""Error codes after which a member joins again, without its partitions."""
_BACKOFF_S: Final = 0.1
_CALL: Final = "consumer"
_UNSUPPORTED: Final = "The cluster does not support consumer groups: use group.protocol=classic"

Assignment = dict[UUID, frozenset[int]]
"""Maps topic IDs to partitions."""


class ConsumerMembership:
    """State machine of a member, without I/O. Times are in seconds on a monotonic clock.

    The broker sends an assignment. The member gives up the partitions that are not part of it, and reports
    the partitions that it owns in the next heartbeat. A heartbeat contains only fields that have changed.
    """

    def __init__(self, member_id: str, settings: GroupSettings) -> None:
        self.member_id = member_id
        self.epoch = JOIN_EPOCH
        self.assigned: Assignment = {}
        """The latest assignment."""
        self.owned: Assignment = {}
        """The partitions that the member consumes."""
        self._settings = settings
        self._interval_s = 0.0
        self._heard_s = float("-inf")
        self._told_topics: tuple[str, ...] | None = None
        self._told_owned: Assignment | None = None

    @property
    def has_joined(self) -> bool:
        return self.epoch != JOIN_EPOCH

    def is_heartbeat_due(self, topics: tuple[str, ...], now_s: float) -> bool:
        """Return whether the member should send a heartbeat. `topics` is its current subscription."""
        return (
            now_s - self._heard_s >= self._interval_s
            or topics != self._told_topics
            or self.owned != self._told_owned
        )

    def wait_s(self, now_s: float) -> float:
        """Return the time in seconds until the next heartbeat."""
        return max(self._heard_s + self._interval_s - now_s, 0.0)

    def heartbeat(self, topics: tuple[str, ...]) -> dict[str, Any]:
        """Return the fields of the next heartbeat, except for the owned partitions."""
        fields: dict[str, Any] = {
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self._settings.instance_id,
            "topic_partitions": None,
        }
        if topics != self._told_topics:
            fields["subscribed_topic_names"] = list(topics)
        if not self.has_joined:
            fields["rebalance_timeout_ms"] = self._settings.rebalance_timeout_ms
            fields["server_assignor"] = self._settings.assignor
            fields["rack_id"] = self._settings.rack_id
        if self.owned != self._told_owned:
            fields["topic_partitions"] = self.owned
        self._told_topics, self._told_owned = topics, dict(self.owned)
        return fields

    def heard(self, answer: Any, now_s: float) -> bool:
        """Process a heartbeat response. Return False if the member was removed from the group: it no longer
        owns partitions, and joins again. Raises KafkaError if the coordinator rejects the member.
        """
        self._heard_s = now_s
        if answer.error_code in _REMOVED:
            self.epoch = JOIN_EPOCH
            self.assigned, self.owned = {}, {}
            self._told_topics = self._told_owned = None
            self._interval_s = 0.0
            return False
        if answer.error_code:
            raise KafkaError(known_code(answer.error_code), answer.error_message or "")
        self.epoch = answer.member_epoch
        self._interval_s = answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            self.assigned = {
                each.topic_id: frozenset(each.partitions) for each in answer.assignment.topic_partitions
            }
        return True


class ConsumerProtocolConsumer:
    """A consumer in a group with the consumer protocol. It calls `topics()` to determine its subscription
    when it joins, and then every `metadata_max_age_s` seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        fetcher: Fetcher,
        settings: GroupSettings,
        topics: Callable[[], Iterable[str]],
        metadata_max_age_s: float,
    ) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._settings = settings
        self._topics = topics
        self._max_age_s = metadata_max_age_s
        self._subscribed: tuple[str, ...] = ()
        self._looked_s = float("-inf")
        member_id = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        self._member = ConsumerMembership(member_id, settings)
        self._names: dict[UUID, str] = {}
        self._committed_s = time.monotonic()
        self._known_offsets: dict[TopicPartition, int] = {}
        self.joining_s = 0.0
        """Total time in seconds spent on heartbeats before the member had joined."""

    def poll(self, wait_s: float) -> None:
        """Send a heartbeat and auto-commit if they are due, take over a new assignment, and fetch records.
        Raises KafkaError if the member is rejected, and the same errors as `Fetcher.poll`.
        """
        now_s = time.monotonic()
        if now_s - self._looked_s >= self._max_age_s:
            self._subscribed, self._looked_s = tuple(sorted(self._topics())), now_s
        if not self._subscribed:
            # Look again soon: the coordinator rejects members without a subscription.
            self._looked_s = float("-inf")
            time.sleep(min(wait_s, _BACKOFF_S))
            return
        if self._member.is_heartbeat_due(self._subscribed, now_s):
            self._heartbeat()
        interval_s = self._settings.auto_commit_interval_s
        if interval_s is not None and now_s - self._committed_s >= interval_s:
            self.commit()
        if self._member.assigned != self._member.owned:
            self._take_over()
        else:
            self._fetcher.poll(min(wait_s, self._member.wait_s(time.monotonic())))

    def close(self) -> None:
        """Auto-commit, and leave the group. A static member keeps its partitions until its session times out.
        Raises the same errors as `poll`.
        """
        if not self._member.has_joined:
            return
        if self._settings.auto_commit_interval_s is not None:
            self.commit()
        epoch = LEAVE_EPOCH if self._settings.instance_id is None else LEAVE_TEMPORARILY_EPOCH
        leaving = {"member_id": self._member.member_id, "member_epoch": epoch}
        instance_id = self._settings.instance_id
        self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, **leaving, instance_id=instance_id, topic_partitions=None)

    def commit(self) -> None:
        """Commit this member's positions if they have changed. Raises the same errors as `poll`. After
        STALE_MEMBER_EPOCH, the positions are committed after the next heartbeat.
        """
        offsets = changed_offsets(self._fetcher, self._known_offsets)
        self._committed_s = time.monotonic()
        if not offsets:
            return
        answer = self._ask(
            ApiKey.OFFSET_COMMIT,
            generation_id_or_member_epoch=self._member.epoch,
            member_id=self._member.member_id,
            group_instance_id=self._settings.instance_id,
            topics=commit_topics(offsets),
        )
        code = next((code for code in error_codes(answer) if code), 0)
        if not code:
            self._known_offsets |= {place: one.offset for place, one in offsets.items()}
        elif code == ErrorCode.STALE_MEMBER_EPOCH:
            self._heartbeat()
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            # The next heartbeat fails with the same error, and the member joins again.
            self._fetcher.assign({})
        else:
            raise KafkaError(known_code(code))

    def _ask(self, key: ApiKey, **request: Any) -> Any:
        group_id = self._settings.group_id
        return self._cluster.ask_coordinator(group_id, key, _CALL, group_id=group_id, **request)

    def _heartbeat(self) -> None:
        from kafka_compat.protocol.messages.consumer_group_heartbeat import TopicPartitions

        began_s, had_joined = time.monotonic(), self._member.has_joined
        fields = self._member.heartbeat(self._subscribed)
        owned = fields["topic_partitions"]
        if owned is not None:
            fields["topic_partitions"] = [
                TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in owned.items()
            ]
        answer = self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, **fields)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, _UNSUPPORTED)
        now_s = time.monotonic()
        if not self._member.heard(answer, now_s):
            self._known_offsets = {}
            self._fetcher.assign({})
        if not had_joined:
            self.joining_s += now_s - began_s

    def _take_over(self) -> None:
        """Give up partitions that are no longer assigned, and start to consume new ones. The broker assigns
        new partitions only after it has been told of those that were given up.
        """
        assigned = self._member.assigned
        places = {
            (name, number)
            for topic_id, name in self._names_of(assigned).items()
            for number in assigned[topic_id]
        }
        had = self._fetcher.assigned
        if not had <= places and self._settings.auto_commit_interval_s is not None:
            self.commit()
        known: dict[TopicPartition, int | None] = dict(self._fetcher.consumed_to())
        added = places - had
        if added:
            offsets = stable_offsets(self._cluster, self._settings.group_id)
            known |= {place: offsets[place].offset if place in offsets else None for place in added}
            self._known_offsets |= {place: offsets[place].offset for place in added if place in offsets}
        self._fetcher.assign({place: known.get(place) for place in places})
        self._known_offsets = {key: value for key, value in self._known_offsets.items() if key in places}
        self._member.owned = dict(assigned)

    def _names_of(self, assigned: Assignment) -> dict[UUID, str]:
        """Return the names of assigned topics. Topics that have been deleted are omitted."""
        if not assigned.keys() <= self._names.keys():
            answer = self._cluster.metadata(self._subscribed)
            self._names |= {topic.topic_id: topic.name for topic in answer.topics if not topic.error_code}
        return {topic_id: self._names[topic_id] for topic_id in assigned if topic_id in self._names}
