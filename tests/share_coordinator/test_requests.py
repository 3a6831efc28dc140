"""Requests to the share coordinator of a standalone broker, across restarts."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.share_coordinator.state_requests import (
    INITIALIZE,
    READ,
    SETTINGS,
    SUMMARY,
    WRITE,
    StateClient,
    part,
    random_requests,
)
from tests.support.process import wait_until
from tests.support.servers import StartBroker

TOPICS = {"one": 3, "two": 3}
SUMMARIES = [
    part(group, topic, *({"partition": index, "leader_epoch": 0} for index in range(3)))
    for group in ("g", "h:i")
    for topic in ("one", "two")
]


def states(client: StateClient) -> list[object]:
    """Return the states of all share-partitions, without changing them."""
    return [client.state(SUMMARY, 1, summary) for summary in SUMMARIES]


@pytest.mark.parametrize("kill", [False, True])
def test_states_survive_a_restart(start_broker: StartBroker, kill: bool) -> None:
    broker = start_broker(SETTINGS | {"share.coordinator.state.topic.prune.interval.ms": "200"})
    client = StateClient(broker, TOPICS)
    client.wait_for_coordinator("g", "one")
    for request in random_requests(7, 150):
        client.state(*request)
    before = states(client)
    client.close()
    broker.restart(kill=kill)
    client = StateClient(broker, TOPICS)
    client.wait_for_coordinator("g", "one")
    assert states(client) == before
    reads = [
        client.state(READ, 0, part(group, topic, {"partition": index, "leader_epoch": 100}))
        for group in ("g", "h:i")
        for topic in ("one", "two")
        for index in range(3)
    ]
    assert any(read["results"][0]["partitions"][0]["state_batches"] for read in reads)
    client.close()


def test_the_log_is_pruned_while_the_broker_runs(start_broker: StartBroker) -> None:
    broker = start_broker(
        SETTINGS
        | {
            "share.coordinator.state.topic.prune.interval.ms": "100",
            "share.coordinator.cold.partition.snapshot.interval.ms": "100",
        }
    )
    client = StateClient(broker, TOPICS)
    client.wait_for_coordinator("g", "one")
    client.state(INITIALIZE, 0, part("g", "one", {"partition": 0, "state_epoch": 1, "start_offset": 0}))
    client.state(INITIALIZE, 0, part("g", "two", {"partition": 0, "state_epoch": 1, "start_offset": 0}))
    write = {"partition": 0, "state_epoch": 1, "leader_epoch": 0, "start_offset": 1}

    def start_offset_after_a_write() -> int:
        client.state(WRITE, 1, part("g", "one", write))
        return client.start_offset()

    wait_until(lambda: start_offset_after_a_write() > 3, 30, "deletion of the first records")
    client.close()


def test_the_state_topic_has_the_settings_of_kafka(start_broker: StartBroker) -> None:
    broker = start_broker()
    client = StateClient(broker, TOPICS)
    client.wait_for_coordinator("g", "one")
    response = client.ask(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        resources=[{"resource_type": 2, "resource_name": "__share_group_state", "configuration_keys": None}],
    )
    set_values = {
        config["name"]: config["value"]
        for config in response["results"][0]["configs"]
        if config["config_source"] == 1
    }
    assert set_values == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }
    # A single replica suffices on a standalone broker.
    initialized = client.state(
        INITIALIZE, 0, part("g", "one", {"partition": 0, "state_epoch": 1, "start_offset": 0})
    )
    assert initialized["results"][0]["partitions"][0]["error_code"] == ErrorCode.NONE
    (topic,) = client.ask(ApiKey.METADATA, 12, topics=[{"name": "__share_group_state"}])["topics"]
    assert topic["is_internal"]
    assert len(topic["partitions"]) == 50
    client.close()


def test_share_coordinators_are_not_found_without_share_groups(start_broker: StartBroker) -> None:
    client = StateClient(start_broker({"kafka.compat.share.version": "0"}), TOPICS)
    assert client.find(client.key("g", "one", 0))["error_code"] == ErrorCode.INVALID_REQUEST
    client.close()


def test_states_of_a_deleted_topic_are_deleted(start_broker: StartBroker) -> None:
    broker = start_broker(SETTINGS)
    client = StateClient(broker, TOPICS)
    client.wait_for_coordinator("g", "one")
    client.state(INITIALIZE, 0, part("g", "one", {"partition": 0, "state_epoch": 1, "start_offset": 0}))
    client.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "one", "topic_id": UUID(int=0)}], timeout_ms=30_000)
    wait_until(lambda: client.records()[-1] == (("g", "one", 0), None), 30, "a tombstone")
    client.close()
