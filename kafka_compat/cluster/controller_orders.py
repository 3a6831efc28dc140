"""What the controller tells this broker: LeaderAndIsr, StopReplica and UpdateMetadata, fenced by epochs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafka_compat.cluster.broker_addresses import BrokerAddresses
from kafka_compat.cluster.metadata_updates import apply_update
from kafka_compat.cluster.replica_states import Key, ReplicaStates, states_of
from kafka_compat.cluster.topic_settings import ClusterTopicSettings
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import LongWork
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafka_compat.protocol.messages.stop_replica import StopReplicaRequest
from kafka_compat.protocol.messages.update_metadata import UpdateMetadataRequest
from kafka_compat.replication.replica_manager import ReplicaManager

UNKNOWN_EPOCH = -1
FIRST_TOPICS_S = 2.0
"""How long a broker that starts waits to be told of topics after it was told of brokers."""


class Fence:
    """Tells a controller's requests of now from those that came too late."""

    def __init__(self, broker_epoch: Callable[[], int]) -> None:
        """`broker_epoch` is that of this broker's registration of now."""
        self._broker_epoch = broker_epoch
        self.controller_epoch = 0
        """The highest that a controller has sent."""

    def refusal(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Why a controller's request is not obeyed: it was meant for an earlier life of this broker
        (KIP-380), or another controller was elected since."""
        if UNKNOWN_EPOCH < broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = controller_epoch
        return ErrorCode.NONE


class ControllerOrders:
    """Obeys them. No request comes before the broker has registered: it would not know its own epoch."""

    def __init__(
        self,
        fence: Fence,
        metadata: MetadataCache,
        replicas: ReplicaManager,
        states: ReplicaStates,
        settings: ClusterTopicSettings,
        addresses: BrokerAddresses,
        long_work: LongWork,
    ) -> None:
        self._fence = fence
        self._metadata = metadata
        self._replicas = replicas
        self._states = states
        self._settings = settings
        self._addresses = addresses
        self._long_work = long_work
        self.has_metadata = asyncio.Event()
        """Set once a controller has sent metadata."""
        self.expects_topics = False
        """Whether there are topics. A controller begins by telling who lives, and of topics thereafter; who
        asks in between would hear that there are none."""

    async def lead_and_follow(self, request: LeaderAndIsrRequest) -> ErrorCode | dict[Key, ErrorCode]:
        """LeaderAndIsr: the outcome of each partition, or why the request is refused."""
        await self._settings.learn(dict.fromkeys(topic for topic, _, _ in states_of(request)))
        refused = self._fence.refusal(request.controller_epoch, request.broker_epoch)
        if not refused:
            await self._states.prepare(request)
            # Another controller may have spoken meanwhile.
            refused = self._fence.refusal(request.controller_epoch, request.broker_epoch)
        if refused:
            return refused
        for leader in request.live_leaders:
            self._addresses.told(leader.broker_id, (leader.host_name, leader.port))
        return await self._long_work.finish(self._states.apply(request))

    async def stop(self, request: StopReplicaRequest) -> ErrorCode | dict[Key, ErrorCode]:
        """StopReplica: the outcome of each partition, or why the request is refused."""
        refused = self._fence.refusal(request.controller_epoch, request.broker_epoch)
        return refused or await self._states.stop(request, await self._long_work.begin())

    def update_metadata(self, request: UpdateMetadataRequest) -> ErrorCode:
        """UpdateMetadata: NONE, or why the request is refused."""
        refused = self._fence.refusal(request.controller_epoch, request.broker_epoch)
        if refused:
            return refused
        apply_update(self._metadata, request)
        if self._metadata.topics or not self.expects_topics:
            self.has_metadata.set()
        else:
            # Those that there are may all be about to be deleted, or their nodes broken.
            asyncio.get_running_loop().call_later(FIRST_TOPICS_S, self.has_metadata.set)
        return ErrorCode.NONE
