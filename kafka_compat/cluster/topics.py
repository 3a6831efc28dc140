"""Creation, extension and deletion of topics. This broker writes changes to the store; the controller carries
them out and reports them in UpdateMetadata requests.

As in Kafka with ZooKeeper, only the controller accepts requests to change topics; other brokers respond
NOT_CONTROLLER. In a cluster with a quorum, every broker accepts them, as in Kafka. Any broker can create a
requested topic that is missing. All methods raise KafkaError with the client's error code. After all checks,
`charge` is called with the number of new partitions.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_compat.cluster.topic_writes import TopicWrites
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import INT32_MAX
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStoreError
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata import topic_log, topic_rules
from kafka_compat.metadata.cache import NO_LEADER, TopicMetadata
from kafka_compat.metadata.topic_names import may_collide
from kafka_compat.metadata.topic_nodes import describe_partitions, new_topic_id
from kafka_compat.metadata.topic_rules import CHANGE_TIMEOUT_MS, DEFAULT, Charge
from kafka_compat.storage.errors import OutOfResources

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.cluster.controller_service import ControllerService
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.replication.replica_manager import ReplicaManager

log = logging.getLogger(__name__)

RETRY_S = 0.1
_REMOVED_WITHIN_S = 1.0
"""Maximum time in seconds to wait for a deletion, which is sufficient if all brokers are online."""


class Topics:
    def __init__(
        self,
        context: BrokerContext,
        service: ControllerService,
        replicas: ReplicaManager,
        *,
        may_have_peers: bool,
    ) -> None:
        """If `may_have_peers` is true, internal topics are created only when there are enough brokers."""
        self._config = context.config
        self._store = context.store
        self._metadata = context.metadata
        self._service = service
        self._replicas = replicas
        self._may_have_peers = may_have_peers
        quorum = context.config.quorum
        self._is_on_quorum = quorum is not None
        self._is_only_controller = quorum is not None and quorum.sole_address is not None
        self.writes = TopicWrites()
        self._unseen: set[str] = set()
        """Topics that this broker has created, but that the metadata may still lack."""
        self._metadata_changed = asyncio.Event()
        self._metadata.feed.subscribe(self._on_metadata)

    def _on_metadata(self, _: MetadataDelta) -> None:
        self._metadata_changed.set()
        self._metadata_changed = asyncio.Event()

    async def until_brokers(self, count: int) -> None:
        """Wait, without a time limit, until this many brokers are registered."""
        while len(self._metadata.brokers) < count:
            await self._metadata_changed.wait()

    async def report_offline(self) -> None:
        """Report a failed log directory to the controller (KIP-112). Raises MetadataStoreError on failure."""
        await self._service.begin()
        event = znodes.encode_log_dir_event(self._metadata.local_id)
        await self._store.create(znodes.LOG_DIR_EVENT_PREFIX, event, sequential=True)

    def forget_leaders(self, lost: Iterable[tuple[str, int]]) -> None:
        """Report to clients that these partitions have no leader: no other broker can become leader."""
        local, change = self._metadata.local_id, self._metadata.change()
        for name, index in lost:
            topic, old = self._metadata.topics.get(name), self._metadata.partition(name, index)
            if topic is None or old is None or old.leader != local:
                continue
            lost_one = old._replace(leader=NO_LEADER, leader_epoch=old.leader_epoch + 1, offline=(local,))
            partitions = (*topic.partitions[:index], lost_one, *topic.partitions[index + 1 :])
            change.put_topic(topic._replace(partitions=partitions))
        change.publish()

    # --- topics created automatically on first use

    async def ensure(
        self,
        name: str,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        configs: Mapping[str, str] | None = None,
        charge: Charge | None = None,
    ) -> TopicMetadata:
        """Return the topic, and create it with the broker's defaults if it is missing
        (auto.create.topics.enable). If several brokers do this at the same time, only one creates the topic.
        """
        known = self._metadata.topics.get(name)
        if known is not None:
            return known
        await self._service.begin()
        try:
            return await self._make(name, partitions, replication_factor, None, configs or {}, charge=charge)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        with store_errors_mapped():
            problem = await self._malformed_node(name)
        if problem is not None:
            # Do not wait for metadata, because the controller ignores a malformed topic.
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(problem))
        await self._until(lambda: name in self._metadata.topics)
        return self._metadata.topics[name]

    async def ensure_internal(self, name: str) -> TopicMetadata:
        """Return an internal topic, and create it if it is missing. As in Kafka, creation fails if there are
        fewer brokers than the configured replication factor, so that the first broker of a cluster does not
        store the only replica of the offsets. On a standalone broker, the replication factor is 1. If the
        settings name this broker as the only controller, the default replication factor is limited to the
        number of brokers: the cluster probably consists of this node.
        """
        brokers = INT32_MAX if self._may_have_peers else 1
        if self._is_only_controller and not topic_rules.has_internal_replication_factor(self._config, name):
            brokers = len(self._metadata.brokers)
        internal = topic_rules.internal_topic(self._config, name, brokers)
        return await self.ensure(name, internal.partitions, internal.replication_factor, internal.configs)

    # --- client requests

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
        """Create a topic, and return when all partitions have leaders, except, on a quorum, for those whose
        brokers have died. Raises KafkaError if this fails.
        """
        await self._check_controller()
        return await self._make(
            name,
            partitions,
            replication_factor,
            assignments,
            configs or {},
            validate_only,
            timeout_ms,
            charge,
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
        charge: Charge | None = None,
    ) -> TopicMetadata:
        async with self.writes.of(name):
            with store_errors_mapped(ErrorCode.NOT_CONTROLLER):
                # The metadata may still lack a topic that another broker has created.
                ask_store = self._may_have_peers and may_collide(name)
                stored = await self._store.children(znodes.TOPICS) if ask_store else ()
            topic_rules.check_new_name(name, self._metadata, self._unseen.union(stored))
            replicas = topic_rules.replicas_for(
                self._config,
                self._metadata.brokers,
                partitions,
                replication_factor,
                assignments,
                may_be_away=self._may_have_peers,
            )
            topic_rules.check_configs(self._config, configs)
            if validate_only:
                from kafka_compat.protocol.zero_uuid import ZERO_UUID

                return TopicMetadata(name, ZERO_UUID, describe_partitions(replicas))
            if charge is not None:
                charge(len(replicas))
            topic_id = new_topic_id()
            state = TopicState(name, topic_id, replicas)
            with store_errors_mapped(ErrorCode.NOT_CONTROLLER):
                await self._write(state, configs)
            self._unseen.add(name)
            topic_log.created(name, replicas)
        try:
            await self._until(lambda: self._is_settled(name, replicas), timeout_ms)
        finally:
            self._unseen.discard(name)
        created = self._metadata.topics.get(name)
        if created is None or len(created.partitions) < len(replicas):
            return TopicMetadata(name, topic_id, describe_partitions(replicas))
        await self._check_resources(created)
        return created

    async def _check_resources(self, topic: TopicMetadata) -> None:
        """If this process has too few descriptors for a new topic, delete the topic and raise KafkaError."""
        for partition in topic.partitions:
            refusal = self._replicas.refusal(topic.name, partition.partition)
            if isinstance(refusal, OutOfResources):
                await self._request_deletion(topic.name)
                await self._until(lambda: self._metadata.topic_name(topic.topic_id) is None)
                await self._removed(topic.name)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot create '{topic.name}': {refusal}")

    async def _malformed_node(self, name: str) -> MalformedNode | None:
        """Return the first malformed node of a topic, or None if all nodes are valid or one is missing."""
        try:
            data, _ = await self._store.get(znodes.topic_path(name))
            for index in znodes.decode_topic(name, data).replicas:
                data, stat = await self._store.get(znodes.partition_state_path(name, index))
                znodes.decode_partition_state(name, index, data, stat.version)
        except stores.NoNode:
            return None
        except MalformedNode as error:
            return error
        return None

    async def _write(self, state: TopicState, configs: Mapping[str, str]) -> None:
        config_path, config = znodes.config_path("topics", state.name), znodes.encode_config(configs)
        has_config = False
        while True:
            operations: list[stores.Operation] = [
                stores.SetData(config_path, config) if has_config else stores.Create(config_path, config),
                stores.Create(znodes.topic_path(state.name), znodes.encode_topic(state)),
            ]
            try:
                await self._store.multi(operations)
                return
            except stores.ConnectionLost:
                continue
            except stores.TransactionFailed as failed:
                # Replace settings that exist without the topic. Another client may write or delete them.
                if failed.index == 0 and isinstance(
                    failed.cause, stores.NoNode if has_config else stores.NodeExists
                ):
                    has_config = not has_config
                    continue
                if isinstance(failed.cause, stores.NodeExists):
                    if await self._is_written(state):
                        # An earlier attempt, whose response was lost, has created the topic.
                        return
                    problem = f"Topic '{state.name}' already exists."
                    raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, problem) from failed
                raise

    async def _is_written(self, state: TopicState) -> bool:
        try:
            data, _ = await self._store.get(znodes.topic_path(state.name))
            return znodes.decode_topic(state.name, data).topic_id == state.topic_id
        except (stores.NoNode, MalformedNode):
            return False

    async def _extend(self, state: TopicState, version: int) -> None:
        path, data = znodes.topic_path(state.name), znodes.encode_topic(state)
        has_lost = False
        while True:
            try:
                await self._store.set(path, data, version)
                return
            except stores.ConnectionLost:
                has_lost = True
            except stores.BadVersion:
                if has_lost and (await self._store.get(path))[0] == data:
                    return
                raise

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        validate_only: bool,
        timeout_ms: int = CHANGE_TIMEOUT_MS,
        charge: Charge | None = None,
    ) -> None:
        """Extend a topic to `count` partitions, and return when the partitions have leaders."""
        await self._check_controller()
        async with self.writes.of(name):
            if name not in self._metadata.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            with store_errors_mapped(ErrorCode.NOT_CONTROLLER):
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
            if charge is not None:
                charge(len(added))
            extended = TopicState(name, state.topic_id, state.replicas | added)
            try:
                with store_errors_mapped(ErrorCode.NOT_CONTROLLER):
                    await self._extend(extended, stat.version)
            except stores.BadVersion:
                problem = f"The topic '{name}' was changed at the same time."
                raise KafkaError(ErrorCode.INVALID_REQUEST, problem) from None
            topic_log.grown(name, len(present), added)
        await self._until(lambda: self._all_led(name, count), timeout_ms)

    async def delete(self, name: str, timeout_ms: int = CHANGE_TIMEOUT_MS) -> None:
        """Request the deletion of a topic, and return when the topic is deleted."""
        await self._check_controller()
        if name not in self._metadata.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        known = self._metadata.topics[name]
        replicas = {replica for partition in known.partitions for replica in partition.replicas}
        with store_errors_mapped(ErrorCode.NOT_CONTROLLER):
            await self._request_deletion(name)
        await self._until(lambda: self._metadata.topic_name(known.topic_id) is None, timeout_ms)
        if replicas <= self._metadata.brokers.keys():
            await self._removed(name)

    async def _request_deletion(self, name: str) -> None:
        while True:
            try:
                await self._store.create(znodes.delete_topic_path(name))
            except stores.ConnectionLost:
                continue
            except stores.NodeExists:
                pass
            return

    async def _removed(self, name: str) -> None:
        """Wait, for a limited time, until the nodes of a deleted topic no longer exist and a topic with this
        name may be created. Kafka does not wait: clients that recreate the topic immediately may get
        TOPIC_ALREADY_EXISTS.
        """
        with contextlib.suppress(TimeoutError, MetadataStoreError):
            async with asyncio.timeout(_REMOVED_WITHIN_S):
                seen = asyncio.Event()
                while True:
                    # Do not use `exists`, because it would set a watch for the next topic with this name.
                    await self._store.get(znodes.topic_path(name), lambda _: seen.set())
                    await seen.wait()
                    seen.clear()

    async def _check_controller(self) -> None:
        if not await self._service.begin() and not self._metadata.serves_for_controller:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)

    async def until_led(self, name: str, partition_count: int) -> TopicMetadata:
        """Wait until a topic has `partition_count` or more partitions, all with leaders. Return the topic."""
        await self._until(lambda: self._all_led(name, partition_count))
        return self._metadata.topics[name]

    def _all_led(self, name: str, partition_count: int) -> bool:
        known = self._metadata.topics.get(name)
        return (
            known is not None
            and len(known.partitions) >= partition_count
            and all(partition.leader >= 0 for partition in known.partitions)
        )

    def _is_settled(self, name: str, replicas: Mapping[int, Sequence[int]]) -> bool:
        """Return whether each partition of a new topic has a leader, or, on a quorum, has no registered
        replica any more, for example because its broker has just died. The metadata may lack such partitions.
        In Kafka's quorums, clients do not wait for leaders at all.
        """
        if self._all_led(name, len(replicas)):
            return True
        if not self._is_on_quorum:
            return False
        return all(
            self._is_led(name, index) or self._metadata.brokers.keys().isdisjoint(assigned)
            for index, assigned in replicas.items()
        )

    def _is_led(self, name: str, index: int) -> bool:
        partition = self._metadata.partition(name, index)
        return partition is not None and partition.leader >= 0

    async def _until(self, reached: Callable[[], bool], timeout_ms: int = CHANGE_TIMEOUT_MS) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not reached():
                    await self._metadata_changed.wait()
        except TimeoutError:
            problem = "The controller did not make the change in time."
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, problem) from None
