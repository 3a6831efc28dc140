"""State that survives a stop, and a kill right after the response."""

from __future__ import annotations

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.restart.client import (
    alter_config,
    commit_offset,
    committed_offset,
    config_of,
    create_topic,
    new_producer_id,
    produce,
    topic_of,
    values_of,
)
from tests.support.servers import KafkaCompatBroker, StartBroker

TOPIC, BROKER = 2, 4
DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG = 1, 2

both_endings = pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])


@both_endings
def test_topic_ids_partitions_and_settings_survive_a_restart(broker: KafkaCompatBroker, kill: bool) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "orders", 4, {"retention.ms": "123456"})
        create_topic(connection, "plain")
        before = [topic_of(connection, name) for name in ("orders", "plain")]
        alter_config(connection, TOPIC, "orders", {"max.message.bytes": "2000"})
        alter_config(connection, BROKER, "1", {"log.retention.bytes": "7654321"})
        alter_config(connection, BROKER, "", {"log.segment.bytes": "77777"})
    broker.restart(kill=kill)
    with Connection(broker.address) as connection:
        after = [topic_of(connection, name) for name in ("orders", "plain")]
        assert list(map(_identity, after)) == list(map(_identity, before))
        orders = config_of(connection, TOPIC, "orders")
        assert orders["retention.ms"] == ("123456", DYNAMIC_TOPIC_CONFIG)
        assert orders["max.message.bytes"] == ("2000", DYNAMIC_TOPIC_CONFIG)
        assert orders["retention.bytes"][0] == "7654321"
        assert orders["segment.bytes"][0] == "77777"
        assert config_of(connection, BROKER, "1")["log.retention.bytes"] == ("7654321", DYNAMIC_BROKER_CONFIG)
        assert produce(connection, "orders", [b"x" * 3000]).error == ErrorCode.MESSAGE_TOO_LARGE


def _identity(topic: Plain | None) -> tuple[object, ...]:
    assert topic is not None
    return topic["name"], topic["topic_id"], [item["partition_index"] for item in topic["partitions"]]


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_record_survives_an_immediate_kill(broker: KafkaCompatBroker, acks: int) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
    expected = []
    for number in range(4):
        with Connection(broker.address) as connection:
            value = b"record %d" % number
            assert produce(connection, "t", [value], acks=acks).offset == number
            broker.kill()
        expected.append(value)
        broker.start()
    with Connection(broker.address) as connection:
        assert values_of(connection, "t") == expected


@both_endings
def test_committed_offsets_survive_a_restart(broker: KafkaCompatBroker, kill: bool) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
        for offset in range(5):
            commit_offset(connection, "readers", "t", offset, f"note {offset}")
    broker.restart(kill=kill)
    with Connection(broker.address) as connection:
        assert committed_offset(connection, "readers", "t") == (4, "note 4")
        assert committed_offset(connection, "strangers", "t") == (-1, "")


@both_endings
def test_members_stay_in_their_group_and_no_rebalance_starts_after_a_restart(
    broker: KafkaCompatBroker, kill: bool
) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
        commit_offset(connection, "team", "t", 0)
        member_id, generation = _join(connection, "team")
    broker.restart(kill=kill)
    with Connection(broker.address) as connection:
        connection.ask(ApiKey.FIND_COORDINATOR, 3, {"key": "team", "key_type": 0})
        request = {"group_id": "team", "generation_id": generation, "member_id": member_id}
        assert connection.ask(ApiKey.HEARTBEAT, 4, request)["error_code"] == 0
        described = connection.ask(ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["team"]})["groups"][0]
        assert described["group_state"] == "Stable"
        assert [member["member_id"] for member in described["members"]] == [member_id]
        assert described["members"][0]["member_assignment"] == b"all of it"


def _join(connection: Connection, group: str) -> tuple[str, int]:
    join = {
        "group_id": group,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\0\0\0\0\0\xff\xff\xff\xff"}],
    }
    member_id = connection.ask(ApiKey.JOIN_GROUP, 7, join)["member_id"]
    joined = connection.ask(ApiKey.JOIN_GROUP, 7, {**join, "member_id": member_id})
    assert joined["error_code"] == 0, joined
    generation: int = joined["generation_id"]
    sync = {
        "group_id": group,
        "generation_id": generation,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": member_id, "assignment": b"all of it"}],
    }
    assert connection.ask(ApiKey.SYNC_GROUP, 5, sync)["error_code"] == 0
    return member_id, generation


@both_endings
def test_a_producers_sequence_continues_after_a_restart(broker: KafkaCompatBroker, kill: bool) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
        producer = new_producer_id(connection)
        for sequence in range(6):
            assert (
                produce(connection, "t", [b"%d" % sequence], producer=(*producer, sequence)).offset
                == sequence
            )
    broker.restart(kill=kill)
    with Connection(broker.address) as connection:
        repeated = produce(connection, "t", [b"5"], producer=(*producer, 5))
        assert repeated == (ErrorCode.NONE, 5)
        skipped = produce(connection, "t", [b"8"], producer=(*producer, 8))
        assert skipped.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce(connection, "t", [b"6"], producer=(*producer, 6)) == (ErrorCode.NONE, 6)
        assert new_producer_id(connection)[0] > producer[0]
        assert values_of(connection, "t") == [b"%d" % number for number in range(7)]


def test_leader_epochs_increase_with_restarts_and_have_end_offsets(broker: KafkaCompatBroker) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
    ends = {}
    for life in range(3):
        with Connection(broker.address) as connection:
            epoch = _epoch(connection)
            ends[epoch] = produce(connection, "t", [b"x"] * (life + 1)).offset + life + 1
        broker.restart(kill=life == 1)
    assert list(ends) == sorted(ends) and len(ends) == 3
    with Connection(broker.address) as connection:
        assert _epoch(connection) > max(ends)
        for epoch, end in ends.items():
            assert _end_of_epoch(connection, epoch) == (epoch, end)
        assert _end_of_epoch(connection, _epoch(connection)) == (_epoch(connection), 6)


def _epoch(connection: Connection) -> int:
    topic = topic_of(connection, "t")
    assert topic is not None
    epoch: int = topic["partitions"][0]["leader_epoch"]
    return epoch


def _end_of_epoch(connection: Connection, epoch: int) -> tuple[int, int]:
    where = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}
    request = {"replica_id": -1, "topics": [{"topic": "t", "partitions": [where]}]}
    answer = connection.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request)
    found = answer["topics"][0]["partitions"][0]
    return found["leader_epoch"], found["end_offset"]


def test_deleted_records_stay_deleted_after_a_kill(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
        for number in range(10):
            produce(connection, "t", [b"%d" % number])
        where = {"partition_index": 0, "offset": 7}
        request = {"topics": [{"name": "t", "partitions": [where]}], "timeout_ms": 10_000}
        answer = connection.ask(ApiKey.DELETE_RECORDS, 2, request)
        assert answer["topics"][0]["partitions"][0]["low_watermark"] == 7
    broker.restart(kill=True)
    with Connection(broker.address) as connection:
        assert values_of(connection, "t") == [b"7", b"8", b"9"]
