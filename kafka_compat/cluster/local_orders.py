"""Requests from the controller to its own broker. They are handled in the process, without messages."""

from collections.abc import Iterator
from itertools import groupby

from kafka_compat.cluster.controller_orders import ControllerOrders
from kafka_compat.cluster.leader_and_isr import Key, LeaderState, StopState
from kafka_compat.cluster.metadata_updates import MetadataUpdate, TopicUpdate
from kafka_compat.coordination.controller import effects
from kafka_compat.coordination.controller.events import LeaderAndIsrAnswered, StopReplicaAnswered
from kafka_compat.coordination.controller.outcomes import TopicPartition
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.cache import BrokerMetadata, PartitionMetadata
from kafka_compat.protocol.zero_uuid import ZERO_UUID


class LocalOrders:
    """Converts the controller's effects into requests to this broker, and error codes into events."""

    def __init__(self, orders: ControllerOrders, broker_id: int, listener: str) -> None:
        """`listener` is the name of the inter-broker listener."""
        self._orders = orders
        self._broker_id = broker_id
        self._listener = listener

    async def lead_and_follow(self, effect: effects.SendLeaderAndIsr) -> LeaderAndIsrAnswered:
        states = [_leader_state(item) for item in effect.partitions]
        addresses = {
            broker.broker_id: (endpoint.host, endpoint.port)
            for broker in effect.live_leaders
            if (endpoint := broker.endpoint(self._listener)) is not None
        }
        outcomes = await self._orders.lead_and_follow(
            effect.controller_epoch, effect.broker.epoch, states, addresses
        )
        error, partitions = _answer(outcomes)
        return LeaderAndIsrAnswered(self._broker_id, error, partitions)

    async def stop(self, effect: effects.SendStopReplica) -> StopReplicaAnswered:
        """Stop replicas. Return an event with the error codes of the partitions to delete."""
        deleted = {item.partition for item in effect.partitions if item.delete}
        stops = [StopState(*item.partition, item.leader_epoch, item.delete) for item in effect.partitions]
        error, partitions = _answer(
            await self._orders.stop(effect.controller_epoch, effect.broker.epoch, stops)
        )
        return StopReplicaAnswered(
            self._broker_id, error, {key: code for key, code in partitions.items() if key in deleted}
        )

    def update_metadata(self, effect: effects.SendUpdateMetadata, broker_epoch: int) -> None:
        brokers = [
            BrokerMetadata(
                broker.broker_id,
                {end.listener: (end.host, end.port) for end in broker.endpoints},
                broker.rack,
            )
            for broker in effect.live_brokers
        ]
        update = MetadataUpdate(self._broker_id, brokers, _topics(effect))
        self._orders.update_metadata(effect.controller_epoch, broker_epoch, update)


def _leader_state(item: effects.LeaderAndIsrPartition) -> LeaderState:
    return LeaderState(
        item.partition.topic,
        item.topic_id or ZERO_UUID,
        item.partition.partition,
        item.state.leader,
        item.state.leader_epoch,
        item.state.isr,
        item.assignment.replicas,
        item.state.partition_epoch,
        item.is_new,
        item.assignment.being_reassigned,
    )


def _answer(outcomes: ErrorCode | dict[Key, ErrorCode]) -> tuple[int, dict[TopicPartition, int]]:
    if isinstance(outcomes, ErrorCode):
        return int(outcomes), {}
    return 0, {TopicPartition(*key): int(code) for key, code in outcomes.items()}


def _topics(effect: effects.SendUpdateMetadata) -> Iterator[TopicUpdate]:
    """Group partitions by topic. `effect.partitions` must be ordered by topic."""
    for name, items in groupby(effect.partitions, lambda item: item.partition.topic):
        some = list(items)
        yield TopicUpdate(name, some[0].topic_id or ZERO_UUID, [_partition(item) for item in some])


def _partition(item: effects.UpdateMetadataPartition) -> PartitionMetadata:
    return PartitionMetadata(
        item.partition.partition,
        item.state.leader,
        item.state.leader_epoch,
        item.replicas,
        item.state.isr,
        item.state.partition_epoch,
        item.offline_replicas,
    )
