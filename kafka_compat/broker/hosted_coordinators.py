"""Group, transaction and share coordinators of a broker, created on demand for the partitions of
__consumer_offsets, __transaction_state and __share_group_state that the broker leads.

A coordinator is created when this broker becomes leader of its first partition, or at the first request. A
broker without groups or transactions therefore starts faster and uses less memory.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from kafka_compat.lazy import Lazy
from kafka_compat.metadata.features import TRANSACTION_VERSION
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.coordinator_runtime.scheduler import Scheduler
    from kafka_compat.groups.coordinator import GroupCoordinator
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.share_coordinator.coordinator import ShareCoordinator
    from kafka_compat.share_coordinator.retrying_persister import RetryingPersister
    from kafka_compat.share_partitions.counts import ShareCounts
    from kafka_compat.share_partitions.dead_letter_queue import DeadLetterQueue
    from kafka_compat.share_partitions.share_partition_manager import SharePartitionManager
    from kafka_compat.transactions.coordinator import TransactionCoordinator
    from kafka_compat.transactions.local_markers import LocalMarkerWriter
    from kafka_compat.transactions.verification import Verifications


class HostedCoordinators:
    """The coordinators hosted by a broker. `Leaderships` notifies them of gained and lost leadership."""

    def __init__(
        self,
        context: BrokerContext,
        replicas: ReplicaManager,
        membership: Membership,
        scheduler: Scheduler | None = None,
    ) -> None:
        """`scheduler` runs the coordinators' timers. The default uses real time on this event loop."""
        self._given_scheduler = scheduler
        self._context = context
        self._replicas = replicas
        self._membership = membership
        self._loop = asyncio.get_running_loop()
        self.groups: Lazy[GroupCoordinator] = Lazy(self._make_groups)
        self.transactions: Lazy[TransactionCoordinator] = Lazy(self._make_transactions)
        self.shares: Lazy[ShareCoordinator] = Lazy(self._make_shares)
        self.persister: Lazy[RetryingPersister] = Lazy(self._make_persister)
        """The stored state of all share-partitions, on any broker."""
        self._of_topic: dict[
            str, Lazy[GroupCoordinator] | Lazy[TransactionCoordinator] | Lazy[ShareCoordinator]
        ] = {
            OFFSETS_TOPIC: self.groups,
            TRANSACTIONS_TOPIC: self.transactions,
            SHARE_STATE_TOPIC: self.shares,
        }
        self.share_partitions: Lazy[SharePartitionManager] = Lazy(self._make_share_partitions)
        """The share-partitions that this broker leads."""
        self.markers: Lazy[LocalMarkerWriter] = Lazy(self._make_markers)
        """Writer of transaction markers to the partitions that this broker leads."""
        self.verifications: Lazy[Verifications] = Lazy(self._make_verifications)
        """Verifications of transactions that write to partitions on this broker."""
        leaderships = context.leaderships
        leaderships.on_leading.append(self._leading)
        leaderships.on_stopping.append(self._stopping)
        context.metadata.feed.subscribe(self._on_metadata)

    def close(self) -> None:
        """Stop the coordinators, and complete their pending requests."""
        share_partitions = self.share_partitions.made
        if share_partitions is not None:
            share_partitions.close()
        # Close the persister first, so that it does not retry operations of the share coordinator.
        for closed in (self.persister.made, self.transactions.made, self.groups.made, self.shares.made):
            if closed is not None:
                closed.close()

    def _leading(self, topic: str, partition: int) -> None:
        coordinator = self._of_topic.get(topic)
        replica = None if coordinator is None else self._replicas.get(topic, partition)
        if coordinator is not None and replica is not None:
            coordinator.get().load(partition, replica.leader_epoch)

    def _stopping(self, topic: str, partition: int) -> None:
        share_partitions = self.share_partitions.made
        if share_partitions is not None:
            share_partitions.stopping(topic, partition)
        coordinator = self._of_topic.get(topic)
        if coordinator is not None:
            coordinator.get().unload(partition)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        groups = self.groups.made
        if groups is not None:
            for topic in delta.deleted:
                groups.offsets.forget_topic(topic)
            if delta.deleted:
                groups.share.topics_deleted([topic.topic_id for topic in delta.deleted])
            changed = [topic.name for topic in (*delta.created, *delta.grown, *delta.deleted)]
            if changed:
                groups.topics_changed(changed)
        shares = self.shares.made
        if shares is not None and delta.deleted:
            shares.forget_topics([topic.topic_id for topic in delta.deleted])
        transactions = self.transactions.made
        if transactions is not None and delta.features_changed:
            transactions.set_transaction_version(self._transaction_version)

    @property
    def _transaction_version(self) -> int:
        return self._context.metadata.feature_level(TRANSACTION_VERSION)

    def _scheduler(self) -> Scheduler:
        if self._given_scheduler is not None:
            return self._given_scheduler
        from kafka_compat.coordinator_runtime.scheduler import LoopScheduler

        return LoopScheduler(self._loop)

    def _make_groups(self) -> GroupCoordinator:
        from kafka_compat.config.group import consumer_group_limits, share_group_limits
        from kafka_compat.coordinator_runtime.partition_log import PartitionCoordinatorLog
        from kafka_compat.groups.consumer.cluster_topics import ClusterTopics, ServerAssignors
        from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
        from kafka_compat.groups.coordinator import GroupCoordinator
        from kafka_compat.groups.settings import group_settings
        from kafka_compat.groups.share.groups_of_broker import ShareGroups
        from kafka_compat.storage.records.kinds import CompressionType

        config, clock, metadata = self._context.config, self._context.clock, self._context.metadata
        topics = ClusterTopics(metadata)
        assignors = ServerAssignors(topics)
        codec = CompressionType(config.int("offsets.topic.compression.codec"))
        groups = GroupCoordinator(
            coordinator_log=PartitionCoordinatorLog(self._replicas, metadata, clock, codec),
            scheduler=self._scheduler(),
            settings=group_settings(config),
            now_ms=clock.now_ms,
            partition_exists=lambda topic, partition: metadata.partition(topic, partition) is not None,
            consumer_groups=ConsumerGroups(
                topics, assignors.assign, self._context.group_configs.consumer, consumer_group_limits(config)
            ),
            share_groups=ShareGroups(
                topics,
                topics.partition_counts,
                self._context.group_configs.share,
                lambda: share_group_limits(config),
                self.persister.get,
            ),
        )
        metadata.feed.subscribe(topics.on_metadata)
        groups.start()
        return groups

    def _make_transactions(self) -> TransactionCoordinator:
        from kafka_compat.coordinator_runtime.partition_log import PartitionCoordinatorLog
        from kafka_compat.storage.records.kinds import CompressionType
        from kafka_compat.transactions.coordinator import TransactionCoordinator, transaction_settings

        config, clock, metadata = self._context.config, self._context.clock, self._context.metadata
        transactions = TransactionCoordinator(
            coordinator_log=PartitionCoordinatorLog(
                self._replicas, metadata, clock, CompressionType.NONE, TRANSACTIONS_TOPIC
            ),
            markers=self._membership.marker_writer(self.markers.get()),
            scheduler=self._scheduler(),
            settings=transaction_settings(config),
            now_ms=clock.now_ms,
        )
        transactions.set_transaction_version(self._transaction_version)
        transactions.start()
        return transactions

    def _make_shares(self) -> ShareCoordinator:
        from kafka_compat.coordinator_runtime.partition_log import PartitionCoordinatorLog
        from kafka_compat.share_coordinator.coordinator import ShareCoordinator
        from kafka_compat.share_coordinator.settings import share_coordinator_settings
        from kafka_compat.storage.records.kinds import CompressionType

        config, clock, metadata = self._context.config, self._context.clock, self._context.metadata
        codec = CompressionType(config.int("share.coordinator.state.topic.compression.codec"))
        shares = ShareCoordinator(
            coordinator_log=PartitionCoordinatorLog(
                self._replicas, metadata, clock, codec, SHARE_STATE_TOPIC
            ),
            scheduler=self._scheduler(),
            settings=share_coordinator_settings(config),
            now_ms=clock.now_ms,
            partition_exists=self._partition_exists,
        )
        shares.start()
        if self._given_scheduler is None:
            self._loop.run_in_executor(None, _import_share_fetches)
        return shares

    def _partition_exists(self, topic_id: UUID, partition: int) -> bool:
        name = self._context.metadata.topic_name(topic_id)
        return name is not None and self._context.metadata.partition(name, partition) is not None

    def _make_persister(self) -> RetryingPersister:
        from kafka_compat.share_coordinator.retrying_persister import RetryingPersister

        return RetryingPersister(
            local=self.shares.get,
            remote=self._membership.remote_share_coordinators(),
            metadata=self._context.metadata,
            create_topic=self._membership.create_share_state_topic,
            scheduler=self._scheduler(),
        )

    def _make_share_partitions(self) -> SharePartitionManager:
        from kafka_compat.share_partitions.counts import ShareCounts
        from kafka_compat.share_partitions.share_partition_manager import SharePartitionManager

        context, counts = self._context, ShareCounts()
        return SharePartitionManager(
            persister=self.persister.get(),
            replicas=self._replicas,
            metadata=context.metadata,
            scheduler=self._scheduler(),
            long_work=context.long_work,
            settings=context.group_configs.share,
            now_ms=context.clock.now_ms,
            dead_letters=self._make_dead_letters(counts),
            counts=counts,
        )

    def _make_dead_letters(self, counts: ShareCounts) -> DeadLetterQueue:
        from kafka_compat.cluster.dead_letter_topics import DeadLetterTopics
        from kafka_compat.config.group import share_group_limits
        from kafka_compat.share_partitions.dead_letter_queue import DeadLetterQueue

        context, membership = self._context, self._membership
        return DeadLetterQueue(
            settings=context.group_configs.share,
            limits=lambda: share_group_limits(context.config),
            metadata=context.metadata,
            overrides=context.topic_overrides,
            topics=DeadLetterTopics(
                self._replicas,
                context.metadata,
                context.clock,
                membership.prepare_dead_letter_topic,
                membership.remote_producer(),
            ),
            scheduler=self._scheduler(),
            long_work=context.long_work,
            counts=counts,
            now_ms=context.clock.now_ms,
        )

    def _make_markers(self) -> LocalMarkerWriter:
        from kafka_compat.transactions.local_markers import LocalMarkerWriter

        return LocalMarkerWriter(
            self._replicas,
            self._context.metadata,
            self._context.clock,
            self.groups.get,
            lambda partition, identity: self.verifications.get().ended(partition, identity),
        )

    def _make_verifications(self) -> Verifications:
        from kafka_compat.transactions.verification import LocalCoordinators, Verifications

        coordinators = self._membership.coordinators(LocalCoordinators(self.transactions.get))
        return Verifications(self._replicas, coordinators)


def _import_share_fetches() -> None:
    """Import the modules for share fetches. In the event loop, this would take long with the first fetch."""
    for name in ("handlers.share_acknowledge", "handlers.share_fetch", "cluster.dead_letter_topics"):
        importlib.import_module(f"kafka_compat.{name}")
    importlib.import_module("kafka_compat.share_partitions.share_partition_manager")
    importlib.import_module("kafka_compat.share_partitions.dead_letter_queue")
