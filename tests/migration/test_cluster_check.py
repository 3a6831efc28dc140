"""kafka-compat migrate check: the nodes of a cluster, here in the embedded store with the same nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint, PartitionState, TopicState
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.journal import JOURNAL_NAME
from kafka_compat.migration.cluster_check import check_nodes, check_protocol, check_together
from kafka_compat.migration.directories_check import CheckedDirectories
from kafka_compat.migration.findings import Finding, Level
from kafka_compat.migration.live_check import version_of
from kafka_compat.migration.nodes import Nodes, read_nodes
from kafka_compat.migration.settings_check import check_settings
from kafka_compat.protocol.kafka_versions import VERSIONS

CONFIG = {
    "broker.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "/var/lib/kafka",
    "zookeeper.connect": "127.0.0.1:2181",
}
TOPIC = TopicState("orders", UUID(int=7), {0: (1, 2), 1: (2, 1)})
HEALTHY = {
    "/cluster/id": znodes.encode_cluster_id("abc"),
    "/controller": znodes.encode_controller(znodes.ControllerInfo(1, 0)),
    "/feature": znodes.encode_feature({}),
    **{
        znodes.broker_path(number): znodes.encode_broker(
            BrokerInfo(number, (Endpoint("PLAINTEXT", "127.0.0.1", 9090 + number),)), 0
        )
        for number in (1, 2)
    },
    znodes.topic_path("orders"): znodes.encode_topic(TOPIC),
    **{
        znodes.partition_state_path("orders", index): znodes.encode_partition_state(
            PartitionState(1, 0, (1, 2), 1)
        )
        for index in (0, 1)
    },
}


async def _nodes(tmp_path: Path, changes: Mapping[str, bytes | None]) -> Nodes:
    session = EmbeddedMetadataStore(str(tmp_path / JOURNAL_NAME)).connect()
    for path, data in {**HEALTHY, **changes}.items():
        if data is not None:
            await session.put(path, data)
    return await read_nodes(session)


async def _found(tmp_path: Path, changes: Mapping[str, bytes | None]) -> list[Finding]:
    found = check_nodes(await _nodes(tmp_path, changes), BrokerConfig(CONFIG), "127.0.0.1:2181")
    return [each for each in found if each.level is not Level.INFO]


async def test_nothing_stands_in_the_way_of_a_healthy_cluster(tmp_path: Path) -> None:
    assert await _found(tmp_path, {}) == []


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _state(leader: int, isr: tuple[int, ...]) -> bytes:
    return znodes.encode_partition_state(PartitionState(leader, 0, isr, 1))


@pytest.mark.parametrize(
    ("path", "data", "broker", "text"),
    [
        ("/cluster/id", None, None, "there is no cluster"),
        ("/controller", None, None, "no broker is the controller"),
        (
            "/controller",
            _json({"version": 2, "brokerid": 3000, "timestamp": "0", "kraftControllerEpoch": 4}),
            None,
            "KRaft controllers manage this cluster",
        ),
        ("/migration", b"{}", None, "a migration to KRaft was begun"),
        ("/feature", znodes.encode_feature({"metadata.version": 7}), None, "metadata.version=7"),
        (
            znodes.topic_path("orders"),
            znodes.encode_topic(TOPIC._replace(adding_replicas={1: (3,)})),
            None,
            "reassignments are pending: orders-1",
        ),
        ("/admin/reassign_partitions", b"{}", None, "/admin/reassign_partitions exists"),
        ("/admin/delete_topics/orders", b"", None, "topics are being deleted: orders"),
        (znodes.partition_state_path("orders", 1), _state(-1, (2,)), None, "without a leader: orders-1"),
        (znodes.partition_state_path("orders", 1), None, None, "without a state"),
        (
            znodes.partition_state_path("orders", 1),
            _state(1, (1,)),
            2,
            "1 replicas of this broker are not in sync",
        ),
        (znodes.topic_path("orders"), b"{", None, "/brokers/topics/orders: "),
        (
            "/config/topics/orders",
            znodes.encode_config({"remote.storage.enable": "true"}),
            None,
            "remote.storage.enable=true for topics orders",
        ),
        (
            "/config/brokers/2",
            znodes.encode_config({"listener.name.external.ssl.keystore.password": "hunter2"}),
            2,
            "a password that Kafka encrypted",
        ),
        (
            "/config/brokers/<default>",
            znodes.encode_config({"log.cleaner.threads": "none"}),
            None,
            "log.cleaner.threads=none",
        ),
    ],
)
async def test_what_stands_in_the_way_is_reported(
    tmp_path: Path, path: str, data: bytes | None, broker: int | None, text: str
) -> None:
    found = [each for each in await _found(tmp_path, {path: data}) if each.level is Level.CHANGE]
    assert [(each.broker, text in each.text) for each in found] == [(broker, True)]
    assert found[0].remedy
    assert "hunter2" not in found[0].text


@pytest.mark.parametrize(
    ("path", "data", "text"),
    [
        (
            "/config/topics/orders",
            znodes.encode_config({"message.format.version": "0.10.2"}),
            "message.format.version=0.10.2 for topics orders",
        ),
        ("/config/topics/orders", znodes.encode_config({"my.setting": "1"}), "my.setting"),
        (
            znodes.topic_path("orders"),
            znodes.encode_topic(TOPIC._replace(topic_id=None)),
            "topics without an ID, created before Kafka 2.8: orders",
        ),
        (
            "/kafka_compat/feature_levels",
            znodes.encode_feature_levels({"group.version": 1}),
            "/kafka_compat/feature_levels: group.version=1",
        ),
        (
            "/config/brokers/1",
            znodes.encode_config({"metric.reporters": "com.example.Reporter"}),
            "metric.reporters=com.example.Reporter: has no effect here",
        ),
    ],
)
async def test_what_differs_does_not_stand_in_the_way(
    tmp_path: Path, path: str, data: bytes, text: str
) -> None:
    (finding,) = await _found(tmp_path, {path: data})
    assert (finding.level, text in finding.text) == (Level.DIFFERS, True)


async def test_partitions_on_one_broker_only_are_listed_for_it(tmp_path: Path) -> None:
    topic = TopicState("orders", UUID(int=7), {0: (1,), 1: (2, 1)})
    changes = {
        znodes.topic_path("orders"): znodes.encode_topic(topic),
        znodes.partition_state_path("orders", 0): _state(1, (1,)),
    }
    (finding,) = await _found(tmp_path, changes)
    assert (finding.broker, finding.level) == (1, Level.DIFFERS)
    assert finding.text == "1 partitions are only on this broker: orders-0"


async def test_brokers_are_compared_with_the_cluster_and_each_other(tmp_path: Path) -> None:
    nodes = await _nodes(tmp_path, {})
    checked = [
        check_settings(CONFIG | {"inter.broker.protocol.version": "3.3"}),
        check_settings(CONFIG | {"broker.id": "2"}),
    ]
    directories: dict[int | None, CheckedDirectories] = {
        1: CheckedDirectories(1, "xyz", {"orders": UUID(int=8)}, [])
    }
    texts = [each.text for each in check_together(nodes, checked, directories)]
    assert texts == [
        "inter.broker.protocol.version differs: 3.3-IV3 on 1, 3.9-IV0 on 2",
        "meta.properties has cluster.id=xyz, but ZooKeeper has abc",
        "partition.metadata has another topic ID than ZooKeeper: orders",
    ]


def test_a_protocol_newer_than_a_running_broker_is_reported() -> None:
    checked = [check_settings(CONFIG), check_settings(CONFIG | {"inter.broker.protocol.version": "3.3"})]
    (finding,) = check_protocol(checked, {2: "3.6", 3: "3.9"})
    assert finding.text == (
        "inter.broker.protocol.version is not set (3.9 in kafka-compat), but broker 2 runs Kafka 3.6"
    )
    assert finding.remedy == "set inter.broker.protocol.version=3.6 on all brokers"


@pytest.mark.parametrize("version", ["2.8", "3.3", "3.9"])
def test_the_version_of_a_broker_is_recognized_by_its_apis(version: str) -> None:
    apis = {}
    for word in VERSIONS[version].split():
        key, _, versions = word.partition(":")
        low, high = versions.split("-")
        apis[int(key)] = int(low), int(high)
    assert version_of(apis) == version
    assert version_of({**apis, 0: (0, 99)}) is None
