"""The controller's reads and writes of nodes, when the store's responses are lost or changes are
concurrent.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.cluster.controller_election import run_for_controller
from kafka_compat.cluster.controller_nodes import ControllerNodes
from kafka_compat.coordination.controller.effects import StateWrite, WriteStates
from kafka_compat.coordination.controller.outcomes import CREATE, TopicPartition
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import PartitionState, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNodes
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.metadata_store import Create, MetadataStore
from kafka_compat.metadata.topic_nodes import new_topic_id
from tests.cluster.embedded import EmbeddedCluster, until_missing
from tests.coordination.losing_answers import LosingAnswers

PARTITION = TopicPartition("t", 0)
STATE = PartitionState(leader=1, leader_epoch=0, isr=(1, 2), controller_epoch=1)


class Controller:
    """The nodes of an elected controller, with topic t."""

    def __init__(self, store: LosingAnswers, other: MetadataStore, version: int) -> None:
        self.store = store
        self.other = other
        self.nodes = ControllerNodes(store, MalformedNodes())
        self.epoch_znode_version = version

    async def write(self, state: PartitionState, expected: int) -> tuple[int | None, PartitionState | None]:
        """Return the written version, and the conflicting state."""
        write = StateWrite(PARTITION, state, expected)
        outcome = await self.nodes.write_states(WriteStates(1, (write,), self.epoch_znode_version))
        return outcome.written.get(PARTITION), outcome.conflicts.get(PARTITION)

    async def delete(self, topic: str) -> None:
        await self.nodes.delete_topics([topic], self.epoch_znode_version)


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[Controller]:
    tree = EmbeddedMetadataStore(str(tmp_path / "tree.journal"))
    store, other = LosingAnswers(tree.connect()), tree.connect()
    await store.ensure_all(znodes.PERSISTENT_PATHS)
    await store.create(
        znodes.topic_path("t"), znodes.encode_topic(TopicState("t", new_topic_id(), {0: (1, 2)}))
    )
    term = await run_for_controller(store, 1, 0, MalformedNodes())
    assert term is not None
    yield Controller(store, other, term.epoch_znode_version)
    await tree.close()


async def test_a_write_succeeds_even_if_its_response_is_lost(controller: Controller) -> None:
    assert await controller.write(STATE, CREATE) == (0, None)
    controller.store.lost = [True]
    assert await controller.write(STATE, 0) == (1, None)
    assert (await controller.store.get(znodes.partition_state_path(*PARTITION)))[1].version == 1


async def test_a_lost_request_is_sent_again_after_a_pause(controller: Controller) -> None:
    controller.store.lost = [False] * 3
    begun = time.monotonic()
    assert await controller.write(STATE, CREATE) == (0, None)
    assert time.monotonic() - begun > 0.2


async def test_a_write_by_another_controller_is_not_mistaken_for_the_controllers_own(
    controller: Controller,
) -> None:
    assert await controller.write(STATE, CREATE) == (0, None)
    other = PartitionState(leader=2, leader_epoch=0, isr=(2,), controller_epoch=1, partition_epoch=1)
    await controller.other.set(
        znodes.partition_state_path(*PARTITION), znodes.encode_partition_state(other), 0
    )
    controller.store.lost = [False]
    assert await controller.write(STATE, 0) == (None, other)


async def test_a_partition_added_concurrently_is_not_lost_when_replicas_are_moved(
    controller: Controller,
) -> None:
    """When the controller moves replicas, it writes its cached copy of the topic's node."""
    path = znodes.topic_path("t")
    known = znodes.decode_topic("t", (await controller.other.get(path))[0])
    added = known._replace(replicas={**known.replicas, 1: (2, 3)})
    await controller.other.set(path, znodes.encode_topic(added))
    moved = known._replace(replicas={0: (1, 2, 3)}, adding_replicas={0: (3,)})
    await controller.nodes.write_topic(moved, controller.epoch_znode_version)
    written = znodes.decode_topic("t", (await controller.other.get(path))[0])
    assert written == moved._replace(replicas={0: (1, 2, 3), 1: (2, 3)})
    # Partitions of a different topic with the same name are not kept.
    await controller.other.set(path, znodes.encode_topic(added._replace(topic_id=new_topic_id())))
    await controller.nodes.write_topic(moved, controller.epoch_znode_version)
    assert znodes.decode_topic("t", (await controller.other.get(path))[0]) == moved


async def test_the_settings_of_a_topic_are_deleted_with_the_topic(controller: Controller) -> None:
    """Otherwise, a topic that is recreated in between would lose its own settings."""
    await controller.write(STATE, CREATE)
    last = (znodes.topic_path("t"), znodes.config_path("topics", "t"), znodes.delete_topic_path("t"))
    await controller.other.multi([Create(path) for path in last[1:]])
    await controller.delete("t")
    assert [operation.path for operation in controller.store.asked[-1][1:]] == list(last)
    assert [await controller.other.exists(path) for path in last] == [None, None, None]


async def test_a_deletion_request_for_a_topic_unknown_to_the_controller_is_completed(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path)
    await cluster.start()
    try:
        session = cluster.tree.connect()
        topic = TopicState("t", new_topic_id(), {0: (1, 2, 3)})
        await session.multi(
            [
                Create(znodes.delete_topic_path("t"), None),
                Create(znodes.topic_path("t"), znodes.encode_topic(topic)),
            ]
        )
        await until_missing(session, znodes.delete_topic_path("t"))
        assert await session.exists(znodes.topic_path("t")) is None
    finally:
        await cluster.stop()
