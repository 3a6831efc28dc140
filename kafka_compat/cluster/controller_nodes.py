"""What the controller reads and writes in the metadata store.

Every write is one transaction with a check of /controller_epoch's version, so that a controller that does not
know yet that another was elected changes nothing (`Deposed`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from coordination import znodes
from coordination.controller_model import (
    CREATE,
    StatesWritten,
    StateWrite,
    TopicPartition,
    WriteStates,
)
from coordination.metadata_store import (
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    Delete,
    MetadataStore,
    NodeExists,
    NoNode,
    Operation,
    SetData,
    Stat,
    TransactionFailed,
    Watch,
)
from coordination.model import BrokerInfo, PartitionState, TopicState

FIRST_CONTROLLER_EPOCH = 0
"""What /controller_epoch holds before the first election."""

RETRY_S = 0.1
"""Before something is asked again whose answer was lost."""


class Deposed(Exception):
    """/controller_epoch is not as this controller left it: another one was elected since."""


class Reign(NamedTuple):
    """A controller's time in office."""

    controller_epoch: int
    epoch_znode_version: int


class ControllerNodes:
    """The store as the controller uses it, for the session in which it was elected."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    # --- reading

    async def brokers(
        self, watch: Watch | None, watch_broker: Callable[[int], Watch | None]
    ) -> tuple[BrokerInfo, ...]:
        """All registered brokers; a registration may change while its broker lives."""
        ids = [int(name) for name in await self._children(znodes.BROKER_IDS, watch)]
        found = await asyncio.gather(*(self._broker(item, watch_broker(item)) for item in ids))
        return tuple(broker for broker in found if broker is not None)

    async def _broker(self, broker_id: int, watch: Watch | None) -> BrokerInfo | None:
        try:
            data, stat = await self._store.get(znodes.broker_path(broker_id), watch)
        except NoNode:
            return None
        return znodes.decode_broker(broker_id, data, stat.czxid)

    async def topic_names(self, watch: Watch | None = None) -> list[str]:
        return await self._children(znodes.TOPICS, watch)

    async def topics(
        self, names: Iterable[str], watch_topic: Callable[[str], Watch | None]
    ) -> tuple[TopicState, ...]:
        """Those of the topics that exist."""
        found = await asyncio.gather(*(self._topic(name, watch_topic(name)) for name in names))
        return tuple(topic for topic in found if topic is not None)

    async def _topic(self, name: str, watch: Watch | None) -> TopicState | None:
        try:
            data, _ = await self._store.get(znodes.topic_path(name), watch)
        except NoNode:
            return None
        return znodes.decode_topic(name, data)

    async def states(self, topics: Iterable[TopicState]) -> dict[TopicPartition, PartitionState]:
        """The states of all partitions that have one."""
        partitions = [TopicPartition(topic.name, index) for topic in topics for index in topic.replicas]
        found = await asyncio.gather(*(self.state(partition) for partition in partitions))
        return {
            partition: state for partition, state in zip(partitions, found, strict=True) if state is not None
        }

    async def state(self, partition: TopicPartition) -> PartitionState | None:
        """A partition's state with its node's version as partition epoch."""
        try:
            data, stat = await self._store.get(znodes.partition_state_path(*partition))
        except NoNode:
            return None
        return znodes.decode_partition_state(data, stat.version)

    async def deletions(self, watch: Watch | None = None) -> tuple[str, ...]:
        return tuple(await self._children(znodes.DELETE_TOPICS, watch))

    async def legacy_elections(self, watch: Watch | None = None) -> tuple[TopicPartition, ...]:
        """What /admin/preferred_replica_election asks for; the watch also tells of its creation."""
        if await self._store.exists(znodes.PREFERRED_REPLICA_ELECTION, watch) is None:
            return ()
        data, _ = await self._store.get(znodes.PREFERRED_REPLICA_ELECTION)
        return tuple(TopicPartition(*item) for item in znodes.decode_partitions(data))

    async def legacy_reassignments(self, watch: Watch | None = None) -> dict[TopicPartition, tuple[int, ...]]:
        """What /admin/reassign_partitions asks for; the watch also tells of its creation."""
        if await self._store.exists(znodes.REASSIGN_PARTITIONS, watch) is None:
            return {}
        data, _ = await self._store.get(znodes.REASSIGN_PARTITIONS)
        return {TopicPartition(*key): replicas for key, replicas in znodes.decode_reassignment(data).items()}

    async def topic_settings(self, names: Iterable[str], setting: str) -> dict[str, str]:
        """The topics that have a value of their own for a setting."""
        topics = list(names)
        found = await asyncio.gather(*(self._settings(name) for name in topics))
        return {
            name: settings[setting]
            for name, settings in zip(topics, found, strict=True)
            if setting in settings
        }

    async def _settings(self, topic: str) -> dict[str, str]:
        try:
            data, _ = await self._store.get(znodes.config_path("topics", topic))
        except NoNode:
            return {}
        return znodes.decode_config(data)

    async def take_log_dir_events(self, watch: Watch | None, epoch_znode_version: int) -> tuple[int, ...]:
        """The brokers that told of failed folders; their notices are removed."""
        brokers = []
        operations: list[Operation] = []
        for name in await self._children(znodes.LOG_DIR_EVENTS, watch):
            path = f"{znodes.LOG_DIR_EVENTS}/{name}"
            data, _ = await self._store.get(path)
            brokers.append(znodes.decode_log_dir_event(data))
            operations.append(Delete(path))
        if operations:
            await self._guarded(epoch_znode_version, operations)
        return tuple(dict.fromkeys(brokers))

    async def take_isr_changes(
        self, watch: Watch | None, epoch_znode_version: int
    ) -> dict[TopicPartition, PartitionState]:
        """The states that leaders older than Kafka 2.7 wrote themselves; their notices are removed."""
        changed: list[TopicPartition] = []
        operations: list[Operation] = []
        for name in await self._children(znodes.ISR_CHANGES, watch):
            path = f"{znodes.ISR_CHANGES}/{name}"
            data, _ = await self._store.get(path)
            changed += [TopicPartition(*item) for item in znodes.decode_partitions(data)]
            operations.append(Delete(path))
        found = {partition: await self.state(partition) for partition in dict.fromkeys(changed)}
        if operations:
            await self._guarded(epoch_znode_version, operations)
        return {partition: state for partition, state in found.items() if state is not None}

    async def _children(self, path: str, watch: Watch | None) -> list[str]:
        try:
            return await self._store.children(path, watch)
        except NoNode:
            return []

    # --- writing

    async def enable_features(self, epoch_znode_version: int) -> None:
        """Make /feature, or enable what an older inter.broker.protocol.version had disabled (KIP-584)."""
        try:
            data, stat = await self._store.get(znodes.FEATURE)
        except NoNode:
            await self._guarded(epoch_znode_version, [Create(znodes.FEATURE, znodes.encode_feature({}))])
            return
        enabled, _ = znodes.decode_feature(data)
        if not enabled:
            operation = SetData(znodes.FEATURE, znodes.encode_feature({}), stat.version)
            await self._guarded(epoch_znode_version, [operation])

    async def write_states(self, effect: WriteStates) -> StatesWritten:
        """Write each state by itself, all at the same time. Raises Deposed."""
        outcomes = await asyncio.gather(
            *(self._write_state(write, effect.epoch_znode_version) for write in effect.writes)
        )
        written: dict[TopicPartition, int] = {}
        conflicts: dict[TopicPartition, PartitionState | None] = {}
        for write, (done, found) in zip(effect.writes, outcomes, strict=True):
            if done and found is not None:
                written[write.partition] = found.partition_epoch
            else:
                conflicts[write.partition] = found
        return StatesWritten(effect.write_id, written, conflicts)

    async def _write_state(
        self, write: StateWrite, epoch_znode_version: int
    ) -> tuple[bool, PartitionState | None]:
        """Whether the state was written, and what is there now."""
        data = znodes.encode_partition_state(write.state)
        path = znodes.partition_state_path(*write.partition)
        expected = write.expected_partition_epoch
        operation: Operation = Create(path, data) if expected == CREATE else SetData(path, data, expected)
        lost = False
        while True:
            try:
                results = await self._guarded(epoch_znode_version, [operation])
            except ConnectionLost:
                lost = True
                await asyncio.sleep(RETRY_S)
                continue
            except NoNode:
                if expected != CREATE or not await self._make_parents(write.partition, epoch_znode_version):
                    return False, None
                continue
            except (NodeExists, BadVersion):
                break
            stat = results[-1]
            version = stat.version if isinstance(stat, Stat) else 0
            return True, _with_epoch(write.state, version)
        found = await self.state(write.partition)
        # A try whose answer was lost may have been the one that wrote what is there.
        ours = lost and found is not None and found.partition_epoch == expected + 1
        return ours and _same(found, write.state), found

    async def _make_parents(self, partition: TopicPartition, epoch_znode_version: int) -> bool:
        """Make /partitions and /partitions/P; False when the topic is gone."""
        for path in (znodes.partitions_path(partition.topic), znodes.partition_path(*partition)):
            try:
                await self._guarded(epoch_znode_version, [Create(path)])
            except NodeExists:
                continue
            except NoNode:
                return False
        return True

    async def write_topic(self, topic: TopicState, epoch_znode_version: int) -> None:
        """Replace a topic's assignment. Raises Deposed."""
        await self._guarded(
            epoch_znode_version, [SetData(znodes.topic_path(topic.name), znodes.encode_topic(topic))]
        )

    async def delete_topic(self, topic: str, epoch_znode_version: int) -> None:
        """Remove a topic's nodes, its settings, and last the request for it. Raises Deposed."""
        for path in (
            znodes.topic_path(topic),
            znodes.config_path("topics", topic),
            znodes.delete_topic_path(topic),
        ):
            await self._delete_tree(path, epoch_znode_version)

    async def clear_deletions(self, topics: Iterable[str], epoch_znode_version: int) -> None:
        for topic in topics:
            await self._delete_tree(znodes.delete_topic_path(topic), epoch_znode_version)

    async def clear_legacy_election(self, epoch_znode_version: int) -> None:
        await self._delete_tree(znodes.PREFERRED_REPLICA_ELECTION, epoch_znode_version)

    async def write_legacy_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...]], epoch_znode_version: int
    ) -> None:
        """What is left of /admin/reassign_partitions; the node goes when nothing is."""
        path = znodes.REASSIGN_PARTITIONS
        if not targets:
            await self._delete_tree(path, epoch_znode_version)
            return
        data = znodes.encode_reassignment({(key.topic, key.partition): to for key, to in targets.items()})
        try:
            await self._guarded(epoch_znode_version, [SetData(path, data)])
        except NoNode:
            await self._guarded(epoch_znode_version, [Create(path, data)])

    async def _delete_tree(self, path: str, epoch_znode_version: int) -> None:
        paths = [path]
        operations: list[Operation] = []
        while paths:
            current = paths.pop()
            try:
                paths.extend(f"{current}/{name}" for name in await self._store.children(current))
            except NoNode:
                continue
            operations.append(Delete(current))
        if operations:
            await self._guarded(epoch_znode_version, operations[::-1])

    async def _guarded(
        self, epoch_znode_version: int, operations: list[Operation]
    ) -> list[str | Stat | None]:
        check = Check(znodes.CONTROLLER_EPOCH, epoch_znode_version)
        try:
            return await self._store.multi([check, *operations])
        except TransactionFailed as failed:
            if failed.index == 0:
                raise Deposed from failed
            raise failed.cause from None


async def run_for_controller(store: MetadataStore, broker_id: int, now_ms: int) -> Reign | None:
    """Try to become the controller: one transaction makes /controller and counts /controller_epoch up.

    None when another broker is, or was faster. ConnectionLost when nobody knows.
    """
    try:
        data, stat = await store.get(znodes.CONTROLLER_EPOCH)
        epoch = int(data or str(FIRST_CONTROLLER_EPOCH))
    except NoNode:
        try:
            await store.create(znodes.CONTROLLER_EPOCH, str(FIRST_CONTROLLER_EPOCH).encode())
        except NodeExists:
            return await run_for_controller(store, broker_id, now_ms)
        data, stat = await store.get(znodes.CONTROLLER_EPOCH)
        epoch = int(data or str(FIRST_CONTROLLER_EPOCH))
    payload = znodes.encode_controller(znodes.ControllerInfo(broker_id, now_ms))
    try:
        results = await store.multi(
            [
                Create(znodes.CONTROLLER, payload, ephemeral=True),
                SetData(znodes.CONTROLLER_EPOCH, str(epoch + 1).encode(), stat.version),
            ]
        )
    except TransactionFailed:
        return None
    written = results[1]
    assert isinstance(written, Stat)
    return Reign(epoch + 1, written.version)


def _same(found: PartitionState | None, wanted: PartitionState) -> bool:
    return found is not None and _with_epoch(wanted, found.partition_epoch) == found


def _with_epoch(state: PartitionState, partition_epoch: int) -> PartitionState:
    return PartitionState(
        state.leader,
        state.leader_epoch,
        state.isr,
        state.controller_epoch,
        state.recovering,
        partition_epoch,
    )
