"""Group and transaction coordinators of a broker, created on demand for the partitions of __consumer_offsets
and __transaction_state that the broker leads.

A coordinator is created when this broker becomes leader of its first partition, or at the first request. A
broker without groups or transactions therefore starts faster and uses less memory.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kafka_compat.lazy import Lazy
from kafka_compat.metadata.features import TRANSACTION_VERSION
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafka_compat.share_coordinator.no_persister import NoPersister

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.coordinator_runtime.scheduler import Scheduler
    from kafka_compat.groups.coordinator import GroupCoordinator
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.share_coordinator.persister import Persister
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
        self._of_topic: dict[str, Lazy[GroupCoordinator] | Lazy[TransactionCoordinator]] = {
            OFFSETS_TOPIC: self.groups,
            TRANSACTIONS_TOPIC: self.transactions,
        }
        self.persister: Persister = NoPersister()
        """The stored states of share-partitions."""
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
        for coordinator in (self.transactions.made, self.groups.made):
            if coordinator is not None:
                coordinator.close()

    def _leading(self, topic: str, partition: int) -> None:
        coordinator = self._of_topic.get(topic)
        replica = None if coordinator is None else self._replicas.get(topic, partition)
        if coordinator is not None and replica is not None:
            coordinator.get().load(partition, replica.leader_epoch)

    def _stopping(self, topic: str, partition: int) -> None:
        coordinator = self._of_topic.get(topic)
        if coordinator is not None:
            coordinator.get().unload(partition)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        groups = self.groups.made
        if groups is not None:
            for topic in delta.deleted:
                groups.forget_topic(topic)
            if delta.deleted:
                groups.share.topics_deleted([topic.topic_id for topic in delta.deleted])
            changed = [topic.name for topic in (*delta.created, *delta.grown, *delta.deleted)]
            if changed:
                groups.topics_changed(changed)
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
                lambda: self.persister,
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
