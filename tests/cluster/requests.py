"""Invalid and stale requests for both clusters: admin requests to the controller and to a different broker,
and inter-broker requests that must be fenced by epochs. The topic ids and epochs are those of the respective
cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from kafka_compat.coordination.nodes import znodes
from kafka_compat.protocol.api_keys import ApiKey
from tests.cluster.pair import Pair, Side
from tests.conformance.comparison import differences, neutral
from tests.conformance.wire import Closed, Connection, Plain

ZERO_ID = UUID(int=0)


class Ask(NamedTuple):
    """A request to one broker."""

    what: str
    broker_id: int
    api_key: ApiKey
    version: int
    request: Plain


def compare_answers(pair: Pair, asks: list[list[Ask]]) -> None:
    """Check that both clusters return the same responses, except for texts and ids. `asks` contains one list
    for each side.
    """
    ours, genuine = ([_answer(side, ask) for ask in own] for side, own in zip(pair.sides, asks, strict=True))
    found = [
        f"{ask.what} (version {ask.version}, broker {ask.broker_id}){line}"
        for ask, mine, theirs in zip(asks[0], ours, genuine, strict=True)
        for line in differences(neutral(mine, ask.api_key), neutral(theirs, ask.api_key), ask.api_key)
    ]
    assert not found, "\n".join(found)


def _answer(side: Side, ask: Ask) -> Plain:
    with Connection(side.brokers[ask.broker_id].address) as connection:
        try:
            return connection.ask(ask.api_key, ask.version, ask.request)
        except Closed:
            return {"closed": True}


def bad_admin_requests(side: Side) -> list[Ask]:
    """Invalid requests about reassignments, elections and partitions, to the controller (broker 1) and to
    broker 3.

    Topic t has healthy partitions on brokers 1, 2 and 3.
    """
    return [
        Ask(what, broker_id, api_key, version, request)
        for broker_id in (1, 3)
        for what, api_key, version, request in _admin_requests()
    ]


def elections_without_candidates(side: Side) -> list[Ask]:
    """Broker 2 is down. It is the preferred leader of partition 1 of t, and the only replica of `single`."""
    asks = []
    for election in (0, 1):
        partitions = [{"topic": "t", "partitions": [0, 1]}, {"topic": "single", "partitions": [0]}]
        request = {"election_type": election, "topic_partitions": partitions}
        asks.append(Ask(f"election {election}", 1, ApiKey.ELECT_LEADERS, 2, request))
    everything = {"election_type": 0, "topic_partitions": None}
    asks.append(Ask("election of all", 1, ApiKey.ELECT_LEADERS, 2, everything))
    target = {"partition_index": 0, "replicas": [1, 2]}
    to_the_dead = {"topics": [{"name": "single", "partitions": [target]}]}
    asks.append(Ask("reassignment off the dead", 1, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, to_the_dead))
    return asks


def during_a_reassignment(side: Side) -> list[Ask]:
    """Partition 0 of `pair` is being reassigned."""
    partitions = {"topics": [{"name": "pair", "count": 2, "assignments": [{"broker_ids": [1, 2]}]}]}
    return [
        Ask("list all", 1, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}),
        Ask("add partitions", 1, ApiKey.CREATE_PARTITIONS, 3, partitions),
    ]


def _admin_requests() -> Iterator[tuple[str, ApiKey, int, Plain]]:
    alter = ApiKey.ALTER_PARTITION_REASSIGNMENTS

    def moves(topic: str, *partitions: tuple[int, list[int] | None]) -> Plain:
        listed = [{"partition_index": index, "replicas": replicas} for index, replicas in partitions]
        return {"name": topic, "partitions": listed}

    for what, topics in {
        "unknown topic": [moves("nowhere", (0, [1, 2]))],
        "unknown partition": [moves("t", (9, [1, 2]))],
        "no replicas": [moves("t", (0, []))],
        "a replica twice": [moves("t", (0, [1, 1]))],
        "a negative replica": [moves("t", (0, [1, -2]))],
        "an unknown replica": [moves("t", (0, [1, 9]))],
        "cancel nothing": [moves("t", (0, None))],
        "cancel of an unknown topic": [moves("nowhere", (0, None))],
        "no topics": [],
        "no partitions": [moves("t")],
        "good and bad": [moves("t", (0, None), (1, [])), moves("nowhere", (0, [1]))],
    }.items():
        yield f"reassign: {what}", alter, 0, {"topics": topics}
    for what, named in {
        "all": None,
        "none": [],
        "unknown topic": [{"name": "nowhere", "partition_indexes": [0]}],
        "still partitions": [{"name": "t", "partition_indexes": [0, 1, 9]}],
    }.items():
        yield f"list: {what}", ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": named}
    for what, chosen in {
        "unknown topic": [{"topic": "nowhere", "partitions": [0]}],
        "unknown partition": [{"topic": "t", "partitions": [9]}],
        "not needed": [{"topic": "t", "partitions": [0, 1]}],
        "no partitions": [{"topic": "t", "partitions": []}],
        "no topics": [],
        "all": None,
    }.items():
        yield f"elect: {what}", ApiKey.ELECT_LEADERS, 0, {"topic_partitions": chosen}
        for election in (0, 1):
            request = {"election_type": election, "topic_partitions": chosen}
            yield f"elect {election}: {what}", ApiKey.ELECT_LEADERS, 2, request
    for what, count, brokers in (
        ("as many as there are", 3, None),
        ("fewer", 1, None),
        ("an unknown broker", 4, [[1, 2, 9]]),
        ("too few replicas", 4, [[1, 2]]),
        ("a replica twice", 4, [[1, 1, 2]]),
        ("no replicas", 4, [[]]),
        ("too many assignments", 4, [[1, 2, 3], [1, 2, 3]]),
        ("too few assignments", 5, [[1, 2, 3]]),
    ):
        assignments = None if brokers is None else [{"broker_ids": ids} for ids in brokers]
        topic = {"name": "t", "count": count, "assignments": assignments}
        yield f"add partitions: {what}", ApiKey.CREATE_PARTITIONS, 3, {"topics": [topic], "timeout_ms": 5000}


def stale_requests(side: Side) -> list[Ask]:
    """Requests with the epochs of an earlier controller or broker registration. The brokers must reject
    them.
    """
    topic_id = znodes.decode_topic("t", side.node("/brokers/topics/t")).topic_id
    epochs = {broker_id: side.broker_epoch(broker_id) for broker_id in side.brokers}
    controller_epoch = int(side.node("/controller_epoch") or b"0")
    state = json.loads(side.node("/brokers/topics/t/partitions/0/state") or b"{}")
    return [
        *_stale_controller(topic_id, epochs[2], controller_epoch, state),
        *_stale_brokers(topic_id, epochs, state),
    ]


def _stale_controller(topic_id: object, epoch: int, controller_epoch: int, state: Plain) -> Iterator[Ask]:
    """Requests to broker 2: from an earlier controller, with an earlier broker epoch, or with an earlier
    leader epoch.
    """
    for what, fence in {
        "an earlier controller": {"controller_epoch": controller_epoch - 1, "broker_epoch": epoch},
        "an earlier life": {"controller_epoch": controller_epoch, "broker_epoch": epoch - 1},
        "both": {"controller_epoch": controller_epoch - 1, "broker_epoch": epoch - 1},
        "an earlier leader": {"controller_epoch": controller_epoch, "broker_epoch": epoch},
    }.items():
        told = {
            "partition_index": 0,
            "controller_epoch": controller_epoch,
            "leader": 2,
            "leader_epoch": state["leader_epoch"] - 1,
            "isr": [2],
            "partition_epoch": 0,
            "replicas": [1, 2, 3],
        }
        topic = {"topic_name": "t", "topic_id": topic_id, "partition_states": [told]}
        leader = {"controller_id": 1, "type": 1, "topic_states": [topic], **fence}
        yield Ask(f"LeaderAndIsr of {what}", 2, ApiKey.LEADER_AND_ISR, 7, leader)
        stopped = {"partition_index": 0, "leader_epoch": state["leader_epoch"] - 1, "delete_partition": True}
        stop_topic = {"topic_name": "t", "partition_states": [stopped]}
        stop = {"controller_id": 1, "topic_states": [stop_topic], **fence}
        yield Ask(f"StopReplica of {what}", 2, ApiKey.STOP_REPLICA, 4, stop)
        if what != "an earlier leader":
            update = {"controller_id": 3, "topic_states": [], "live_brokers": [], **fence}
            yield Ask(f"UpdateMetadata of {what}", 2, ApiKey.UPDATE_METADATA, 8, update)


def _stale_brokers(topic_id: object, epochs: dict[int, int], state: Plain) -> Iterator[Ask]:
    """Requests to the controller."""

    def isr(topic: object, **given: object) -> Plain:
        partition = {
            "partition_index": 0,
            "leader_epoch": state["leader_epoch"],
            "new_isr_with_epochs": [{"broker_id": 1}],
            "partition_epoch": 0,
            **given,
        }
        return {
            "broker_id": 1,
            "broker_epoch": epochs[1],
            "topics": [{"topic_id": topic, "partitions": [partition]}],
        }

    for what, request in {
        "of an earlier life": isr(topic_id) | {"broker_epoch": epochs[1] - 1},
        "of an unknown broker": isr(topic_id) | {"broker_id": 9},
        "of an unknown topic": isr(ZERO_ID),
        "of an unknown partition": isr(topic_id, partition_index=9),
        "of an earlier leadership": isr(topic_id, leader_epoch=state["leader_epoch"] - 1),
        "of a later leadership": isr(topic_id, leader_epoch=state["leader_epoch"] + 1),
        "of a later state": isr(topic_id, partition_epoch=1000),
        "of an earlier state": isr(topic_id, partition_epoch=-1),
        "with a stranger in sync": isr(topic_id, new_isr_with_epochs=[{"broker_id": 1}, {"broker_id": 9}]),
        "of a leader that recovers": isr(topic_id, leader_recovery_state=1),
    }.items():
        for broker_id in (1, 3):
            yield Ask(f"AlterPartition {what}", broker_id, ApiKey.ALTER_PARTITION, 3, request)
    for what, broker_id, epoch in (
        ("of an earlier life", 2, epochs[2] - 1),
        ("of an unknown broker", 9, 1),
    ):
        leaving = {"broker_id": broker_id, "broker_epoch": epoch}
        for asked in (1, 3):
            yield Ask(f"ControlledShutdown {what}", asked, ApiKey.CONTROLLED_SHUTDOWN, 3, leaving)
            yield Ask(f"AllocateProducerIds {what}", asked, ApiKey.ALLOCATE_PRODUCER_IDS, 0, leaving)
