"""Requests to share groups, and requests of other protocols to them: the same responses as from Apache Kafka
4.4.0, apart from the texts of some messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.groups.share.histories import SETTINGS
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker

pytestmark = pytest.mark.skipif(
    not campaign.enabled(), reason="needs a further Kafka release; normal runs use tests/groups/share"
)

Ask = tuple[ApiKey, int, Plain]
SHARE_JOIN: Plain = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
CLASSIC_JOIN: Plain = {
    "group_id": "g",
    "member_id": "",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b""}],
}
CONSUMER_JOIN: Plain = {
    **SHARE_JOIN,
    "rebalance_timeout_ms": 1_000,
    "topic_partitions": [],
}
ALTERED = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 1}]}]


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Connection]]:
    """Connections to our broker and to the newest Apache Kafka, with the topic t."""
    ours = KafkaCompatBroker(tmp_path_factory.mktemp("ours"))
    genuine = GenuineKafka(tmp_path_factory.mktemp("genuine"), SETTINGS, version=NEWEST_VERSION, mode="kraft")
    ours.start()
    genuine.start(180)
    found = [Connection(ours.address), Connection(genuine.address)]
    for each in found:
        topic = {"name": "t", "num_partitions": 2, "replication_factor": 1}
        each.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000})
        _wait_ready(each)
    yield found
    for each in found:
        each.close()
    genuine.stop()
    ours.stop()


def _wait_ready(connection: Connection) -> None:
    """Wait until the broker coordinates all groups of the test."""
    for group in ("g", "offsets", "none", "negative"):
        connection.ask(ApiKey.FIND_COORDINATOR, 6, {"key_type": 0, "coordinator_keys": [group]})
        request = {"group_ids": [group]}

        def is_known(request: Plain = request) -> bool:
            groups = connection.ask(ApiKey.SHARE_GROUP_DESCRIBE, 1, request)["groups"]
            return bool(groups[0]["error_code"] == 69)

        wait_until(is_known, 60, "the coordinator")


def _before_the_group_exists() -> Iterator[Ask]:
    heartbeat = ApiKey.SHARE_GROUP_HEARTBEAT
    for epoch in (0, 1, -1, -2):
        yield heartbeat, 1, {"group_id": "g", "member_id": "m", "member_epoch": epoch}
    for changed in ({"group_id": ""}, {"member_id": " "}, {"rack_id": ""}):
        yield heartbeat, 1, {**SHARE_JOIN, **changed}
    # Kafka's order of several groups depends on the partitions of __consumer_offsets.
    yield ApiKey.SHARE_GROUP_DESCRIBE, 1, {"group_ids": ["g", ""]}
    yield ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": "", "topics": ALTERED}
    yield ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": "none", "topics": []}
    # Kafka's group coordinator accepts negative partitions; the share coordinator does not.
    negative = [{"partition_index": -1, "start_offset": 1}, {"partition_index": 0, "start_offset": 1}]
    for partitions in (negative[:1], negative):
        topics = [{**ALTERED[0], "partitions": partitions}]
        yield ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": "negative", "topics": topics}
        all_offsets: Plain = {"groups": [{"group_id": "negative", "topics": None}]}
        yield ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, all_offsets
        yield ApiKey.SHARE_GROUP_DESCRIBE, 1, {"group_ids": ["negative"]}
    unknown = [{**ALTERED[0], "topic_name": "none"}]
    yield ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": "none", "topics": unknown}
    for group in ("", "none"):
        yield ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": group, "topics": [{"topic_name": "t"}]}
    yield ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": "none", "topics": []}
    described = [
        {"group_id": "none", "topics": None},
        {"group_id": "", "topics": []},
        {"group_id": "none", "topics": [{"topic_name": "none", "partitions": [0, 1]}]},
    ]
    yield ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, {"groups": described}


def _to_a_group_with_a_member() -> Iterator[Ask]:
    heartbeat = ApiKey.SHARE_GROUP_HEARTBEAT
    yield heartbeat, 1, SHARE_JOIN
    for member, epoch in (("n", 3), ("n", -1), ("m", 9)):
        yield heartbeat, 1, {"group_id": "g", "member_id": member, "member_epoch": epoch}
    yield ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": "g", "topics": ALTERED}
    yield ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": "g", "topics": [{"topic_name": "t"}]}
    yield from _of_other_protocols()
    yield ApiKey.DELETE_GROUPS, 2, {"groups_names": ["g"]}
    yield heartbeat, 1, {"group_id": "g", "member_id": "m", "member_epoch": -1}


def _of_other_protocols() -> Iterator[Ask]:
    yield ApiKey.JOIN_GROUP, 9, CLASSIC_JOIN
    yield ApiKey.JOIN_GROUP, 5, {**CLASSIC_JOIN, "member_id": "m"}
    member: Plain = {"group_id": "g", "member_id": "m", "generation_id": 2}
    yield ApiKey.SYNC_GROUP, 5, {**member, "assignments": []}
    yield ApiKey.HEARTBEAT, 4, member
    yield ApiKey.LEAVE_GROUP, 5, {"group_id": "g", "members": [{"member_id": "m"}]}
    yield ApiKey.LEAVE_GROUP, 2, {"group_id": "g", "member_id": "m"}
    offset = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    for version, epoch, member_id in ((9, -1, ""), (9, 2, "m"), (8, -1, ""), (8, 1, "m"), (2, -1, "")):
        commit: Plain = {"group_id": "g", "member_id": member_id, "topics": offset}
        yield ApiKey.OFFSET_COMMIT, version, {**commit, "generation_id_or_member_epoch": epoch}
    topics = [{"name": "t", "partition_indexes": [0]}]
    fetched: list[Plain] = [
        {"group_id": "g", "member_id": "m", "member_epoch": 2, "topics": topics},
        {"group_id": "g", "topics": topics},
    ]
    yield ApiKey.OFFSET_FETCH, 9, {"groups": fetched}
    yield ApiKey.OFFSET_FETCH, 8, {"groups": [{"group_id": "g", "topics": None}]}
    deleted = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    yield ApiKey.OFFSET_DELETE, 0, {"group_id": "g", "topics": deleted}
    yield ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, CONSUMER_JOIN
    yield ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, {"group_id": "g", "member_id": "m", "member_epoch": 2}
    for version in (5, 6):
        yield ApiKey.DESCRIBE_GROUPS, version, {"groups": ["g"]}
    yield ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ["g"]}


def _to_a_group_of_another_type() -> Iterator[Ask]:
    offset = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    commit: Plain = {"group_id": "offsets", "member_id": "", "topics": offset}
    yield ApiKey.OFFSET_COMMIT, 8, {**commit, "generation_id_or_member_epoch": -1}
    yield ApiKey.SHARE_GROUP_HEARTBEAT, 1, {**SHARE_JOIN, "group_id": "offsets"}
    leave = {"group_id": "offsets", "member_id": "m", "member_epoch": -1}
    yield ApiKey.SHARE_GROUP_HEARTBEAT, 1, leave
    yield ApiKey.SHARE_GROUP_DESCRIBE, 1, {"group_ids": ["offsets"]}
    yield ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": "offsets", "topics": ALTERED}
    yield ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": "offsets", "topics": [{"topic_name": "t"}]}


def test_responses_are_those_of_apache_kafka(connections: list[Connection]) -> None:
    for key, version, request in (
        *_before_the_group_exists(),
        *_to_a_group_with_a_member(),
        *_of_other_protocols(),
        *_to_a_group_of_another_type(),
    ):
        ours, theirs = (_shown(each.ask(key, version, request)) for each in connections)
        assert ours == theirs, (key, version, request, ours, theirs)


def _shown(response: Plain) -> str:
    """Return a response without topic IDs, and without the messages that have our own words."""
    text = re.sub(r"UUID\('[0-9a-f-]+'\)", "ID", repr(response))
    words = "member epoch|member's epoch|not a consumer group|partitionId|not be negative"
    own = rf"'error_message': [\"'][^\"']*({words})[^\"']*[\"']"
    return re.sub(own, "MESSAGE", re.sub(r"The member's", "The member epoch", text))
