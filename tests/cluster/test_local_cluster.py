"""`serve --brokers N`: a cluster in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.cli.local_brokers import broker_settings
from kafka_compat.cli.local_cluster import LocalCluster
from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.config import BrokerConfig
from kafka_compat.config.environment import TopicToCreate
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest
from tests.cluster.embedded import EmbeddedCluster, until


def test_each_broker_has_its_own_port_and_directory() -> None:
    config = BrokerConfig.from_properties(
        {"listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/data", "broker.id": "7"}
    )
    settings = broker_settings(config, 3, 3)
    assert settings["broker.id"] == "3"
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:9094"
    assert settings["log.dirs"] == "/data/broker-3"


def test_internal_topics_of_a_two_broker_cluster_have_two_replicas() -> None:
    settings = broker_settings(BrokerConfig.from_properties({}), 1, 2)
    assert settings["offsets.topic.replication.factor"] == "2"


@pytest.mark.parametrize("starts", [1, 2])
async def test_brokers_find_each_other_at_every_startup(tmp_path: Path, starts: int) -> None:
    config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})
    for _ in range(starts):
        cluster = LocalCluster(config, 3)
        await cluster.start()
        await until(lambda: all(len(broker.services.metadata.brokers) == 3 for broker in cluster.brokers))  # noqa: B023
        await cluster.stop()


async def test_the_api_versions_response_lists_inter_broker_apis(tmp_path: Path) -> None:
    config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})
    cluster = LocalCluster(config, 2)
    await cluster.start()
    client = BrokerClient(*cluster.brokers[0].addresses["PLAINTEXT"], "test")
    response = await client.send(ApiKey.API_VERSIONS, 2, ApiVersionsRequest())
    told = {item.api_key: item.max_version for item in response.api_keys}
    assert (told[ApiKey.LEADER_AND_ISR], told[ApiKey.UPDATE_METADATA], told[ApiKey.STOP_REPLICA]) == (7, 8, 4)
    await client.close()
    await cluster.stop()


async def test_topics_from_the_command_line_are_created_when_enough_brokers_have_registered(
    tmp_path: Path,
) -> None:
    """In a container cluster, each broker gets the same list of topics, before the other brokers have
    started.
    """
    cluster = EmbeddedCluster(tmp_path)
    wanted = [TopicToCreate("orders", 2, 3, None), TopicToCreate("state", 1, 2, "compact")]
    for broker_id in (1, 2, 3):
        broker = await cluster.start_broker(broker_id)
        await broker.membership.create_wanted_topics(wanted)
    await until(lambda: cluster.isr("orders", 1) == {1, 2, 3} and cluster.leader("state") > 0)
    leader = cluster.brokers[cluster.leader("state")]
    assert leader.overrides("state") == {"cleanup.policy": "compact"}
    await cluster.stop()
