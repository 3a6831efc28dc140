"""Topics of a broker that is alone, from the store to the logs: create, delete, extend, and find again after
a restart.

The store is the truth. A topic exists once its nodes do (one multi); its logs are made from that, now or at
the next start. A deletion is first noted in /admin/delete_topics, so that one cut short by a crash is
finished at the next start.

With one broker there is nothing to elect: it leads every partition it holds, with itself in sync. A start
raises the leader epochs, as a controller does that finds the broker back, so that readers can tell records of
before from records of after. Where a clean stop left a log without a record of its last epoch, and it is as
it was, there is nothing to tell apart and the epoch goes on: of very many partitions most are of this kind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import PartitionState, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import (
    NO_VERSION,
    MalformedNode,
    MalformedNodes,
)
from kafka_compat.coordination.store.metadata_store import (
    MetadataStoreError,
    NoNode,
    Operation,
    SetData,
    TransactionFailed,
)
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.membership.found_logs import Adopted, set_strays_aside
from kafka_compat.membership.foundation import Foundation
from kafka_compat.metadata import topic_log, topic_rules
from kafka_compat.metadata.cache import PartitionMetadata, TopicMetadata
from kafka_compat.metadata.topic_nodes import (
    FIRST_CONTROLLER_EPOCH,
    creation,
    describe_partitions,
    new_topic_id,
    partition_nodes,
)
from kafka_compat.metadata.topic_rules import CHANGE_TIMEOUT_MS, DEFAULT, Charge
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.errors import OutOfResources

log = logging.getLogger(__name__)

NO_LEADER = -1
_PARTITIONS_AT_ONCE = 128
"""How many partitions' nodes are written in one transaction."""


class LoneTopics:
    """The topics of this broker, as it makes and holds them."""

    def __init__(
        self,
        foundation: Foundation,
        replicas: ReplicaManager,
        malformed: MalformedNodes,
    ) -> None:
        self._malformed = malformed
        self._config = foundation.config
        self._store = foundation.store
        self._metadata = foundation.metadata
        self._log_dirs = foundation.log_dirs
        self._long_work = foundation.long_work
        self._leaderships = foundation.leaderships
        self._overrides = foundation.topic_overrides
        self._replicas = replicas
        self.lock = asyncio.Lock()
        """Held while topics are made, changed and dropped."""
        self._known_states: dict[bytes, PartitionState] = {}
        """By what their nodes hold, during the start: very many partitions are in the same state."""

    # --- start

    async def load(self, adopts: bool) -> None:
        """Finish deletions, then lead what the store says. Logs of topics that it does not know are adopted
        when it may lack some (`adopts`), and set aside otherwise.
        """
        unfinished = await self._children(znodes.DELETE_TOPICS)
        dropped = {topic: await self.drop(topic) for topic in unfinished}
        if adopts:
            await self._adopt()
        operations: list[Operation] = []
        found = []
        left_alone: set[str] = set()
        for topic in await self._children(znodes.TOPICS):
            changes: list[Operation] = []
            try:
                found.append(await self._read_topic(topic, changes))
            except MalformedNode as error:
                self._malformed.tell(error, NO_VERSION, "the topic is left as it is")
                left_alone.add(topic)
                continue
            operations += changes
        if operations:
            await self._store.multi(operations)
        self._known_states.clear()
        set_strays_aside(self._log_dirs, found, left_alone)
        for metadata in found:
            await self.lead_all(metadata, is_new=False)
        # Only now, when all topics are known: a coordinator that takes up its partition ends the transactions
        # that were decided, and takes a topic that is not known for a deleted one, which needs no marker.
        for metadata in found:
            await self.tell_leading(metadata)
        change = self._metadata.change()
        for topic, indexes in dropped.items():
            # Groups are known only now.
            replicas: dict[int, tuple[int, ...]] = {index: (self._metadata.local_id,) for index in indexes}
            change.report_deleted(TopicMetadata(topic, UUID(int=0), describe_partitions(replicas)))
            topic_log.deleted(topic)
        change.publish()
        await self.note_offline(
            (topic.name, partition.partition)
            for topic in found
            for partition in topic.partitions
            if self._replicas.get(topic.name, partition.partition) is None
        )
        topic_log.leads_from_now_on(
            self._metadata.local_id,
            [
                (topic.name, partition.partition)
                for topic in found
                for partition in topic.partitions
                if self._replicas.get(topic.name, partition.partition) is not None
            ],
        )

    async def note_offline(self, lost: Iterable[tuple[str, int]]) -> None:
        """Nobody leads these partitions, whose disk failed, until a start finds the disk working."""
        local = self._metadata.local_id
        states: dict[str, PartitionState] = {}
        for name, index in lost:
            topic, old = self._metadata.topics.get(name), self._metadata.partition(name, index)
            if topic is None or old is None or old.leader != local:
                continue
            lead = replace(old, leader=NO_LEADER, leader_epoch=old.leader_epoch + 1, offline=(local,))
            partitions = (*topic.partitions[:index], lead, *topic.partitions[index + 1 :])
            self._metadata.put_topic(replace(topic, partitions=partitions))
            path = znodes.partition_state_path(name, index)
            states[path] = PartitionState(NO_LEADER, lead.leader_epoch, old.isr, FIRST_CONTROLLER_EPOCH)
        if states:
            try:
                await self._store.multi(
                    [SetData(path, znodes.encode_partition_state(state)) for path, state in states.items()]
                )
            except MetadataStoreError as error:
                # The journal may lie on the disk that failed. The next start finds out by itself.
                log.error("cannot note which partitions are offline: %s", error)

    async def _read_topic(self, name: str, operations: list[Operation]) -> TopicMetadata:
        """A topic as it was, led by this broker in the next epoch; `operations` get what that changes."""
        data, _ = await self._store.get(znodes.topic_path(name))
        state = znodes.decode_topic(name, data)
        local = self._metadata.local_id
        partitions = []
        for index, replicas in sorted(state.replicas.items()):
            path = znodes.partition_state_path(name, index)
            # The log may know a newer epoch: another broker led it while our tree was not in use.
            held = self._log_dirs.logs.get((name, index))
            epoch = held.leader_epochs.latest_epoch if held is not None else -1
            try:
                data, stat = await self._store.get(path)
            except NoNode:
                # The broker was killed while it made the topic.
                operations += partition_nodes(name, {index: replicas}, {index: epoch + 1})
                partitions.append(PartitionMetadata(index, local, epoch + 1, replicas, (local,), 0))
                continue
            old = self._known_states.get(data or b"")
            if old is None:
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
            operations.append(SetData(path, znodes.encode_partition_state(led), stat.version))
            partitions.append(
                PartitionMetadata(index, local, led.leader_epoch, replicas, led.isr, stat.version + 1)
            )
        topic_id = state.topic_id or UUID(int=0)
        return TopicMetadata(name, topic_id, tuple(partitions))

    async def _adopt(self) -> None:
        """Topics that have folders here and are not in the tree."""
        found: dict[str, dict[int, UUID | None]] = {}
        for (topic, partition), held in self._log_dirs.logs.items():
            found.setdefault(topic, {})[partition] = held.topic_id
        for topic, partitions in sorted(found.items()):
            if await self._store.exists(znodes.topic_path(topic)) is not None:
                continue
            adopted = Adopted(self._config, self._log_dirs, topic, partitions, self._metadata.local_id)
            self._overrides.put(topic, adopted.overrides)
            self._log_dirs.update_config(topic)
            await self.write_topic(adopted.state, adopted.overrides, adopted.epochs)
            log.warning(
                "adopted topic %s with %d partitions from the data folders, with default settings%s",
                topic,
                len(adopted.state.replicas),
                "".join(f", {name}={value}" for name, value in adopted.overrides.items()),
            )
        retention_ms = self._config.duration_ms("log.retention.ms")
        if found and retention_ms >= 0:
            log.warning(
                "adopted topics lose records older than %.1f days (log.retention.ms): to keep them, "
                "stop and start with --override log.retention.ms=-1, or set retention.ms of the topics",
                retention_ms / 86_400_000,
            )

    # --- create

    async def create(
        self,
        name: str,
        *,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
        timeout_ms: int = CHANGE_TIMEOUT_MS,
        charge: Charge | None = None,
    ) -> TopicMetadata:
        """Make a topic and lead it at once. Raises KafkaError with what the client gets."""
        async with self.lock:
            return await self._make(
                name, partitions, replication_factor, assignments, configs or {}, validate_only, charge
            )

    async def ensure(
        self,
        name: str,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        configs: Mapping[str, str] | None = None,
        charge: Charge | None = None,
    ) -> TopicMetadata:
        """The topic, made when there is none of its name."""
        async with self.lock:
            known = self._metadata.topics.get(name)
            if known is not None:
                return known
            return await self._make(name, partitions, replication_factor, None, configs or {}, False, charge)

    async def auto_create(self, name: str, charge: Charge | None = None) -> TopicMetadata:
        """The topic, made with the broker's defaults when there is none (auto.create.topics.enable)."""
        return await self.ensure(name, charge=charge)

    async def ensure_internal(self, name: str) -> TopicMetadata:
        """One of the broker's own topics, made when there is none."""
        internal = topic_rules.internal_topic(self._config, name, len(self._metadata.brokers))
        return await self.ensure(name, internal.partitions, internal.replication_factor, internal.configs)

    async def _make(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        assignments: Mapping[int, Sequence[int]] | None,
        configs: Mapping[str, str],
        validate_only: bool,
        charge: Charge | None,
    ) -> TopicMetadata:
        """As `create`, with the lock held."""
        topic_rules.check_new_name(name, self._metadata)
        replicas = topic_rules.replicas_for(
            self._config, self._metadata.brokers, partitions, replication_factor, assignments
        )
        topic_rules.check_configs(self._config, configs)
        if validate_only:
            return TopicMetadata(name, UUID(int=0), describe_partitions(replicas))
        if charge is not None:
            charge(len(replicas))
        topic_id = new_topic_id()
        try:
            await self.write_topic(TopicState(name, topic_id, replicas), configs, {})
        except TransactionFailed as error:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.") from error
        self._overrides.put(name, configs)
        metadata = TopicMetadata(name, topic_id, describe_partitions(replicas))
        await self.lead_all(metadata, is_new=True)
        await self.tell_leading(metadata)
        await self._check_made(metadata)
        topic_log.made(name, replicas)
        return metadata

    async def _check_made(self, topic: TopicMetadata) -> None:
        """Take a new topic back that the process has no descriptors for: it would have no leader."""
        for partition in topic.partitions:
            refusal = self._replicas.refusal(topic.name, partition.partition)
            if isinstance(refusal, OutOfResources):
                await self.drop(topic.name)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot create '{topic.name}': {refusal}")

    async def write_topic(
        self, state: TopicState, configs: Mapping[str, str], epochs: Mapping[int, int]
    ) -> None:
        """Have the topic in the store; with the lock held, as the rest of these."""
        has_config = await self._store.exists(znodes.config_path("topics", state.name)) is not None
        operations = creation(state, configs, has_config)
        await self._write_partitions(operations, state.name, state.replicas, epochs)

    async def _write_partitions(
        self,
        operations: list[Operation],
        topic: str,
        replicas: Mapping[int, Sequence[int]],
        epochs: Mapping[int, int],
    ) -> None:
        """`operations`, which make the partitions known, and the partitions' nodes: in one transaction as far
        as they are few. What a crash keeps from being written the next start makes up for.
        """
        indexes = list(replicas)
        for first in range(0, len(indexes), _PARTITIONS_AT_ONCE):
            some = {index: replicas[index] for index in indexes[first : first + _PARTITIONS_AT_ONCE]}
            await self._store.multi([*operations, *partition_nodes(topic, some, epochs)])
            operations = []

    async def lead_all(self, topic: TopicMetadata, *, is_new: bool, first: int = 0) -> None:
        """Lead a topic's partitions from `first` on; clients learn of them when all are led."""
        await self._replicas.prepare(
            (topic.name, partition.partition, topic.topic_id) for partition in topic.partitions[first:]
        )
        turn = await self._long_work.begin()
        least = self._overrides.min_insync_replicas(topic.name)
        for partition in topic.partitions[first:]:
            await turn.pause_if_due()
            self._replicas.lead(
                topic.name,
                partition.partition,
                topic.topic_id,
                partition.leader_epoch,
                partition.isr,
                is_new=is_new,
                min_insync_replicas=min(least, len(partition.replicas)),
            )
        self._metadata.put_topic(topic)

    async def tell_leading(self, topic: TopicMetadata, first: int = 0) -> None:
        """Tell who wants to know, the coordinators, that a topic's partitions from `first` on are led."""
        turn = await self._long_work.begin()
        for partition in topic.partitions[first:]:
            self._leaderships.leading(topic.name, partition.partition)
            await turn.pause_if_due()

    # --- extend

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        validate_only: bool,
        timeout_ms: int = CHANGE_TIMEOUT_MS,
        charge: Charge | None = None,
    ) -> None:
        """Give a topic `count` partitions in all; `timeout_ms` as for `create`. Raises KafkaError."""
        async with self.lock:
            known = self._metadata.topics.get(name)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            added = topic_rules.added_replicas(
                [item.replicas for item in known.partitions], count, assignments, self._metadata.brokers
            )
            if validate_only:
                return
            if charge is not None:
                charge(len(added))
            replicas = {item.partition: item.replicas for item in known.partitions} | added
            state = TopicState(name, known.topic_id, replicas)
            change = SetData(znodes.topic_path(name), znodes.encode_topic(state))
            await self._write_partitions([change], name, added, {})
            extended = TopicMetadata(name, known.topic_id, known.partitions + describe_partitions(added))
            await self.lead_all(extended, is_new=True, first=len(known.partitions))
            await self.tell_leading(extended, first=len(known.partitions))
            topic_log.extended(name, len(known.partitions), added)

    # --- delete

    async def delete(self, name: str, timeout_ms: int = CHANGE_TIMEOUT_MS) -> None:
        """Drop a topic with its logs and settings; `timeout_ms` as for `create`. Raises KafkaError when there
        is none."""
        async with self.lock:
            if name not in self._metadata.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            await self._store.put(znodes.delete_topic_path(name), None)
            await self.drop(name)
            topic_log.deleted(name)

    async def drop(self, name: str) -> list[int]:
        """Forget a topic, all of which goes; the partitions that it had."""
        known = self._metadata.topics.get(name)
        logs = self._log_dirs.logs
        if known is None:
            # A deletion that a crash cut short, or a fork that failed.
            self._overrides.forget(name)
            partitions = sorted(index for topic, index in logs if topic == name)
        else:
            # One more may have been made, and not become known.
            count = len(known.partitions)
            while (name, count) in logs:
                count += 1
            partitions = list(range(count))
        for index in partitions:
            self._leaderships.stopping(name, index)
        # From here on clients are told that there is no such topic, though some of it is still served.
        self._metadata.remove_topic(name)
        turn = await self._long_work.begin()
        errors = await self._replicas.delete_all([(name, index) for index in partitions], turn)
        for (_, index), error in errors.items():
            log.error("the deletion of %s-%d is not on disk: %s", name, index, error)
        await self._store.delete_tree(znodes.topic_path(name))
        await self._store.delete_tree(znodes.config_path("topics", name))
        await self._store.delete_tree(znodes.delete_topic_path(name))
        return partitions

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._store.children(path)
        except NoNode:
            return []
