"""Topics of a cluster: this broker writes what is wanted into the store, the controller does it, and everyone
learns of it by UpdateMetadata.

Requests by clients are the controller's, as in Kafka with ZooKeeper: another broker answers NOT_CONTROLLER.
Topics that come into being by their first use are written by the broker that is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from coordination import znodes
from coordination.metadata_store import (
    BadVersion,
    Create,
    MetadataStore,
    MetadataStoreError,
    NodeExists,
    NoNode,
    Operation,
    SetData,
    TransactionFailed,
)
from coordination.model import TopicState
from kafka_compat import topic_rules
from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.config import BrokerConfig, TopicToCreate
from kafka_compat.error_mapping import store_failures_told
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata_cache import MetadataCache, TopicMetadata
from kafka_compat.topic_names import OFFSETS_TOPIC, may_collide
from kafka_compat.topic_nodes import describe_partitions, new_topic_id
from kafka_compat.topics import CHANGE_TIMEOUT_MS, TopicManager
from storage.log_dirs import LogDirs

log = logging.getLogger(__name__)


class ClusterTopics(TopicManager):
    """See above."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        metadata: MetadataCache,
        log_dirs: LogDirs,
        service: ControllerService,
    ) -> None:
        super().__init__(config, store, metadata, log_dirs)
        self._service = service
        self._metadata_changed = asyncio.Event()

    def metadata_changed(self) -> None:
        """UpdateMetadata came: those who wait look again."""
        self._metadata_changed.set()
        self._metadata_changed = asyncio.Event()

    async def learn_overrides(self, topics: Sequence[str]) -> None:
        """Read the settings of topics that this broker begins to hold, before their logs are made."""
        for topic in topics:
            if topic not in self._overrides:
                self._overrides[topic] = {}
                await self._read_overrides(topic)

    async def reread_overrides(self, topic: str) -> dict[str, str]:
        """The settings of a topic as they are now, put into effect."""
        try:
            data, _ = await self._store.get(znodes.config_path("topics", topic))
        except NoNode:
            return {}
        overrides = znodes.decode_config(data)
        self.apply_overrides(topic, overrides)
        return overrides

    def forget(self, topic: str) -> None:
        """A topic is gone."""
        self._overrides.pop(topic, None)
        self.replicas.quotas.configure_topic(topic, {})

    # --- requests of clients

    async def create_wanted(self, wanted: TopicToCreate) -> None:
        """As above, once as many brokers are there as it wants replicas, however long they take to come.

        Every broker of the cluster may be told of the same topic: one of them makes it.
        """
        while len(self._metadata.brokers) < wanted.replication_factor:
            await self._metadata_changed.wait()
        await super().create_wanted(wanted)

    async def note_offline(self, lost: Iterable[tuple[str, int]]) -> None:
        """Have the controller ask this broker what it still has (KIP-112)."""
        event = znodes.encode_log_dir_event(self._metadata.local_id)
        try:
            await self._store.create(znodes.LOG_DIR_EVENT_PREFIX, event, sequential=True)
        except MetadataStoreError as error:
            log.error("cannot tell the controller that a disk failed: %s", error)

    async def ensure_internal(self, name: str) -> TopicMetadata:
        """As Kafka, with as many replicas as its setting says, or not at all: a first broker that serves
        groups before the others came would hold their offsets alone.
        """
        prefix = "offsets.topic" if name == OFFSETS_TOPIC else "transaction.state.log"
        return await self._ensure(
            name,
            self._config.int(f"{prefix}.num.partitions"),
            self._config.int(f"{prefix}.replication.factor"),
            topic_rules.internal_configs(self._config, name),
        )

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
            with store_failures_told(ErrorCode.NOT_CONTROLLER):
                # Two names that collide may come in one request, before anyone is told of either.
                written = await self._store.children(znodes.TOPICS) if may_collide(name) else ()
            topic_rules.check_new_name(name, {*self._metadata.topics, *written})
            replicas = topic_rules.replicas_for(
                self._config,
                self._metadata.brokers,
                partitions,
                replication_factor,
                assignments,
                may_be_away=True,
            )
            topic_rules.check_configs(self._config, configs)
            if validate_only:
                return TopicMetadata(name, UUID(int=0), describe_partitions(replicas))
            with store_failures_told(ErrorCode.NOT_CONTROLLER):
                await self._write(TopicState(name, new_topic_id(), replicas), configs)
        await self._until(lambda: self._all_led(name, len(replicas)), timeout_ms)
        return self._metadata.topics[name]

    async def _until_known(self, name: str, refusal: KafkaError) -> None:
        await self._until(lambda: name in self._metadata.topics)

    async def _write(self, state: TopicState, configs: Mapping[str, str]) -> None:
        config_path, config = znodes.config_path("topics", state.name), znodes.encode_config(configs)
        has_config = await self._store.exists(config_path) is not None
        operations: list[Operation] = [
            SetData(config_path, config) if has_config else Create(config_path, config),
            Create(znodes.topic_path(state.name), znodes.encode_topic(state)),
        ]
        try:
            await self._store.multi(operations)
        except TransactionFailed as failed:
            if isinstance(failed.cause, NodeExists):
                problem = f"Topic '{state.name}' already exists."
                raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, problem) from failed
            raise

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        validate_only: bool,
        timeout_ms: int = CHANGE_TIMEOUT_MS,
    ) -> None:
        self._check_controller()
        async with self._lock:
            if name not in self._metadata.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            with store_failures_told(ErrorCode.NOT_CONTROLLER):
                data, stat = await self._store.get(znodes.topic_path(name))
            state = znodes.decode_topic(name, data)
            if state.adding_replicas or state.removing_replicas:
                raise KafkaError(
                    ErrorCode.REASSIGNMENT_IN_PROGRESS,
                    f"A partition reassignment is in progress for the topic '{name}'.",
                )
            present = [state.replicas[index] for index in sorted(state.replicas)]
            added = topic_rules.added_replicas(present, count, assignments, self._metadata.brokers)
            if validate_only:
                return
            extended = TopicState(name, state.topic_id, state.replicas | added)
            try:
                with store_failures_told(ErrorCode.NOT_CONTROLLER):
                    await self._store.set(
                        znodes.topic_path(name), znodes.encode_topic(extended), stat.version
                    )
            except BadVersion:
                problem = f"The topic '{name}' was changed at the same time."
                raise KafkaError(ErrorCode.INVALID_REQUEST, problem) from None
        await self._until(lambda: self._all_led(name, count), timeout_ms)

    async def delete(self, name: str, timeout_ms: int = CHANGE_TIMEOUT_MS) -> None:
        self._check_controller()
        if name not in self._metadata.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic_id = self._metadata.topics[name].topic_id
        with store_failures_told(ErrorCode.NOT_CONTROLLER):
            await self._store.put(znodes.delete_topic_path(name), None)
        await self._until(lambda: self._metadata.topic_name(topic_id) is None, timeout_ms)

    def _check_controller(self) -> None:
        if not self._service.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")

    def _all_led(self, name: str, partition_count: int) -> bool:
        known = self._metadata.topics.get(name)
        return (
            known is not None
            and len(known.partitions) >= partition_count
            and all(partition.leader >= 0 for partition in known.partitions)
        )

    async def _until(self, reached: Callable[[], bool], timeout_ms: int = CHANGE_TIMEOUT_MS) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not reached():
                    await self._metadata_changed.wait()
        except TimeoutError:
            problem = "The controller did not carry the change out in time."
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, problem) from None
