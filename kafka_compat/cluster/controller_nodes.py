"""The controller's reads and writes of the metadata store.

Each write is a transaction that checks the version of /controller_epoch. If another controller has been
elected, the write fails with `Deposed`.

A malformed node (MalformedNode) is logged and affects only the entity that it represents: reads of several
nodes return the other nodes.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from kafka_compat.coordination.controller.effects import StateWrite, WriteStates
from kafka_compat.coordination.controller.events import StatesWritten
from kafka_compat.coordination.controller.outcomes import CREATE, TopicPartition
from kafka_compat.coordination.nodes import malformed_nodes, znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, PartitionState, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import INT32_MAX, is_number
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, Operation, Stat, Watch
from kafka_compat.errors import KafkaError
from kafka_compat.long_work import batched
from kafka_compat.metadata.topic_names import check_topic_name
from kafka_compat.tasks import asked_for_all

T = TypeVar("T")

RETRY_S = 0.1
"""Backoff in seconds before a request without a response is sent again."""
TOGETHER_MOST = 128
"""Maximum number of states written in one transaction, because ZooKeeper accepts at most 1 MB."""
UNDER_WAY_MOST = 100
"""Maximum number of concurrent store requests. All responses that arrive at the same time are processed
before the event loop serves other connections.
"""
STATES_UNDER_WAY_MOST = 512
"""Maximum number of states in concurrent transactions. Encoding a state takes about 25 µs."""


class Deposed(Exception):
    """Raised if /controller_epoch has a newer version, because another controller was elected."""


class ControllerNodes:
    """The controller's access to the store, in the session in which this broker was elected."""

    def __init__(self, store: MetadataStore, malformed: malformed_nodes.MalformedNodes) -> None:
        self._store = store
        self._malformed = malformed

    # --- reading

    async def _read(
        self,
        path: str,
        decode: Callable[[bytes | None, Stat], T],
        consequence: str,
        watch: Watch | None = None,
    ) -> T | MalformedNode | None:
        """Read a node. Return its decoded value, None if the node is missing, or a MalformedNode."""
        try:
            data, stat = await self._store.get(path, watch)
        except stores.NoNode:
            return None
        try:
            return decode(data, stat)
        except MalformedNode as error:
            self._malformed.report(error, stat.version, consequence)
            return error

    async def brokers(
        self,
        watch: Watch | None,
        watch_broker: Callable[[int], Watch | None],
        known: Mapping[int, BrokerInfo],
    ) -> dict[int, BrokerInfo | MalformedNode]:
        """Read the registrations of all brokers. If the registration of a live broker has become malformed,
        return the broker's entry in `known`.
        """
        ids = []
        for name in await self._children(znodes.BROKER_IDS, watch):
            if is_number(name, INT32_MAX):
                ids.append(int(name))
            else:
                error = MalformedNode(f"{znodes.BROKER_IDS}/{name}", "this is not a broker ID")
                self._malformed.report(error, malformed_nodes.NO_VERSION, "no broker is registered for it")
        found = await asked_for_all(
            ids, lambda item: self._broker(item, watch_broker(item), known.get(item)), UNDER_WAY_MOST
        )
        return {item: broker for item, broker in zip(ids, found, strict=True) if broker is not None}

    async def _broker(
        self, broker_id: int, watch: Watch | None, known: BrokerInfo | None
    ) -> BrokerInfo | MalformedNode | None:
        czxid = -1

        def decode(data: bytes | None, stat: Stat) -> BrokerInfo:
            nonlocal czxid
            czxid = stat.czxid
            return znodes.decode_broker(broker_id, data, czxid)

        consequence = "the previous registration stays valid" if known else "the registration is ignored"
        found = await self._read(znodes.broker_path(broker_id), decode, consequence, watch)
        if isinstance(found, MalformedNode) and known is not None and known.epoch == czxid:
            return known
        return found

    async def topic_names(self, watch: Watch | None = None) -> list[str]:
        return await self._children(znodes.TOPICS, watch)

    async def topics(
        self, names: Iterable[str], watch_topic: Callable[[str], Watch | None]
    ) -> dict[str, TopicState | MalformedNode]:
        """Read the topics with these names. Missing topics are omitted."""
        topics = list(names)
        found = await asked_for_all(topics, lambda name: self._topic(name, watch_topic(name)), UNDER_WAY_MOST)
        return {name: topic for name, topic in zip(topics, found, strict=True) if topic is not None}

    async def _topic(self, name: str, watch: Watch | None) -> TopicState | MalformedNode | None:
        def decode(data: bytes | None, _: Stat) -> TopicState:
            try:
                check_topic_name(name)
            except KafkaError as error:
                raise MalformedNode(znodes.topic_path(name), f"invalid topic name: {error}") from error
            return znodes.decode_topic(name, data)

        return await self._read(znodes.topic_path(name), decode, "the topic stays unchanged", watch)

    async def states(
        self, partitions: Iterable[TopicPartition], watch_malformed: Callable[[TopicPartition], Watch | None]
    ) -> dict[TopicPartition, PartitionState]:
        """Read the states of partitions. Omit missing states, and omit and watch malformed states."""
        states = {}
        for some in batched(partitions):
            found = await asked_for_all(some, self._state, UNDER_WAY_MOST)
            for partition, state in zip(some, found, strict=True):
                if isinstance(state, MalformedNode):
                    # Read the node again with a watch, because it may have been repaired meanwhile.
                    again = await self._state(partition, watch_malformed(partition))
                    if isinstance(again, PartitionState):
                        states[partition] = again
                elif state is not None:
                    states[partition] = state
        return states

    async def state(self, partition: TopicPartition) -> PartitionState | None:
        """Return a partition's state (its epoch is the node's version), or None if missing or malformed."""
        found = await self._state(partition)
        return None if isinstance(found, MalformedNode) else found

    async def _state(
        self, partition: TopicPartition, watch: Watch | None = None
    ) -> PartitionState | MalformedNode | None:
        def decode(data: bytes | None, stat: Stat) -> PartitionState:
            return znodes.decode_partition_state(*partition, data, stat.version)

        path = znodes.partition_state_path(*partition)
        return await self._read(path, decode, "the partition stays unchanged", watch)

    async def deletions(self, watch: Watch | None = None) -> tuple[str, ...]:
        return tuple(await self._children(znodes.DELETE_TOPICS, watch))

    async def legacy_elections(
        self, watch: Watch | None, epoch_znode_version: int
    ) -> tuple[TopicPartition, ...]:
        """Return the partitions in /admin/preferred_replica_election. `watch` also fires when the node is
        created. As in Kafka, a malformed node is deleted, so that Kafka's tool can create a new node.
        """
        path = znodes.PREFERRED_REPLICA_ELECTION
        if await self._store.exists(path, watch) is None:
            return ()
        data, _ = await self._store.get(path)
        try:
            return tuple(TopicPartition(*item) for item in znodes.decode_partitions(path, data))
        except MalformedNode as error:
            self._malformed.report_notice(error)
            await self.clear_legacy_election(epoch_znode_version)
            return ()

    async def legacy_reassignments(self, watch: Watch | None = None) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the targets in /admin/reassign_partitions. `watch` also fires when the node is created."""

        def decode(data: bytes | None, _: Stat) -> dict[TopicPartition, tuple[int, ...]]:
            targets = znodes.decode_reassignment(data)
            return {TopicPartition(*partition): replicas for partition, replicas in targets.items()}

        if await self._store.exists(znodes.REASSIGN_PARTITIONS, watch) is None:
            return {}
        found = await self._read(znodes.REASSIGN_PARTITIONS, decode, "the request stays pending")
        return {} if found is None or isinstance(found, MalformedNode) else found

    async def topic_settings(self, names: Iterable[str], setting: str) -> dict[str, str]:
        """Return the values of a setting for the topics that override it."""
        topics = list(names)
        found = await asked_for_all(topics, self._settings, UNDER_WAY_MOST)
        return {
            name: settings[setting]
            for name, settings in zip(topics, found, strict=True)
            if setting in settings
        }

    async def _settings(self, topic: str) -> dict[str, str]:
        path = znodes.config_path("topics", topic)

        def decode(data: bytes | None, _: Stat) -> dict[str, str]:
            return znodes.decode_config(path, data)

        found = await self._read(path, decode, malformed_nodes.MALFORMED_SETTINGS)
        return {} if found is None or isinstance(found, MalformedNode) else found

    async def take_log_dir_events(self, watch: Watch | None, epoch_znode_version: int) -> tuple[int, ...]:
        """Read and delete the notifications of failed log directories. Return the IDs of their brokers."""
        brokers = await self._take(
            znodes.LOG_DIR_EVENTS, znodes.decode_log_dir_event, watch, epoch_znode_version
        )
        return tuple(dict.fromkeys(brokers))

    async def take_isr_changes(
        self, watch: Watch | None, epoch_znode_version: int
    ) -> dict[TopicPartition, PartitionState]:
        """Read and delete ISR notifications from brokers before Kafka 2.7. Return the partitions' states."""
        notices = await self._take(znodes.ISR_CHANGES, znodes.decode_partitions, watch, epoch_znode_version)
        changed = dict.fromkeys(TopicPartition(*item) for notice in notices for item in notice)
        found = {partition: await self.state(partition) for partition in changed}
        return {partition: state for partition, state in found.items() if state is not None}

    async def _take(
        self,
        directory: str,
        decode: Callable[[str, bytes | None], T],
        watch: Watch | None,
        epoch_znode_version: int,
    ) -> list[T]:
        """Read and delete the notifications under a path. Return their decoded contents."""
        taken = []
        for name in await self._children(directory, watch):
            path = f"{directory}/{name}"
            with suppress(stores.NoNode):
                data, _ = await self._store.get(path)
                try:
                    taken.append(decode(path, data))
                except MalformedNode as error:
                    self._malformed.report_notice(error)
                await self._guarded(epoch_znode_version, [stores.Delete(path)])
        return taken

    async def _children(self, path: str, watch: Watch | None) -> list[str]:
        try:
            return await self._store.children(path, watch)
        except stores.NoNode:
            return []

    # --- writing

    async def enable_features(self, epoch_znode_version: int, version: int) -> None:
        """Create /feature in this version of its format, or bring it to this version, and mark it as enabled
        if an older protocol version disabled it (KIP-584).
        """
        wanted = znodes.encode_feature({}, version=version)
        try:
            data, stat = await self._store.get(znodes.FEATURE)
        except stores.NoNode:
            await self._guarded(epoch_znode_version, [stores.Create(znodes.FEATURE, wanted)])
            return
        try:
            enabled, levels = znodes.decode_feature(data)
        except MalformedNode as error:
            self._malformed.report(error, stat.version, malformed_nodes.MALFORMED_FEATURES)
            return
        if enabled and levels:
            return  # Not by Kafka 3.9: this broker leaves the cluster (FinalizedFeatures).
        if not enabled or data != wanted:
            operation = stores.SetData(znodes.FEATURE, wanted, stat.version)
            await self._guarded(epoch_znode_version, [operation])

    async def write_states(self, effect: WriteStates) -> StatesWritten:
        """Write states, many in one transaction if possible. Raises Deposed if no longer controller."""
        groups = _together(effect.writes)
        outcomes = await asked_for_all(
            groups,
            lambda writes: self._write_together(writes, effect.epoch_znode_version),
            min(UNDER_WAY_MOST, max(1, STATES_UNDER_WAY_MOST // max(map(len, groups)))),
        )
        written: dict[TopicPartition, int] = {}
        conflicts: dict[TopicPartition, PartitionState | None] = {}
        for some in outcomes:
            for partition, (done, found) in some.items():
                if done and found is not None:
                    written[partition] = found.partition_epoch
                else:
                    conflicts[partition] = found
        return StatesWritten(effect.write_id, written, conflicts)

    async def _write_together(
        self, writes: Sequence[StateWrite], epoch_znode_version: int
    ) -> dict[TopicPartition, tuple[bool, PartitionState | None]]:
        """Write states in one transaction or, if it fails, individually."""
        operations: list[Operation] = []
        for write in writes:
            data = znodes.encode_partition_state(write.state)
            path = znodes.partition_state_path(*write.partition)
            if write.expected_partition_epoch == CREATE:
                if write.partition.partition == 0:
                    operations.append(stores.Create(znodes.partitions_path(write.partition.topic)))
                operations += [
                    stores.Create(znodes.partition_path(*write.partition)),
                    stores.Create(path, data),
                ]
            else:
                operations.append(stores.SetData(path, data, write.expected_partition_epoch))
        try:
            results = await self._guarded(epoch_znode_version, operations)
        except (stores.ConnectionLost, stores.NodeExists, stores.NoNode, stores.BadVersion) as error:
            # Write each state separately. If the response was lost, this attempt may have written all states.
            lost = isinstance(error, stores.ConnectionLost)
            if lost:
                await asyncio.sleep(RETRY_S)
            return {
                write.partition: await self._write_state(write, epoch_znode_version, lost=lost)
                for write in writes
            }
        epochs = iter([result.version for result in results if isinstance(result, Stat)])
        found: dict[TopicPartition, tuple[bool, PartitionState | None]] = {}
        for write in writes:
            epoch = 0 if write.expected_partition_epoch == CREATE else next(epochs)
            found[write.partition] = True, _with_epoch(write.state, epoch)
        return found

    async def _write_state(
        self, write: StateWrite, epoch_znode_version: int, *, lost: bool
    ) -> tuple[bool, PartitionState | None]:
        """Write a state. Return whether it was written, and the current state. `lost` is true if the response
        to an earlier attempt was lost.

        A malformed node is overwritten, because only the controller writes states, and it knows the old
        state.
        """
        data = znodes.encode_partition_state(write.state)
        path = znodes.partition_state_path(*write.partition)
        expected = write.expected_partition_epoch
        operation: Operation = (
            stores.Create(path, data) if expected == CREATE else stores.SetData(path, data, expected)
        )
        while True:
            try:
                results = await self._guarded(epoch_znode_version, [operation])
            except stores.ConnectionLost:
                lost = True
                await asyncio.sleep(RETRY_S)
                continue
            except stores.NoNode:
                if expected != CREATE or not await self._make_parents(write.partition, epoch_znode_version):
                    return False, None
                continue
            except (stores.NodeExists, stores.BadVersion):
                broken = await self._version_if_malformed(write.partition)
                if broken is None or expected == CREATE:
                    break
                operation = stores.SetData(path, data, broken)
                continue
            stat = results[-1]
            return True, _with_epoch(write.state, stat.version if isinstance(stat, Stat) else 0)
        found = await self.state(write.partition)
        # If the response to an attempt was lost, that attempt may have written the current state.
        if not lost or found is None or found.partition_epoch != expected + 1:
            return False, found
        return _with_epoch(write.state, found.partition_epoch) == found, found

    async def _version_if_malformed(self, partition: TopicPartition) -> int | None:
        version: int | None = None

        def decode(data: bytes | None, stat: Stat) -> None:
            nonlocal version
            version = stat.version
            znodes.decode_partition_state(*partition, data, stat.version)
            version = None

        await self._read(
            znodes.partition_state_path(*partition), decode, "the controller keeps the last state"
        )
        return version

    async def _make_parents(self, partition: TopicPartition, epoch_znode_version: int) -> bool:
        """Create the nodes /partitions and /partitions/P of a topic. Return False if the topic is missing."""
        for path in (znodes.partitions_path(partition.topic), znodes.partition_path(*partition)):
            try:
                await self._guarded(epoch_znode_version, [stores.Create(path)])
            except stores.NodeExists:
                continue
            except stores.NoNode:
                return False
        return True

    async def write_topic(
        self, topic: TopicState, epoch_znode_version: int, *, keeps_added: bool = True
    ) -> None:
        """Replace a topic's assignment (see WriteTopic). Raises Deposed if another controller was elected."""
        path = znodes.topic_path(topic.name)
        while True:
            data, stat = await self._store.get(path)
            written = topic
            with suppress(MalformedNode):
                if keeps_added:
                    written = topic.with_partitions_of(znodes.decode_topic(topic.name, data))
            operation = stores.SetData(path, znodes.encode_topic(written), stat.version)
            with suppress(stores.BadVersion):
                await self._guarded(epoch_znode_version, [operation])
                return

    async def delete_topics(self, topics: Sequence[str], epoch_znode_version: int) -> None:
        """Delete the nodes of topics. Raises Deposed if another controller was elected.

        All reads come first, because a read of the embedded store waits until earlier writes are on disk.
        """
        below = await asked_for_all(topics, lambda name: self._below(znodes.topic_path(name)), UNDER_WAY_MOST)
        await asked_for_all(below, lambda paths: self._delete(paths, epoch_znode_version), UNDER_WAY_MOST)
        await asked_for_all(topics, lambda name: self._delete_last(name, epoch_znode_version), UNDER_WAY_MOST)

    async def _delete_last(self, topic: str, epoch_znode_version: int) -> None:
        """Delete the topic's own node, its settings and the deletion request in one transaction, so that a
        new topic with the same name cannot lose settings.
        """
        settings = znodes.config_path("topics", topic)
        last = [znodes.topic_path(topic), settings, znodes.delete_topic_path(topic)]
        while True:
            try:
                await self._delete(last, epoch_znode_version)
                return
            except stores.NoNode:
                last = [node for node in last if await self._store.exists(node)]

    async def clear_deletions(self, topics: Iterable[str], epoch_znode_version: int) -> None:
        for topic in topics:
            await self._delete_tree(znodes.delete_topic_path(topic), epoch_znode_version)

    async def clear_legacy_election(self, epoch_znode_version: int) -> None:
        await self._delete_tree(znodes.PREFERRED_REPLICA_ELECTION, epoch_znode_version)

    async def write_legacy_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...]], epoch_znode_version: int
    ) -> None:
        """Write the remaining targets to /admin/reassign_partitions, or delete the node if none remain."""
        path = znodes.REASSIGN_PARTITIONS
        if not targets:
            await self._delete_tree(path, epoch_znode_version)
            return
        data = znodes.encode_reassignment({(key.topic, key.partition): to for key, to in targets.items()})
        try:
            await self._guarded(epoch_znode_version, [stores.SetData(path, data)])
        except stores.NoNode:
            await self._guarded(epoch_znode_version, [stores.Create(path, data)])

    async def _delete_tree(self, path: str, epoch_znode_version: int) -> None:
        nodes = [*await self._below(path), path] if await self._store.exists(path) else []
        await self._delete(nodes, epoch_znode_version)

    async def _below(self, path: str) -> list[str]:
        """Return the paths of all nodes below a path, children before their parents."""
        found: list[str] = []
        paths = [path]
        while paths:
            current = paths.pop()
            children = [f"{current}/{name}" for name in await self._children(current, None)]
            found += children
            paths += children
        return found[::-1]

    async def _delete(self, paths: list[str], epoch_znode_version: int) -> None:
        if paths:
            await self._guarded(epoch_znode_version, [stores.Delete(path) for path in paths])

    async def _guarded(
        self, epoch_znode_version: int, operations: list[Operation]
    ) -> list[str | Stat | None]:
        check = stores.Check(znodes.CONTROLLER_EPOCH, epoch_znode_version)
        try:
            return await self._store.multi([check, *operations])
        except stores.TransactionFailed as failed:
            if failed.index == 0:
                raise Deposed from failed
            raise failed.take_cause() from None


def _together(writes: Iterable[StateWrite]) -> list[list[StateWrite]]:
    """Divide writes into transactions. Only a topic with more than TOGETHER_MOST writes is divided, because
    the write of its first partition creates the parent of the others.
    """
    topics: dict[str, list[StateWrite]] = {}
    for write in writes:
        topics.setdefault(write.partition.topic, []).append(write)
    groups: list[list[StateWrite]] = []
    for topic in topics.values():
        for some in batched(topic, TOGETHER_MOST):
            if groups and len(groups[-1]) + len(some) <= TOGETHER_MOST:
                groups[-1] += some
            else:
                groups.append(some)
    return groups


def _with_epoch(state: PartitionState, partition_epoch: int) -> PartitionState:
    return state._replace(partition_epoch=partition_epoch)
