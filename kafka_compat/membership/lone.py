"""A broker that is alone: it has its metadata in a journal of its own, leads all that it holds, and is its
own controller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_compat.clock import Clock
from kafka_compat.config import BrokerConfig, TopicToCreate
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.journal import JOURNAL_NAME, CorruptJournal
from kafka_compat.errors import StartupError
from kafka_compat.membership.foundation import Foundation, Made, Opened, create_wanted
from kafka_compat.membership.lone_topics import LoneTopics
from kafka_compat.membership.topic_settings import TopicSettings
from kafka_compat.metadata.cache import BrokerMetadata
from kafka_compat.metadata.producer_ids import ProducerIds
from kafka_compat.metadata.topic_nodes import new_topic_id
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.directories.directory_claim import why_unusable
from kafka_compat.storage.directories.log_dirs import LoadReport

if TYPE_CHECKING:
    from kafka_compat.membership.lone_controller import Controller
    from kafka_compat.membership.lone_forks import LoneForks
    from kafka_compat.transactions.marker_writer import MarkerWriter
    from kafka_compat.transactions.verification import Coordinators

NewTree = Callable[[str, Callable[[], int]], EmbeddedMetadataStore]
"""Opens the tree at a path; its changes have the times of a function in milliseconds."""


class LoneMembership:
    """See `membership.Membership` for what each call is for."""

    def __init__(self, new_tree: NewTree = EmbeddedMetadataStore) -> None:
        self._new_tree = new_tree
        self._tree: EmbeddedMetadataStore | None = None
        self._is_new = False
        self._may_lack_topics = False
        self._foundation: Foundation
        self._topics: LoneTopics
        self._replicas: ReplicaManager
        self._producer_ids: ProducerIds

    async def open_store(
        self, config: BrokerConfig, clock: Clock, directory: str, stored_cluster_id: str | None
    ) -> Opened:
        path = os.path.join(directory, JOURNAL_NAME)
        try:
            self._tree = self._new_tree(path, clock.now_ms)
        except OSError as error:
            reason = why_unusable(directory, error)
            raise StartupError(
                f"cannot use {directory}, the first of log.dirs, for the metadata journal: {reason}"
            ) from error
        except CorruptJournal as error:
            raise StartupError(f"cannot read the metadata journal {path}: {error}") from error
        store = self._tree.connect()
        self._is_new = await store.exists(znodes.CLUSTER_ID) is None
        if self._is_new:
            await store.ensure_all(znodes.PERSISTENT_PATHS)
            cluster_id = stored_cluster_id or znodes.encode_topic_id(new_topic_id())
        else:
            data, _ = await store.get(znodes.CLUSTER_ID)
            try:
                cluster_id = znodes.decode_cluster_id(data)
            except MalformedNode as error:
                raise StartupError(f"in the metadata journal {path}: {error}") from error
        self._may_lack_topics = self._is_new or self._tree.tail_was_cut
        return Opened(store, cluster_id, self._may_lack_topics)

    def make(self, foundation: Foundation) -> Made:
        self._foundation = foundation
        store, metadata = foundation.store, foundation.metadata
        replicas = ReplicaManager(
            metadata.local_id,
            foundation.log_dirs,
            metadata,
            foundation.flusher,
            foundation.call_soon,
            monotonic_ms=foundation.clock.monotonic_ms,
            counts=foundation.counts,
        )
        malformed = MalformedNodes()
        settings = TopicSettings(store, foundation.topic_overrides, metadata, replicas, malformed)
        self._replicas = replicas
        self._topics = LoneTopics(foundation, replicas, malformed)
        self._producer_ids = ProducerIds(store, metadata.local_id)
        return Made(replicas, self._topics, settings, self._producer_ids)

    async def note_changes(self) -> None:
        """Nobody else changes any."""

    async def take_up(self, report: LoadReport) -> None:
        """Lead all that was found on disk and in the tree."""
        foundation = self._foundation
        logs = foundation.log_dirs.logs.values()
        known = [producer for held in logs for producer in held.producers.entries]
        await self._producer_ids.skip(max(known, default=-1))
        await self._topics.load(self._may_lack_topics)
        if self._is_new:
            # Last, because it ends the tree's being new: an adoption cut short is taken up again.
            cluster_id = znodes.encode_cluster_id(foundation.metadata.cluster_id)
            await foundation.store.put(znodes.CLUSTER_ID, cluster_id)

    async def register(self, broker: BrokerInfo) -> None:
        """In a tree of its own nobody can have taken its id."""
        store, metadata = self._foundation.store, self._foundation.metadata
        payload = znodes.encode_broker(broker, self._foundation.clock.now_ms())
        await store.create(znodes.broker_path(broker.broker_id), payload, ephemeral=True)
        endpoints = {end.listener: (end.host, end.port) for end in broker.endpoints}
        change = metadata.change()
        change.set_brokers({broker.broker_id: BrokerMetadata(broker.broker_id, endpoints, broker.rack)})
        change.set_controller(broker.broker_id)
        change.set_finalized_features_epoch(0)
        change.publish()

    async def settle(self) -> None:
        """Everything was taken up before."""

    async def await_metadata(self) -> None:
        """It is known since the registration."""

    @property
    def unclean_elections(self) -> int:
        """There is nobody else to lead."""
        return 0

    def controller(self) -> Controller:
        from kafka_compat.membership.lone_controller import LoneController

        return LoneController(self._foundation.metadata, self._foundation.long_work)

    async def saved(self, save: Callable[[Mapping[str, bytes]], None]) -> None:
        """Call `save` with the files of the first data folder that hold the metadata, while topics neither
        come nor go.
        """
        assert self._tree is not None
        async with self._topics.lock:
            save({JOURNAL_NAME: self._tree.snapshot()})

    def forks(self) -> LoneForks:
        """What makes topics out of others; only a broker that is alone has it."""
        from kafka_compat.membership.lone_forks import LoneForks

        return LoneForks(self._foundation, self._replicas, self._topics)

    def marker_writer(self, local: MarkerWriter) -> MarkerWriter:
        return local

    def coordinators(self, local: Coordinators) -> Coordinators:
        return local

    def announce(self, entity_path: str) -> None:
        self._foundation.entity_changes.tell_soon(entity_path)

    async def create_wanted_topics(self, wanted: Sequence[TopicToCreate]) -> None:
        for topic in wanted:
            await create_wanted(self._topics, topic)

    async def hand_over(self) -> None:
        """There is nobody who could lead."""

    async def leave(self) -> None:
        """There is nobody to leave."""

    async def close(self) -> None:
        if self._tree is not None:
            await self._tree.close()
