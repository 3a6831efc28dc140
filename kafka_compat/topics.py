"""Topics from the store to the logs: create, delete, extend, and find again after a restart.

The store is the truth. A topic exists once its nodes do (one multi); its logs are made from that, now or at
the next start. A deletion is first noted in /admin/delete_topics, so that one cut short by a crash is
finished at the next start.

With one broker there is nothing to elect: it leads every partition it holds, with itself in sync. Each start
raises the leader epochs, as a controller does that finds the broker back, so that readers can tell records of
before from records of after.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from coordination import znodes
from coordination.metadata_store import (
    MetadataStore,
    MetadataStoreError,
    NoNode,
    Operation,
    SetData,
    TransactionFailed,
)
from coordination.model import PartitionState, TopicState
from kafka_compat import topic_rules
from kafka_compat.config import BrokerConfig, TopicToCreate, log_config
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata_cache import MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.topic_nodes import (
    FIRST_CONTROLLER_EPOCH,
    FIRST_EPOCH,
    creation,
    describe_partitions,
    new_topic_id,
    partition_nodes,
)
from kafka_compat.topic_rules import DEFAULT
from storage.config import LogConfig

if TYPE_CHECKING:
    from kafka_compat.replication.replica_manager import ReplicaManager
    from storage.log_dirs import LogDirs

log = logging.getLogger(__name__)

CHANGE_TIMEOUT_MS = 15_000
"""How long a cluster's controller may take to carry a change out; then the client gets REQUEST_TIMED_OUT."""

NO_LEADER = -1

LeaderListener = Callable[[str, int], None]


class TopicManager:
    """The topics of the cluster, as this broker makes and holds them."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        metadata: MetadataCache,
        log_dirs: LogDirs,
    ) -> None:
        self._config = config
        self._store = store
        self._metadata = metadata
        self._log_dirs = log_dirs
        self._lock = asyncio.Lock()
        self._overrides: dict[str, dict[str, str]] = {}
        self.replicas: ReplicaManager
        self.on_leading: list[LeaderListener] = []
        """Called with topic and partition when this broker has begun to lead it."""
        self.on_stopping: list[LeaderListener] = []
        """Called before this broker stops holding a partition."""
        self.on_deleted: list[Callable[[str, list[int]], None]] = []
        """Called with a topic and its partitions once nothing of it is left."""

    # --- configuration

    def log_config_for(self, topic: str) -> LogConfig:
        """What the logs of a topic obey: its overrides over the broker's settings over Kafka's defaults."""
        overrides = self._overrides.get(topic)
        if overrides is None:
            return log_config(self._config, topic_rules.internal_configs(self._config, topic))
        return log_config(self._config, overrides)

    def overrides(self, topic: str) -> Mapping[str, str]:
        """The settings that the topic itself has."""
        return self._overrides.get(topic, {})

    def min_insync_replicas(self, topic: str) -> int:
        text = self._overrides.get(topic, {}).get("min.insync.replicas")
        return int(text) if text is not None else self._config.int("min.insync.replicas")

    def _min_isr(self, topic: str, partition: PartitionMetadata) -> int:
        """As in Kafka, min.insync.replicas asks for no more replicas than the partition has."""
        return min(self.min_insync_replicas(topic), len(partition.replicas))

    def apply_overrides(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Let changed settings take effect on the topic's logs."""
        self._overrides[topic] = dict(overrides)
        self.replicas.quotas.configure_topic(topic, overrides)
        self._apply_config(topic)

    def apply_broker_defaults(self) -> None:
        """Let changed broker settings take effect on every log that does not override them."""
        for topic in list(self._metadata.topics):
            self._apply_config(topic)

    def _apply_config(self, topic: str) -> None:
        known = self._metadata.topics.get(topic)
        if known is None:
            return
        config = self.log_config_for(topic)
        for partition in known.partitions:
            held = self.replicas.get(topic, partition.partition)
            if held is not None:
                held.configure(config, self._min_isr(topic, partition))

    # --- start

    async def read_overrides(self) -> None:
        """Learn the topics' own settings, before any log is opened."""
        for topic in await self._children(znodes.TOPICS):
            await self._read_overrides(topic)

    async def _read_overrides(self, topic: str) -> None:
        try:
            data, _ = await self._store.get(znodes.config_path("topics", topic))
        except NoNode:
            return
        self._overrides[topic] = znodes.decode_config(data)
        self.replicas.quotas.configure_topic(topic, self._overrides[topic])

    async def load(self, tree_is_new: bool) -> None:
        """Finish deletions, adopt what is on disk when the tree is new, then lead what the store says."""
        for topic in await self._children(znodes.DELETE_TOPICS):
            await self._remove(topic)
        if tree_is_new:
            await self._adopt()
        operations: list[Operation] = []
        found = [await self._read_topic(topic, operations) for topic in await self._children(znodes.TOPICS)]
        if operations:
            await self._store.multi(operations)
        for metadata in found:
            self._lead_all(metadata, is_new=False)
        await self.note_offline(
            (topic.name, partition.partition)
            for topic in found
            for partition in topic.partitions
            if self.replicas.get(topic.name, partition.partition) is None
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
            data, stat = await self._store.get(path)
            old = znodes.decode_partition_state(data, stat.version)
            # The log may know a newer epoch: another broker led it while our tree was not in use.
            held = self._log_dirs.logs.get((name, index))
            epoch = max(old.leader_epoch, held.latest_leader_epoch if held is not None else -1)
            led = PartitionState(local, epoch + 1, (local,), old.controller_epoch)
            operations.append(SetData(path, znodes.encode_partition_state(led), stat.version))
            partitions.append(
                PartitionMetadata(index, local, led.leader_epoch, replicas, led.isr, stat.version + 1)
            )
        topic_id = state.topic_id or UUID(int=0)
        return TopicMetadata(name, topic_id, tuple(partitions))

    async def _adopt(self) -> None:
        """Topics whose folders were here before the tree was."""
        found: dict[str, dict[int, UUID | None]] = {}
        for (topic, partition), held in self._log_dirs.logs.items():
            found.setdefault(topic, {})[partition] = held.topic_id
        compacted = {topic for topic, _ in self._log_dirs.clean_offsets}
        for topic, partitions in sorted(found.items()):
            if await self._store.exists(znodes.topic_path(topic)) is not None:
                continue
            topic_id = next((item for item in partitions.values() if item), None) or new_topic_id()
            replicas: dict[int, tuple[int, ...]] = {
                index: (self._metadata.local_id,) for index in range(max(partitions) + 1)
            }
            epochs = {
                index: max(self._log_dirs.logs[topic, index].latest_leader_epoch, FIRST_EPOCH)
                for index in partitions
            }
            overrides = topic_rules.internal_configs(self._config, topic)
            if not overrides and topic in compacted:
                # Retention would delete what compaction had kept.
                overrides = {"cleanup.policy": "compact"}
            self._overrides[topic] = dict(overrides)
            self._log_dirs.update_config(topic)
            await self._write_topic(TopicState(topic, topic_id, replicas), overrides, epochs)
            log.warning(
                "adopted topic %s with %d partitions from the data folders, with default settings%s",
                topic,
                len(replicas),
                "".join(f", {name}={value}" for name, value in overrides.items()),
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
    ) -> TopicMetadata:
        """Make a topic and lead it. Raises KafkaError with the code and message that the client gets.

        `timeout_ms` is how long a cluster may take to lead it; a broker that is alone does so at once.
        """
        self._check_controller()
        return await self._make(
            name, partitions, replication_factor, assignments, configs or {}, validate_only, timeout_ms
        )

    def _check_controller(self) -> None:
        """Raise NOT_CONTROLLER where another broker is the one to ask; alone, a broker is it itself."""

    async def _make(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        assignments: Mapping[int, Sequence[int]] | None,
        configs: Mapping[str, str],
        validate_only: bool = False,
        timeout_ms: int = CHANGE_TIMEOUT_MS,
    ) -> TopicMetadata:
        async with self._lock:
            topic_rules.check_new_name(name, self._metadata.topics)
            replicas = topic_rules.replicas_for(
                self._config, self._metadata.brokers, partitions, replication_factor, assignments
            )
            topic_rules.check_configs(self._config, configs)
            if validate_only:
                return TopicMetadata(name, UUID(int=0), describe_partitions(replicas))
            topic_id = new_topic_id()
            self._overrides[name] = dict(configs)
            try:
                await self._write_topic(TopicState(name, topic_id, replicas), configs, {})
            except TransactionFailed as error:
                raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.") from error
            metadata = TopicMetadata(name, topic_id, describe_partitions(replicas))
            self._lead_all(metadata, is_new=True)
            return metadata

    async def auto_create(self, name: str) -> TopicMetadata:
        """The topic, made with the broker's defaults when there is none (auto.create.topics.enable)."""
        return await self._ensure(name, DEFAULT, DEFAULT, {})

    async def create_wanted(self, wanted: TopicToCreate) -> None:
        """Make a topic of KAFKA_CREATE_TOPICS when there is none of its name; a failure is logged."""
        configs = {"cleanup.policy": wanted.cleanup_policy} if wanted.cleanup_policy else {}
        try:
            await self._ensure(wanted.name, wanted.partitions, wanted.replication_factor, configs)
        except KafkaError as error:
            log.warning("cannot create topic %s: %s", wanted.name, error.message or error.code.name)

    async def ensure_internal(self, name: str) -> TopicMetadata:
        """One of the broker's own topics, made when there is none."""
        internal = topic_rules.internal_topic(self._config, name, len(self._metadata.brokers))
        return await self._ensure(name, internal.partitions, internal.replication_factor, internal.configs)

    async def _ensure(
        self, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
    ) -> TopicMetadata:
        known = self._metadata.topics.get(name)
        if known is not None:
            return known
        try:
            return await self._make(name, partitions, replication_factor, None, configs)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            # Somebody else asked for it, too, and was faster.
            await self._until_known(name, error)
            return self._metadata.topics[name]

    async def _until_known(self, name: str, refusal: KafkaError) -> None:
        """Return when a topic that was refused because it exists is known here; else raise the refusal."""
        if name not in self._metadata.topics:
            raise refusal

    async def _write_topic(
        self, state: TopicState, configs: Mapping[str, str], epochs: Mapping[int, int]
    ) -> None:
        has_config = await self._store.exists(znodes.config_path("topics", state.name)) is not None
        await self._store.multi(creation(state, configs, epochs, has_config))

    def _lead_all(self, topic: TopicMetadata, *, is_new: bool, first: int = 0) -> None:
        for partition in topic.partitions[first:]:
            held = self.replicas.lead(
                topic.name,
                partition.partition,
                topic.topic_id,
                partition.leader_epoch,
                partition.isr,
                is_new=is_new,
            )
            if held is not None:
                held.min_insync_replicas = self._min_isr(topic.name, partition)
        self._metadata.put_topic(topic)
        for listener in self.on_leading:
            for partition in topic.partitions[first:]:
                listener(topic.name, partition.partition)

    # --- extend

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        validate_only: bool,
        timeout_ms: int = CHANGE_TIMEOUT_MS,
    ) -> None:
        """Give a topic `count` partitions in all; `timeout_ms` as for `create`. Raises KafkaError."""
        async with self._lock:
            known = self._metadata.topics.get(name)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            added = topic_rules.added_replicas(
                [item.replicas for item in known.partitions], count, assignments, self._metadata.brokers
            )
            if validate_only:
                return
            replicas = {item.partition: item.replicas for item in known.partitions} | added
            state = TopicState(name, known.topic_id, replicas)
            await self._store.multi(
                [
                    SetData(znodes.topic_path(name), znodes.encode_topic(state)),
                    *partition_nodes(name, added, {}),
                ]
            )
            extended = TopicMetadata(name, known.topic_id, known.partitions + describe_partitions(added))
            self._lead_all(extended, is_new=True, first=len(known.partitions))

    # --- delete

    async def delete(self, name: str, timeout_ms: int = CHANGE_TIMEOUT_MS) -> None:
        """Drop a topic with its logs and settings; `timeout_ms` as for `create`. Raises KafkaError when there
        is none."""
        async with self._lock:
            if name not in self._metadata.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            await self._store.put(znodes.delete_topic_path(name), None)
            await self._remove(name)

    async def _remove(self, name: str) -> None:
        known = self._metadata.topics.get(name)
        partitions = [item.partition for item in known.partitions] if known else []
        partitions += [
            index for topic, index in self._log_dirs.logs if topic == name and index not in partitions
        ]
        for index in partitions:
            for listener in self.on_stopping:
                listener(name, index)
        self._metadata.remove_topic(name)
        for index in partitions:
            self.replicas.delete(name, index)
        self._overrides.pop(name, None)
        await self._store.delete_tree(znodes.topic_path(name))
        await self._store.delete_tree(znodes.config_path("topics", name))
        await self._store.delete_tree(znodes.delete_topic_path(name))
        for deleted in self.on_deleted:
            deleted(name, partitions)

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._store.children(path)
        except NoNode:
            return []
