"""inter.broker.protocol.version: the protocol between brokers, as Kafka 3.9's MetadataVersion defines it."""

from __future__ import annotations

import pytest

from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.config.inter_broker_protocol import LATEST, InterBrokerProtocol, inter_broker_protocol

ZOOKEEPER = {"zookeeper.connect": "127.0.0.1:2181"}
SETTING = "inter.broker.protocol.version"


def _requests(protocol: InterBrokerProtocol) -> tuple[int, ...]:
    """Return the versions of Fetch, ListOffsets, LeaderAndIsr, UpdateMetadata and StopReplica."""
    return (
        protocol.fetch,
        protocol.list_offsets,
        protocol.leader_and_isr,
        protocol.update_metadata,
        protocol.stop_replica,
    )


@pytest.mark.parametrize(
    ("version", "name", "requests"),
    [
        ("2.8", "2.8-IV1", (12, 6, 5, 7, 3)),
        ("3.0-IV0", "3.0-IV0", (12, 6, 5, 7, 3)),
        ("3.0", "3.0-IV1", (12, 7, 5, 7, 3)),
        ("3.1", "3.1-IV0", (13, 7, 5, 7, 3)),
        ("3.2", "3.2-IV0", (13, 7, 6, 7, 3)),
        ("3.3", "3.3-IV3", (13, 7, 6, 7, 3)),
        ("3.4", "3.4-IV0", (13, 7, 7, 8, 4)),
        ("3.5-IV0", "3.5-IV0", (14, 8, 7, 8, 4)),
        ("3.5", "3.5-IV2", (15, 8, 7, 8, 4)),
        ("3.6", "3.6-IV2", (15, 8, 7, 8, 4)),
        ("3.7", "3.7-IV4", (16, 8, 7, 8, 4)),
        ("3.8", "3.8-IV0", (16, 8, 7, 8, 4)),
        ("3.9.1", "3.9-IV0", (17, 9, 7, 8, 4)),
    ],
)
def test_brokers_use_the_requests_of_the_protocol_version(
    version: str, name: str, requests: tuple[int, ...]
) -> None:
    protocol = BrokerConfig({**ZOOKEEPER, SETTING: version}).inter_broker_protocol
    assert (protocol.name, _requests(protocol)) == (name, requests)


def test_older_protocols_use_the_nodes_and_requests_of_older_brokers() -> None:
    oldest, middle = inter_broker_protocol("2.8"), inter_broker_protocol("3.3")
    assert not oldest.controller_allocates_producer_ids and middle.controller_allocates_producer_ids
    assert not oldest.recovers_leaders and middle.recovers_leaders
    assert (oldest.feature_node, middle.feature_node) == (1, 2)
    assert [inter_broker_protocol(text).alter_partition for text in ("2.8", "3.2", "3.3", "3.5")] == [
        0,
        1,
        2,
        3,
    ]
    assert inter_broker_protocol("3.9") == LATEST


@pytest.mark.parametrize("version", ["2.7", "2.8-IV0", "0.11.0", "4.0", "3.9-IV7"])
def test_a_protocol_that_this_broker_does_not_speak_aborts_startup(version: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig({**ZOOKEEPER, SETTING: version})
    assert f"Invalid value {version} for configuration {SETTING}" in refused.value.in_full
    assert "expected 2.8 to 3.9" in refused.value.in_full


def test_the_protocol_is_that_of_kafka_3_9_without_zookeeper() -> None:
    assert BrokerConfig({SETTING: "2.4"}).inter_broker_protocol is LATEST
