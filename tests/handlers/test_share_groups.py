"""Requests to share groups over the wire. tests/groups/share contains the rules."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.support.servers import KafkaCompatBroker

JOIN: Plain = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}


def test_members_join_are_described_and_leave(broker: KafkaCompatBroker) -> None:
    with Connection(broker.address) as connection:
        topic = {"name": "t", "num_partitions": 2, "replication_factor": 1}
        connection.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000})
        find = {"key_type": 0, "coordinator_keys": ["g"]}
        connection.ask(ApiKey.FIND_COORDINATOR, 6, find)
        joined = connection.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, JOIN)
        assert (joined["error_code"], joined["member_epoch"]) == (0, 2)
        assert joined["heartbeat_interval_ms"] == 5_000
        listed = connection.ask(ApiKey.LIST_GROUPS, 5, {"states_filter": [], "types_filter": ["Share"]})
        (group,) = listed["groups"]
        assert (group["group_type"], group["protocol_type"], group["group_state"]) == (
            "share",
            "share",
            "Stable",
        )
        described = connection.ask(ApiKey.SHARE_GROUP_DESCRIBE, 1, {"group_ids": ["g", "none"]})["groups"]
        assert (described[0]["group_state"], described[0]["assignor_name"]) == ("Stable", "simple")
        assert [each["member_id"] for each in described[0]["members"]] == ["m"]
        assert described[1]["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
        request: Plain = {"group_id": "g", "topics": []}
        altered = connection.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, request)
        assert altered["error_code"] == ErrorCode.NON_EMPTY_GROUP
        wanted = {"groups": [{"group_id": "g", "topics": [{"topic_name": "t", "partitions": [0]}]}]}
        offsets = connection.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, wanted)["groups"][0]
        assert offsets["topics"][0]["partitions"][0]["lag"] == -1
        leave = {"group_id": "g", "member_id": "m", "member_epoch": -1}
        assert connection.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, leave)["member_epoch"] == -1
        deleted = connection.ask(
            ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": "g", "topics": [{"topic_name": "x"}]}
        )
        assert deleted["responses"][0]["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_share_groups_need_the_feature(shared_broker: KafkaCompatBroker) -> None:
    with Connection(shared_broker.address) as connection:
        response = connection.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, JOIN)
        assert response["error_code"] == ErrorCode.UNSUPPORTED_VERSION
