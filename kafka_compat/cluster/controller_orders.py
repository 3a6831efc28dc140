"""Handle the controller's requests to this broker: LeaderAndIsr, StopReplica and UpdateMetadata."""

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
    """A check that rejects outdated controller requests by their epochs."""

    def __init__(self, broker_epoch: Callable[[], int]) -> None:
        """`broker_epoch` returns the epoch of this broker's current registration."""
        self._broker_epoch = broker_epoch
        self.controller_epoch = 0
        """Highest controller epoch received so far."""

    def refusal(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Return the error code for an outdated request, or NONE. A request is outdated if it was sent to an
        earlier registration of this broker (KIP-380) or by a controller that has been replaced.
        """
        if UNKNOWN_EPOCH < broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = controller_epoch
        return ErrorCode.NONE


class ControllerOrders:
    """The handler of controller requests, which arrive only after the broker has registered."""

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
        """`leader_addresses` is updated from LeaderAndIsr requests, which may arrive before the metadata."""
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
        """Handle a LeaderAndIsr request. Return an error code per partition, or one for the whole request."""
        turn = await self._long_work.begin()
        await self._settings.learn(dict.fromkeys(state.topic for state in states), turn)
        refused = self._fence.refusal(controller_epoch, broker_epoch)
        if not refused:
            await self._states.prepare(states, turn)
            # Check the epochs again, because a new controller may have sent a request during `prepare`.
            refused = self._fence.refusal(controller_epoch, broker_epoch)
        if refused:
            return refused
        self._leader_addresses.update(leader_addresses)
        return await self._long_work.finish(self._states.apply(states))

    async def stop(
        self, controller_epoch: int, broker_epoch: int, stops: Iterable[StopState]
    ) -> ErrorCode | dict[Key, ErrorCode]:
        """Handle a StopReplica request. Return an error code per partition, or one for the whole request."""
        refused = self._fence.refusal(controller_epoch, broker_epoch)
        return refused or await self._states.stop(stops, await self._long_work.begin())

    def update_metadata(self, controller_epoch: int, broker_epoch: int, update: MetadataUpdate) -> ErrorCode:
        """Handle an UpdateMetadata request. Return the error code of an outdated request, or NONE."""
        refused = self._fence.refusal(controller_epoch, broker_epoch)
        if not refused:
            apply_update(self._metadata, update)
            self._first_metadata.update(len(self._metadata.topics))
        return refused
