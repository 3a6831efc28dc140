"""Handling of controller requests on this broker: LeaderAndIsr, StopReplica and UpdateMetadata, fenced by
epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_compat.cluster.first_metadata import FirstMetadata
from kafka_compat.cluster.leader_and_isr import Key, LeaderState, ReplicaStates, StopState
from kafka_compat.cluster.metadata_updates import MetadataUpdate, apply_update
from kafka_compat.cluster.topic_settings import TopicSettings
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import LongWork
from kafka_compat.metadata.cache import MetadataCache

Address = tuple[str, int]

UNKNOWN_EPOCH = -1


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

    async def lead_and_follow(
        self,
        controller_epoch: int,
        broker_epoch: int,
        states: Sequence[LeaderState],
        leader_addresses: Mapping[int, Address],
    ) -> ErrorCode | dict[Key, ErrorCode]:
        """LeaderAndIsr: the outcome of each partition, or why the request is refused."""
        await self._settings.learn(dict.fromkeys(state.topic for state in states))
        refused = self._fence.refusal(controller_epoch, broker_epoch)
        if not refused:
            await self._states.prepare(states)
            # Another controller may have spoken meanwhile.
            refused = self._fence.refusal(controller_epoch, broker_epoch)
        if refused:
            return refused
        self._leader_addresses.update(leader_addresses)
        return await self._long_work.finish(self._states.apply(states))

    async def stop(
        self, controller_epoch: int, broker_epoch: int, stops: Iterable[StopState]
    ) -> ErrorCode | dict[Key, ErrorCode]:
        """StopReplica: the outcome of each partition, or why the request is refused."""
        refused = self._fence.refusal(controller_epoch, broker_epoch)
        return refused or await self._states.stop(stops, await self._long_work.begin())

    def update_metadata(self, controller_epoch: int, broker_epoch: int, update: MetadataUpdate) -> ErrorCode:
        """UpdateMetadata: NONE, or why the request is refused."""
        refused = self._fence.refusal(controller_epoch, broker_epoch)
        if not refused:
            apply_update(self._metadata, update)
            self._first_metadata.update(bool(self._metadata.topics))
        return refused
