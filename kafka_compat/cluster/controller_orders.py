"""What the controller tells this broker: LeaderAndIsr, StopReplica and UpdateMetadata, fenced by epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_compat.cluster.first_metadata import FirstMetadata
from kafka_compat.cluster.metadata_updates import apply_update
from kafka_compat.cluster.replica_states import Key, ReplicaStates, states_of
from kafka_compat.cluster.topic_settings import TopicSettings
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import LongWork
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from kafka_compat.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from kafka_compat.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

Address = tuple[str, int]

UNKNOWN_EPOCH = -1
_VERSION_BY_TOPIC = 5
"""Of LeaderAndIsr: responses name topics by id."""


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
    """Obeys them, from a connection or from the controller of this process. No request comes before the
    broker has registered: it would not know its own epoch.
    """

    def __init__(
        self,
        fence: Fence,
        metadata: MetadataCache,
        states: ReplicaStates,
        settings: TopicSettings,
        leader_addresses: dict[int, Address],
        long_work: LongWork,
        first_metadata: FirstMetadata,
    ) -> None:
        """`leader_addresses` get the addresses of leaders, which may come before the metadata."""
        self._fence = fence
        self._metadata = metadata
        self._states = states
        self._settings = settings
        self._leader_addresses = leader_addresses
        self._long_work = long_work
        self._first_metadata = first_metadata

    async def send(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """Obey a request of the controller of this process; the response."""
        match api_key:
            case ApiKey.LEADER_AND_ISR:
                return await self.leader_and_isr(request, version)
            case ApiKey.STOP_REPLICA:
                return await self.stop_replica(request)
            case ApiKey.UPDATE_METADATA:
                return self.update_metadata(request)
        raise ValueError(f"no request of a controller: {api_key}")

    async def close(self) -> None:
        """Nothing: there is no connection."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest, version: int) -> LeaderAndIsrResponse:
        """Lead and follow what the controller says."""
        await self._settings.learn(dict.fromkeys(topic for topic, _, _ in states_of(request)))
        refused = self._fence.refusal(request.controller_epoch, request.broker_epoch)
        if not refused:
            await self._states.prepare(request)
            # Another controller may have spoken meanwhile.
            refused = self._fence.refusal(request.controller_epoch, request.broker_epoch)
        if refused:
            outcomes = {(topic, state.partition_index): refused for topic, _, state in states_of(request)}
            return _leader_and_isr_response(request, version, refused, outcomes)
        for leader in request.live_leaders:
            self._leader_addresses[leader.broker_id] = (leader.host_name, leader.port)
        outcomes = await self._long_work.finish(self._states.apply(request))
        return _leader_and_isr_response(request, version, ErrorCode.NONE, outcomes)

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Hold partitions no longer, and delete those that the controller says."""
        refused = self._fence.refusal(request.controller_epoch, request.broker_epoch)
        if refused:
            return StopReplicaResponse(error_code=refused)
        outcomes = await self._states.stop(request, await self._long_work.begin())
        return StopReplicaResponse(
            partition_errors=[
                StopReplicaPartitionError(topic_name=topic, partition_index=index, error_code=code)
                for (topic, index), code in outcomes.items()
            ]
        )

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Know the cluster as the controller does."""
        refused = self._fence.refusal(request.controller_epoch, request.broker_epoch)
        if not refused:
            apply_update(self._metadata, request)
            self._first_metadata.update(bool(self._metadata.topics))
        return UpdateMetadataResponse(error_code=refused)


def _leader_and_isr_response(
    request: LeaderAndIsrRequest, version: int, error: ErrorCode, outcomes: dict[Key, ErrorCode]
) -> LeaderAndIsrResponse:
    if version < _VERSION_BY_TOPIC:
        errors = [
            LeaderAndIsrPartitionError(topic_name=topic, partition_index=index, error_code=code)
            for (topic, index), code in outcomes.items()
        ]
        return LeaderAndIsrResponse(error_code=error, partition_errors=errors)
    topics = [
        LeaderAndIsrTopicError(
            topic_id=topic.topic_id,
            partition_errors=[
                LeaderAndIsrPartitionError(
                    partition_index=state.partition_index,
                    error_code=outcomes[topic.topic_name, state.partition_index],
                )
                for state in topic.partition_states
            ],
        )
        for topic in request.topic_states
    ]
    return LeaderAndIsrResponse(error_code=error, topics=topics)
