"""Offsets by topic ID, and member epochs on requests for offsets: Apache Kafka 4.4.0 returns the same
responses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.group_requests import join, ready_group
from tests.conformance.transactional import Transactional
from tests.conformance.wire import Plain
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import StartBroker

pytestmark = pytest.mark.skipif(
    not campaign.enabled(),
    reason="needs a further Kafka release; normal runs use tests/groups/consumer/test_offsets.py",
)

MEMBER = "member"
EPOCHS = (-2, -1, 0, 1, 2, 3)
NO_ID = UUID(int=0)
UNKNOWN_ID = UUID(int=77)


@pytest.fixture
def pair(start_broker: StartBroker, newest_address: str) -> Iterator[Pair]:
    """A new kafka-compat broker with group.version 1, and a broker of the newest Apache Kafka."""
    found = Pair(start_broker().address, newest_address)
    yield found
    found.close()


class Offsets:
    """Requests for the offsets of one group, in every version."""

    def __init__(self, pair: Pair, group: str, *topics: str) -> None:
        self.pair = pair
        self.group = group
        self.topics = topics
        self.ids = {topic: pair.ids(topic) for topic in topics}

    def commit(self, *, partitions: tuple[int, ...] = (0,), low: int = 1, **more: Any) -> None:
        for version in self.pair.versions(ApiKey.OFFSET_COMMIT, low):
            if version < 7 and "group_instance_id" in more:
                continue
            parts = [{"partition_index": each, "committed_offset": version} for each in partitions]
            self._same(ApiKey.OFFSET_COMMIT, version, 10, {"partitions": parts}, more)

    def commit_in(self, one: Transactional, *, partitions: tuple[int, ...] = (0,), **more: Any) -> None:
        """Commit in a transaction."""
        for version in self.pair.versions(ApiKey.TXN_OFFSET_COMMIT, 3):
            parts = [{"partition_index": each, "committed_offset": version} for each in partitions]
            self._same(
                ApiKey.TXN_OFFSET_COMMIT,
                version,
                6,
                {"partitions": parts},
                {"transactional_id": one.id, **more},
                one,
            )

    def _same(
        self,
        api_key: ApiKey,
        version: int,
        first_with_ids: int,
        parts: Plain,
        more: Plain,
        one: Transactional | None = None,
    ) -> None:
        def request(side: str) -> Plain:
            identity = {} if one is None else one.identity(side)
            named = [{"name": topic, "topic_id": self.ids[topic][side], **parts} for topic in self.topics]
            return {"group_id": self.group, "topics": named, **more, **identity}

        self._compare(api_key, version, request)

    def _compare(self, api_key: ApiKey, version: int, request: Any) -> None:
        """Compare the responses. IDs differ between the brokers, so the topics' names replace them."""
        names = {side: {ids[side]: topic for topic, ids in self.ids.items()} for side in self.pair.sides}
        ours, theirs = (
            _named(answer, names[side])
            for side, answer in zip(self.pair.sides, self.pair.both(api_key, version, request), strict=True)
        )
        assert ours == theirs, (ours, theirs, api_key, version, request("ours"))

    def fetch(
        self, partitions: tuple[int, ...] | None = (0,), *, low: int = 8, stable: bool = False, **more: Any
    ) -> None:
        for version in self.pair.versions(ApiKey.OFFSET_FETCH, low):

            def request(side: str) -> Plain:
                topics = None
                if partitions is not None:
                    topics = [
                        {
                            "name": topic,
                            "topic_id": self.ids[topic][side],
                            "partition_indexes": list(partitions),
                        }
                        for topic in self.topics
                    ]
                groups = [{"group_id": self.group, "topics": topics, **more}]
                return {"groups": groups, "require_stable": stable}

            self._compare(ApiKey.OFFSET_FETCH, version, request)


def _named(value: Any, names: dict[UUID, str]) -> Any:
    if isinstance(value, dict):
        return {key: _named(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_named(each, names) for each in value), key=str)
    return names.get(value, value) if isinstance(value, UUID) else value


def heartbeat(pair: Pair, group: str, topic: str, epoch: int = 0, **more: Any) -> Plain:
    """Send the heartbeat of a member to both brokers."""
    request: Plain = {"group_id": group, "member_id": MEMBER, "member_epoch": epoch}
    if epoch == 0:
        request |= {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": [topic],
            "topic_partitions": [],
        }
    answers = pair.both(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request | more)
    assert [each["error_code"] for each in answers] == [0, 0]
    assert answers[0]["member_epoch"] == answers[1]["member_epoch"]
    return answers[0]


def joined_group(pair: Pair, topic: str, **more: Any) -> tuple[str, int]:
    """Return a new group with one member, and the member's epoch."""
    group = ready_group(pair)
    return group, heartbeat(pair, group, topic, **more)["member_epoch"]


def test_offsets_are_committed_and_fetched_by_topic_id(pair: Pair) -> None:
    topic, other = pair.topic(2), pair.topic()
    group = ready_group(pair)
    offsets = Offsets(pair, group, topic, other)
    offsets.fetch()
    offsets.commit(partitions=(0, 1, 7))
    for stable in (False, True):
        offsets.fetch((0, 1, 7), stable=stable)
        offsets.fetch(None, stable=stable)
    for wrong in (NO_ID, UNKNOWN_ID):
        offsets.ids[other] = dict.fromkeys(pair.sides, wrong)
        offsets.commit(low=10)
        offsets.fetch((0, 1), low=10)


def test_a_deleted_topic_has_no_offsets(pair: Pair) -> None:
    topic = pair.topic()
    group = ready_group(pair)
    offsets = Offsets(pair, group, topic)
    offsets.commit()
    pair.both(ApiKey.DELETE_TOPICS, 5, {"topic_names": [topic], "timeout_ms": 15_000})
    pair.await_topic(topic, 3)

    def are_deleted() -> bool:
        request = {"groups": [{"group_id": group, "topics": None}]}
        return not any(answer["groups"][0]["topics"] for answer in pair.both(ApiKey.OFFSET_FETCH, 8, request))

    wait_until(are_deleted, 10, "offsets of the deleted topic")
    offsets.fetch()
    offsets.fetch(None)
    offsets.commit()


def test_an_offset_that_was_stored_under_another_topic_id_is_missing(pair: Pair) -> None:
    """A transaction stores the offset after the topic has been created anew."""
    topic = pair.topic()
    group = ready_group(pair)
    one = Transactional(pair)
    one.init()
    offsets = Offsets(pair, group, topic)
    offsets.commit_in(one)
    pair.both(ApiKey.DELETE_TOPICS, 5, {"topic_names": [topic], "timeout_ms": 15_000})
    pair.await_topic(topic, 3)
    wanted = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    pair.both(ApiKey.CREATE_TOPICS, 4, {"topics": [wanted], "timeout_ms": 15_000})
    pair.await_topic(topic, 0)
    offsets = Offsets(pair, group, topic)
    offsets.fetch(stable=True)
    one.end(True)
    one.settle()
    offsets.fetch()
    offsets.fetch(None)


def test_commits_to_unknown_groups_are_rejected(pair: Pair) -> None:
    topic = pair.topic()
    one = Transactional(pair)
    one.init()
    for epoch in (0, 3):
        for member_id in ("", MEMBER):
            offsets = Offsets(pair, ready_group(pair), topic)
            which: Plain = {"generation_id_or_member_epoch": epoch, "member_id": member_id}
            offsets.commit(**which)
            offsets.commit(partitions=(0, 9), **which)
    for epoch in (0, 3):
        for member_id in ("", MEMBER):
            offsets = Offsets(pair, ready_group(pair), topic)
            offsets.commit_in(one, generation_id_or_member_epoch=epoch, member_id=member_id)


def test_fetches_from_unknown_and_classic_groups_do_not_check_members(pair: Pair) -> None:
    topic = pair.topic()
    offsets = Offsets(pair, ready_group(pair), topic)
    for _ in range(2):
        for member_id in (None, "", MEMBER):
            for epoch in (-1, 0, 5):
                offsets.fetch(member_id=member_id, member_epoch=epoch)
                offsets.fetch(None, member_id=member_id, member_epoch=epoch)
        answers = pair.both(ApiKey.JOIN_GROUP, 3, join(offsets.group))
        assert [each["error_code"] for each in answers] == [0, 0]


def test_members_commit_with_their_epoch(pair: Pair) -> None:
    topic, other = pair.topic(2), pair.topic()
    group, epoch = joined_group(pair, topic)
    assert epoch == 2
    for names in ((topic,), (topic, other)):
        offsets = Offsets(pair, group, *names)
        for member_id in ("", MEMBER, "stranger"):
            for wanted in EPOCHS:
                heartbeat(pair, group, topic, 2)
                offsets.commit(generation_id_or_member_epoch=wanted, member_id=member_id)
                offsets.commit(
                    generation_id_or_member_epoch=wanted, member_id=member_id, group_instance_id="i"
                )
    # The member reaches a higher epoch, and keeps its partitions.
    heartbeat(pair, group, topic, 2, subscribed_topic_names=[other, topic])
    heartbeat(pair, group, topic, 3)
    for names in ((topic,), (other,), (topic, other)):
        offsets = Offsets(pair, group, *names)
        for wanted in EPOCHS:
            heartbeat(pair, group, topic, 3)
            offsets.commit(generation_id_or_member_epoch=wanted, member_id=MEMBER)
            too_long = {"committed_metadata": "x" * 5000}
            parts = [{"partition_index": 0, "committed_offset": 1} | too_long]
            offsets._same(
                ApiKey.OFFSET_COMMIT,
                9,
                10,
                {"partitions": parts},
                {"generation_id_or_member_epoch": wanted, "member_id": MEMBER},
            )
    heartbeat(pair, group, topic, -1)
    for wanted in EPOCHS:
        Offsets(pair, group, topic).commit(generation_id_or_member_epoch=wanted, member_id=MEMBER)


def test_a_static_member_that_left_temporarily_commits_with_any_former_epoch(pair: Pair) -> None:
    topic = pair.topic(2)
    group, epoch = joined_group(pair, topic, instance_id="i")
    offsets = Offsets(pair, group, topic)
    heartbeat(pair, group, topic, -2, instance_id="i")
    for wanted in EPOCHS:
        offsets.commit(generation_id_or_member_epoch=wanted, member_id=MEMBER)
    heartbeat(pair, group, topic, 0, instance_id="i")
    for wanted in EPOCHS:
        offsets.commit(generation_id_or_member_epoch=wanted, member_id=MEMBER)
    assert epoch == 2


def test_members_fetch_with_their_epoch(pair: Pair) -> None:
    topic = pair.topic(2)
    group, _ = joined_group(pair, topic)
    offsets = Offsets(pair, group, topic)
    offsets.commit(low=9, generation_id_or_member_epoch=2, member_id=MEMBER)
    for member_id in (None, "", MEMBER, "stranger"):
        for epoch in EPOCHS:
            if member_id is None and epoch >= 0:
                # Apache Kafka fails with UNKNOWN_SERVER_ERROR.
                continue
            heartbeat(pair, group, topic, 2)
            for partitions in ((0,), None):
                offsets.fetch(partitions, member_id=member_id, member_epoch=epoch)


def test_members_commit_in_transactions_with_their_epoch(pair: Pair) -> None:
    topic, other = pair.topic(2), pair.topic()
    group, _ = joined_group(pair, topic)
    heartbeat(pair, group, topic, 2, subscribed_topic_names=[other, topic])
    heartbeat(pair, group, topic, 3)
    one = Transactional(pair)
    one.init()
    for names in ((topic,), (other,)):
        offsets = Offsets(pair, group, *names)
        for member_id in ("", MEMBER, "stranger"):
            for wanted in EPOCHS:
                heartbeat(pair, group, topic, 3)
                offsets.commit_in(one, generation_id_or_member_epoch=wanted, member_id=member_id)
                offsets.commit_in(
                    one, generation_id_or_member_epoch=wanted, member_id=member_id, group_instance_id="i"
                )


def test_offsets_of_subscribed_topics_are_not_deleted(pair: Pair) -> None:
    topic, other = pair.topic(2), pair.topic()
    group, _ = joined_group(pair, topic)
    Offsets(pair, group, topic, other).commit(low=9, generation_id_or_member_epoch=2, member_id=MEMBER)
    partitions = [{"partition_index": each} for each in (0, 7)]
    names = (topic, other, pair.name("absent"))
    request = {"group_id": group, "topics": [{"name": name, "partitions": partitions} for name in names]}
    for _ in range(2):
        pair.same(ApiKey.OFFSET_DELETE, request)
    heartbeat(pair, group, topic, -1)
    for _ in range(2):
        pair.same(ApiKey.OFFSET_DELETE, request)
