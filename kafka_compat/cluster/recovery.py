"""Startup recovery of a standalone broker: it reconciles the metadata store with the log directories before
the broker registers. No controller has begun a term yet, and no other broker can have made changes.

Rules
1. The store is authoritative. A topic exists if its nodes exist, and missing logs are created. A deletion is
   first recorded in /admin/delete_topics, so that recovery completes a deletion that a crash interrupted.
2. Logs of unknown topics are adopted if the store is new or was truncated, and set aside otherwise.
3. The broker becomes leader of all of its partitions, with itself in sync. It does not wait for the
   controller, because LeaderAndIsr would contain the same state. Leader epochs are incremented, so that
   readers can distinguish records from before and after the restart. If a log is unchanged since a clean
   shutdown and has no record in its last epoch, the epoch is kept. This is the case for most partitions of a
   large broker, and it saves writes to the store.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import PartitionState, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStoreError, Operation
from kafka_compat.metadata import topic_log, topic_nodes, topic_rules
from kafka_compat.metadata.cache import NO_LEADER, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.producer_ids import skip_used_ids
from kafka_compat.metadata.topic_nodes import FIRST_CONTROLLER_EPOCH

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.config import BrokerConfig
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.storage.directories.log_dirs import LogDirs

log = logging.getLogger(__name__)

_PARTITIONS_AT_ONCE = 128
"""Maximum number of partitions whose nodes are written in one transaction."""


class Recovery:
    def __init__(self, context: BrokerContext, replicas: ReplicaManager, malformed: MalformedNodes) -> None:
        self._config = context.config
        self._store = context.store
        self._metadata = context.metadata
        self._log_dirs = context.log_dirs
        self._long_work = context.long_work
        self._leaderships = context.leaderships
        self._overrides = context.topic_overrides
        self._replicas = replicas
        self._malformed = malformed
        self._known_states: dict[bytes, PartitionState] = {}
        """Cache of decoded node contents, because most partitions have the same state."""

    async def run(self, *, adopts: bool) -> None:
        """Complete deletions, delete unfinished forks, and then become leader of the stored topics. `adopts`
        is true if the store may lack topics: logs of unknown topics are then adopted instead of set aside.
        """
        producers = (each for held in self._log_dirs.logs.values() for each in held.producers.entries)
        await skip_used_ids(self._store, self._metadata.local_id, max(producers, default=-1))
        deletions = await self._children(znodes.DELETE_TOPICS)
        forks = await self._children(znodes.UNFINISHED_FORKS)
        deleted = {name: await self._delete(name) for name in [*deletions, *forks]}
        if adopts:
            await self._adopt()
        topics = await self._read_topics()
        for topic in topics:
            await self._lead(topic)
        # Announce leadership only when all topics are known. A coordinator that completes prepared
        # transactions treats unknown topics as deleted, and skips their markers.
        await self._announce_leaderships(topics)
        change = self._metadata.change()
        for topic in deleted.values():
            # Report deleted topics only after groups are loaded, so that groups drop the topics' offsets.
            change.report_deleted(topic)
            topic_log.deleted(topic.name)
        change.publish()
        keys = [(topic.name, each.partition) for topic in topics for each in topic.partitions]
        await self._take_offline(key for key in keys if self._replicas.get(*key) is None)
        topic_log.became_leader(
            self._metadata.local_id, [key for key in keys if self._replicas.get(*key) is not None]
        )

    # --- deletions that a crash interrupted

    async def _delete(self, name: str) -> TopicMetadata:
        from kafka_compat.protocol.zero_uuid import ZERO_UUID

        partitions = sorted(index for topic, index in self._log_dirs.logs if topic == name)
        self._overrides.forget(name)
        turn = await self._long_work.begin()
        errors = await self._replicas.delete_all([(name, index) for index in partitions], turn)
        for (_, index), error in errors.items():
            log.error("Could not record the deletion of %s-%d: %s", name, index, error)
        await self._store.delete_tree(znodes.topic_path(name))
        await self._store.delete_tree(znodes.config_path("topics", name))
        await self._store.delete_tree(znodes.delete_topic_path(name))
        await self._store.delete_tree(znodes.unfinished_fork_path(name))
        replicas: dict[int, tuple[int, ...]] = {index: (self._metadata.local_id,) for index in partitions}
        return TopicMetadata(name, ZERO_UUID, topic_nodes.describe_partitions(replicas))

    # --- topics in the store

    async def _read_topics(self) -> list[TopicMetadata]:
        operations: list[Operation] = []
        found = []
        left_alone: set[str] = set()
        for topic in await self._children(znodes.TOPICS):
            changes: list[Operation] = []
            try:
                found.append(await self._read_topic(topic, changes))
            except MalformedNode:
                left_alone.add(topic)
                continue
            operations += changes
        if operations:
            await self._store.multi(operations)
        self._known_states.clear()
        _set_strays_aside(self._log_dirs, found, left_alone)
        return found

    async def _read_topic(self, name: str, operations: list[Operation]) -> TopicMetadata:
        """Return a topic's metadata. Append the writes that make this broker leader to `operations`."""
        from kafka_compat.protocol.zero_uuid import ZERO_UUID

        data, stat = await self._store.get(znodes.topic_path(name))
        with self._logging_malformed(stat):
            state = znodes.decode_topic(name, data)
        local = self._metadata.local_id
        partitions = []
        created: dict[int, PartitionState] = {}
        for index, replicas in sorted(state.replicas.items()):
            path = znodes.partition_state_path(name, index)
            # The log may contain a newer epoch if its directory was used with a different metadata store.
            held = self._log_dirs.logs.get((name, index))
            epoch = held.leader_epochs.latest_epoch if held is not None else -1
            try:
                data, stat = await self._store.get(path)
            except stores.NoNode:
                # The broker was killed while it was creating the topic. Create the missing state.
                created[index] = PartitionState(local, epoch + 1, (local,), FIRST_CONTROLLER_EPOCH)
                partitions.append(PartitionMetadata(index, local, epoch + 1, replicas, (local,), 0))
                continue
            old = self._known_states.get(data or b"")
            if old is None:
                with self._logging_malformed(stat):
                    old = znodes.decode_partition_state(name, index, data, stat.version)
                self._known_states[data or b""] = old
            if (
                held is not None
                and held.is_as_closed
                and epoch < old.leader_epoch
                and old.leader == local
                and old.isr == (local,)
            ):
                partitions.append(
                    PartitionMetadata(index, local, old.leader_epoch, replicas, old.isr, stat.version)
                )
                continue
            epoch = max(epoch, old.leader_epoch)
            led = PartitionState(local, epoch + 1, (local,), old.controller_epoch)
            operations.append(stores.SetData(path, znodes.encode_partition_state(led), stat.version))
            partitions.append(
                PartitionMetadata(index, local, led.leader_epoch, replicas, led.isr, stat.version + 1)
            )
        operations += await self._creation_of(name, created)
        return TopicMetadata(name, state.topic_id or ZERO_UUID, tuple(partitions))

    async def _creation_of(self, name: str, states: Mapping[int, PartitionState]) -> list[Operation]:
        operations: list[Operation] = []
        if states and await self._store.exists(znodes.partitions_path(name)) is None:
            operations.append(stores.Create(znodes.partitions_path(name)))
        for index, state in states.items():
            if await self._store.exists(znodes.partition_path(name, index)) is None:
                operations.append(stores.Create(znodes.partition_path(name, index)))
            path = znodes.partition_state_path(name, index)
            operations.append(stores.Create(path, znodes.encode_partition_state(state)))
        return operations

    @contextmanager
    def _logging_malformed(self, stat: stores.Stat) -> Iterator[None]:
        """Log a malformed node and reraise the error. The controller will not log it again."""
        try:
            yield
        except MalformedNode as error:
            self._malformed.report(error, stat.version, "the topic stays unchanged")
            raise

    async def _lead(self, topic: TopicMetadata) -> None:
        await self._replicas.prepare(
            (topic.name, partition.partition, topic.topic_id) for partition in topic.partitions
        )
        turn = await self._long_work.begin()
        least = self._overrides.min_insync_replicas(topic.name)
        for partition in topic.partitions:
            await turn.pause_if_due()
            self._replicas.lead(
                topic.name,
                partition.partition,
                topic.topic_id,
                partition.leader_epoch,
                partition.isr,
                is_new=False,
                replicas=partition.replicas,
                partition_epoch=partition.partition_epoch,
                min_insync_replicas=min(least, len(partition.replicas)),
            )
        self._metadata.put_topic(topic)

    async def _announce_leaderships(self, topics: Iterable[TopicMetadata]) -> None:
        turn = await self._long_work.begin()
        for topic in topics:
            for partition in topic.partitions:
                self._leaderships.leading(topic.name, partition.partition)
                await turn.pause_if_due()

    async def _take_offline(self, lost: Iterable[tuple[str, int]]) -> None:
        states: dict[str, PartitionState] = {}
        for name, index in lost:
            topic, old = self._metadata.topics[name], self._metadata.partition(name, index)
            assert old is not None
            local = self._metadata.local_id
            partition = old._replace(leader=NO_LEADER, leader_epoch=old.leader_epoch + 1, offline=(local,))
            partitions = (*topic.partitions[:index], partition, *topic.partitions[index + 1 :])
            self._metadata.put_topic(topic._replace(partitions=partitions))
            path = znodes.partition_state_path(name, index)
            states[path] = PartitionState(NO_LEADER, partition.leader_epoch, old.isr, FIRST_CONTROLLER_EPOCH)
        if states:
            try:
                await self._store.multi(
                    [
                        stores.SetData(path, znodes.encode_partition_state(state))
                        for path, state in states.items()
                    ]
                )
            except MetadataStoreError as error:
                # Only log the error: if the journal's disk has failed, the next startup detects the failure.
                log.error("Could not store the state of the offline partitions: %s", error)

    # --- logs unknown to the store

    async def _adopt(self) -> None:
        found: dict[str, dict[int, UUID | None]] = {}
        for (topic, partition), held in self._log_dirs.logs.items():
            found.setdefault(topic, {})[partition] = held.topic_id
        known = await self._children(znodes.TOPICS)
        unknown = sorted(found.keys() - set(known))
        for topic in unknown:
            partitions = found[topic]
            adopted = _AdoptedTopic(self._config, self._log_dirs, topic, partitions, self._metadata.local_id)
            self._overrides.put(topic, adopted.overrides)
            self._log_dirs.update_config(topic)
            await self._write_topic(adopted)
            excepted = ", ".join(f"{name}={value}" for name, value in adopted.overrides.items())
            log.warning(
                "Adopted topic %s from the log directories (partitions: %d), with default settings%s",
                topic,
                len(adopted.state.replicas),
                f" except {excepted}" if excepted else "",
            )
        retention_ms = self._config.duration_ms("log.retention.ms")
        if unknown and retention_ms >= 0:
            log.warning(
                "Retention deletes records of adopted topics after %.1f days (log.retention.ms). To keep "
                "them, restart with --override log.retention.ms=-1, or set retention.ms for the topics",
                retention_ms / 86_400_000,
            )

    async def _write_topic(self, adopted: _AdoptedTopic) -> None:
        """Write the topic and its partitions, in several transactions if there are many partitions. After a
        crash, the next startup completes incomplete topics.
        """
        name, replicas = adopted.state.name, adopted.state.replicas
        has_config = await self._store.exists(znodes.config_path("topics", name)) is not None
        operations = topic_nodes.creation(adopted.state, adopted.overrides, has_config)
        indexes = list(replicas)
        for first in range(0, len(indexes), _PARTITIONS_AT_ONCE):
            some = {index: replicas[index] for index in indexes[first : first + _PARTITIONS_AT_ONCE]}
            await self._store.multi([*operations, *topic_nodes.partition_nodes(name, some, adopted.epochs)])
            operations = []

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._store.children(path)
        except stores.NoNode:
            return []


class _AdoptedTopic:
    """A topic reconstructed from its partition directories."""

    def __init__(
        self,
        config: BrokerConfig,
        log_dirs: LogDirs,
        topic: str,
        partitions: Mapping[int, UUID | None],
        local_id: int,
    ) -> None:
        """`partitions` maps partition numbers to the topic IDs in the partition directories."""
        topic_id = next((item for item in partitions.values() if item), None) or topic_nodes.new_topic_id()
        replicas: dict[int, tuple[int, ...]] = {index: (local_id,) for index in range(max(partitions) + 1)}
        self.state = TopicState(topic, topic_id, replicas)
        self.epochs = {
            index: max(log_dirs.logs[topic, index].leader_epochs.latest_epoch, topic_nodes.FIRST_EPOCH)
            for index in partitions
        }
        self.overrides = topic_rules.internal_configs(config, topic)
        if not self.overrides and any(name == topic for name, _ in log_dirs.clean_offsets):
            # Keep the topic compacted, because retention would delete records that compaction has retained.
            self.overrides = {"cleanup.policy": "compact"}


def _set_strays_aside(
    log_dirs: LogDirs, topics: Iterable[TopicMetadata], left_alone: Collection[str]
) -> None:
    """Set aside directories of unknown topics, as Apache Kafka does. Such a topic was deleted while the disk
    was offline, or its directory was copied from elsewhere. No data is lost. Directories of topics in
    `left_alone`, whose nodes are malformed, stay in place until the nodes are repaired.
    """
    known = {(topic.name, partition.partition) for topic in topics for partition in topic.partitions}
    for key, held in list(log_dirs.logs.items()):
        if key not in known and key[0] not in left_alone:
            offsets = f"{held.log_start_offset}..{held.log_end_offset}"
            path = log_dirs.set_aside(*key)
            log.warning(
                "Renamed the directory of %s-%d (offsets %s) to %s: the topic is unknown. To recover the "
                "records, create the topic, stop the broker, and rename the directory back",
                *key,
                offsets,
                path,
            )
