"""Malformed nodes: each affects only the object that it describes, is reported with its path, and takes
effect again once repaired.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafka_compat.protocol.messages.delete_topics import DeleteTopicsRequest
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.cluster.embedded import SETTLE_S, EmbeddedCluster, until
from tests.support import campaign

VICTIM = "/brokers/topics/victim"
STATE = f"{VICTIM}/partitions/0/state"
BYSTANDER = "bystander"
BROKERS = 3


class Damage(NamedTuple):
    """A payload for a node. `told`: whether a broker must log an error about it."""

    path: str
    data: bytes | None
    told: bool = True


def _json_damage(path: str, *others: bytes) -> list[Damage]:
    kinds = (b"", b"\xff\xfe{", b"{", b"[]", b'{"version":1}', b"[" * 50_000)
    return [Damage(path, data) for data in (*kinds, *others)]


DAMAGES = [
    *_json_damage(
        VICTIM,
        b'{"partitions":{"0":"x"},"version":3}',
        b'{"partitions":{"0":[1,1]},"version":3}',
        b'{"partitions":{"99999999999":[1]},"version":3}',
        b'{"partitions":{"0":[1,2,3]},"topic_id":"?","version":3}',
    ),
    *_json_damage(
        STATE,
        b'{"controller_epoch":"x","leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":99999999999,"isr":[1]}',
    ),
    *_json_damage("/brokers/ids/42", b'{"version":5,"endpoints":5}', b'{"endpoints":["PLAINTEXT://h:x"]}'),
    Damage("/brokers/ids/x", b"{}"),
    Damage(
        "/brokers/ids/42", b'{"version":5,"endpoints":["OTHER://h:1"],"listener_security_protocol_map":{}}'
    ),
    *_json_damage("/admin/reassign_partitions", b'{"version":1,"partitions":5}'),
    Damage(
        "/admin/reassign_partitions",
        b'{"version":1,"partitions":[{"topic":"nobody","partition":0,"replicas":[]},'
        b'{"topic":"bystander","partition":7,"replicas":[99]},'
        b'{"topic":"bystander","partition":0,"replicas":[]}]}',
        told=False,
    ),
    *_json_damage("/admin/preferred_replica_election", b'{"partitions":[{"topic":5,"partition":0}]}'),
    *_json_damage("/isr_change_notification/isr_change_0000000077", b'{"partitions":5}'),
    *_json_damage("/log_dir_event_notification/log_dir_event_0000000077", b'{"broker":"x"}'),
    Damage("/admin/delete_topics/nobody", b"{", told=False),
    *(
        damage
        for damage in _json_damage("/config/topics/victim", b'{"config":{"retention.ms":[]}}')
        if damage.data not in (b"", b'{"version":1}')
    ),
    *_json_damage("/config/changes/config_change_0000000777"),
    Damage("/config/changes/zzz", b"{", told=False),
    *_json_damage("/controller"),
    Damage("/controller", b'{"brokerid":"x"}'),
    *(Damage("/controller_epoch", data) for data in (b"", b"x", b"-5", b"99999999999")),
    *(
        damage
        for damage in _json_damage("/feature", b'{"status":1,"features":{"f":{}}}')
        if damage.data != b'{"version":1}'
    ),
    Damage("/brokers/topics/" + "a" * 300, b'{"partitions":{"0":[1,2,3]},"version":1}'),
    Damage("/brokers/topics/empty", b'{"partitions":{"0":[]},"version":1}', told=False),
    Damage("/brokers/topics/gap", b'{"partitions":{"2":[1,2,3]},"version":1}', told=False),
    Damage(
        "/brokers/topics/leaving",
        b'{"partitions":{"0":[1]},"removing_replicas":{"0":[1]},"adding_replicas":{"5":[9]},"version":3}',
    ),
    Damage("/brokers/topics/away", b'{"partitions":{"0":[77]},"version":1}', told=False),
    Damage("/brokers/topics/alone/partitions/0/state", b"{", told=False),
]


class Case:
    """A cluster with two topics, and a session of a different client."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.store: MetadataStore = cluster.tree.connect()
        self._count = 0

    async def lives(self) -> None:
        """Check that other topics can be created, written, reassigned and deleted."""
        self._count += 1
        name = f"new-{self._count}"
        assert await self.cluster.create_topic(name) == ErrorCode.NONE
        await until(lambda: self.cluster.leader(name) > 0)
        assert await self.cluster.produce(self.cluster.leader(name), name, b"1") == ErrorCode.NONE
        first = self._replicas()[0]
        target = (*self._replicas()[1:], first)
        request = AlterPartitionReassignmentsRequest(
            topics=[
                ReassignableTopic(
                    name=BYSTANDER,
                    partitions=[ReassignablePartition(partition_index=0, replicas=list(target))],
                )
            ]
        )
        controller_id = self.cluster.controller.broker_id
        answer = await self.cluster.send(controller_id, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
        assert answer.error_code == ErrorCode.NONE
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        await until(lambda: self._replicas() == target)
        assert await self.cluster.produce(self.cluster.leader(BYSTANDER), BYSTANDER, b"1") == ErrorCode.NONE
        assert await self.delete(name) == ErrorCode.NONE
        await until(
            lambda: all(name not in broker.metadata.topics for broker in self.cluster.brokers.values())
        )

    async def delete(self, name: str) -> ErrorCode:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000)
        answer = await self.cluster.send(self.cluster.controller.broker_id, ApiKey.DELETE_TOPICS, 5, request)
        return ErrorCode(answer.responses[0].error_code)

    def _replicas(self) -> tuple[int, ...]:
        found = self.cluster.controller.metadata.partition(BYSTANDER, 0)
        assert found is not None
        return found.replicas

    def epoch(self) -> int:
        """Return the controller epoch, or -1 if there is no controller."""
        terms = [self.cluster.epoch(broker) for broker in self.cluster.brokers.values()]
        return max((term.controller_epoch for term in terms if term is not None), default=-1)

    async def fail_over(self) -> None:
        """Delete the controller's node, and wait until a new controller is elected."""
        before = self.epoch()
        await self.store.delete("/controller")
        await until(lambda: self.epoch() > before)

    async def break_node(self, damage: Damage) -> bytes | None:
        """Write the payload, and return the previous one, or None."""
        try:
            before, _ = await self.store.get(damage.path)
        except NoNode:
            before = None
        await self.store.put(damage.path, damage.data)
        return before

    def folders(self) -> list[Path]:
        """Return the victim's log directories."""
        return sorted(self.cluster.directory.glob("broker-*/victim-0"))


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[Case]:
    cluster = EmbeddedCluster(tmp_path, BROKERS)
    await cluster.start()
    for name in ("victim", BYSTANDER):
        assert await cluster.create_topic(name) == ErrorCode.NONE
        assert await cluster.produce(cluster.leader(name), name, b"kept") == ErrorCode.NONE
    yield Case(cluster)
    await cluster.stop()


def _told(caplog: pytest.LogCaptureFixture, path: str) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.ERROR and f": {path}: " in record.getMessage()
    ]


def _chosen() -> list[Damage]:
    """Return all damages with --campaign; otherwise the first and the last for each path: one that is not
    JSON, and one with invalid values.
    """
    if campaign.enabled():
        return DAMAGES
    everyday: list[Damage] = []
    for _, group in itertools.groupby(DAMAGES, lambda damage: damage.path):
        found = list(group)
        everyday += {found[0].data: found[0], found[-1].data: found[-1]}.values()
    return everyday


@pytest.mark.parametrize(
    "damage", _chosen(), ids=lambda damage: f"{damage.path[:50]} {damage.data[:40] if damage.data else '-'}"
)
async def test_the_cluster_keeps_a_controller_despite_malformed_nodes(
    case: Case, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = case.epoch()
    before = await case.break_node(damage)
    await case.lives()
    assert case.epoch() == epoch or damage.path == "/controller_epoch"
    await case.fail_over()
    await case.lives()
    assert len(case.folders()) == BROKERS
    told = _told(caplog, damage.path)
    # Each broker logs the error once: the brokers that were controller, and those that read the settings.
    assert bool(told) == damage.told
    assert len(told) <= BROKERS
    assert not [record for record in caplog.records if record.exc_info]

    if before is not None:
        if not damage.path.startswith("/controller"):
            await case.store.set(damage.path, before)
    elif await case.store.exists(damage.path) is not None:
        await case.store.delete_tree(damage.path)
    await case.lives()
    await until(lambda: case.cluster.leader("victim") > 0)
    assert await case.cluster.values(case.cluster.leader("victim"), "victim") == [b"kept"]
    assert await case.cluster.produce(case.cluster.leader("victim"), "victim", b"2") == ErrorCode.NONE
    assert await case.delete("victim") == ErrorCode.NONE
    await until(lambda: not case.folders())


@pytest.mark.parametrize("path", [VICTIM, STATE])
async def test_a_malformed_topic_is_unavailable_after_a_restart_until_it_is_repaired(
    case: Case, path: str
) -> None:
    """Until it is repaired, the topic has no leader, cannot be created again, and keeps its records."""
    for broker_id in list(case.cluster.brokers):
        await case.cluster.stop_broker(broker_id, controlled=False)
    before = await case.break_node(Damage(path, b"{"))
    await case.cluster.start()
    await case.lives()
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="victim")], allow_auto_topic_creation=True)
    async with asyncio.timeout(SETTLE_S / 3):
        answer = await case.cluster.send(1, ApiKey.METADATA, 9, wanted)
    assert answer.topics[0].error_code == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert await case.cluster.create_topic("victim") == ErrorCode.TOPIC_ALREADY_EXISTS
    assert (await case.store.get(path))[0] == b"{"
    assert len(case.folders()) == BROKERS

    await case.store.set(path, before)
    await until(lambda: case.cluster.leader("victim") > 0)
    assert await case.cluster.values(case.cluster.leader("victim"), "victim") == [b"kept"]
    assert await case.cluster.produce(case.cluster.leader("victim"), "victim", b"2") == ErrorCode.NONE


async def test_a_topic_deletion_waits_until_its_node_is_repaired(case: Case) -> None:
    before = await case.break_node(Damage(VICTIM, b"{"))
    await case.fail_over()
    await case.store.create("/admin/delete_topics/victim")
    await case.lives()
    assert len(case.folders()) == BROKERS
    assert await case.store.exists("/admin/delete_topics/victim") is not None
    await case.store.set(VICTIM, before)
    await until(lambda: not case.folders())


async def test_a_leader_with_a_malformed_registration_continues_to_serve_clients(case: Case) -> None:
    leader = case.cluster.leader("victim")
    await case.break_node(Damage(f"/brokers/ids/{leader}", b"{"))
    await case.lives()
    assert case.cluster.leader("victim") == leader


async def test_unreadable_settings_do_not_cause_records_to_be_deleted(case: Case) -> None:
    await case.break_node(Damage("/config/topics/victim", b'{"config":{"retention.ms":[]}}'))
    for broker_id in list(case.cluster.brokers):
        await case.cluster.stop_broker(broker_id, controlled=False)
    await case.cluster.start()
    await until(lambda: case.cluster.leader("victim") > 0)
    for broker in case.cluster.brokers.values():
        config = broker.services.membership.topic_settings.overrides.log_config("victim")
        assert (config.retention_ms, config.retention_bytes) == (-1, -1)
