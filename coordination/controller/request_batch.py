"""Requests from the controller to brokers, merged so that each broker gets few requests.

Rules:
- UpdateMetadata for many partitions is split, so that neither side works on one request for long.
  LeaderAndIsr is not: a broker that has started stores high watermarks of the partitions that it knows, and
  would lose the others.
- LeaderAndIsr is sent first, then UpdateMetadata, then StopReplica.
- With each LeaderAndIsr, all brokers get UpdateMetadata for the same partitions.
- Requests are never sent to unregistered brokers, which receive the whole state when they return.
- If a partition is new (or deleted) in any merged request, it is new (or deleted) in the result.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kafka_compat.coordination.controller import effects
from kafka_compat.coordination.controller.context import (
    AT_ONCE,
    PAUSE,
    ControllerContext,
    Procedure,
    in_steps,
)
from kafka_compat.coordination.controller.outcomes import LEADER_DURING_DELETE, TopicPartition
from kafka_compat.coordination.nodes.cluster_state import PartitionState

PARTITIONS_PER_REQUEST: Final = 500
"""Number of partitions after which UpdateMetadata is split."""


class RequestBatch:
    """A collection of requests to brokers. `send` appends them to the context's effects."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._leader_and_isr: dict[int, dict[TopicPartition, effects.LeaderAndIsrPartition]] = {}
        self._stop_replica: dict[int, dict[TopicPartition, effects.StopReplicaPartition]] = {}
        self._metadata_brokers: set[int] = set()
        self._metadata: dict[TopicPartition, effects.UpdateMetadataPartition] = {}

    def leader_and_isr(
        self, brokers: Iterable[int], partition: TopicPartition, state: PartitionState, *, is_new: bool
    ) -> None:
        """Add LeaderAndIsr requests to `brokers` for a partition, and UpdateMetadata for all brokers."""
        context = self._context
        assignment = context.assignment(partition)
        topic_id = context.topic_ids.get(partition.topic)
        for broker in brokers:
            partitions = self._leader_and_isr.setdefault(broker, {})
            known = partitions.get(partition)
            already_new = known is not None and known.is_new
            partitions[partition] = effects.LeaderAndIsrPartition(
                partition, topic_id, state, assignment, is_new or already_new
            )
        self.update_metadata(context.brokers, [partition])

    def update_metadata(self, brokers: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Add UpdateMetadata requests with the live brokers and the partitions that have a state."""
        context = self._context
        self._metadata_brokers.update(brokers)
        for partition in partitions:
            state = context.states.get(partition)
            if state is None:
                continue
            if context.is_deleted(partition.topic):
                state = state._replace(leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0)
            replicas = context.assignment(partition).replicas
            self._metadata[partition] = effects.UpdateMetadataPartition(
                partition,
                context.topic_ids.get(partition.topic),
                state,
                replicas,
                tuple(broker for broker in replicas if not context.is_online(partition, broker)),
            )

    def stop_replica(self, broker: int, partition: TopicPartition, *, delete: bool) -> None:
        """Add a StopReplica request for a partition. With `delete`, the broker also deletes the log."""
        partitions = self._stop_replica.setdefault(broker, {})
        known = partitions.get(partition)
        already_delete = known is not None and known.delete
        partitions[partition] = effects.StopReplicaPartition(
            partition, self._context.leader_epoch(partition), delete or already_delete
        )

    def send(self) -> Procedure[None]:
        """Append the requests to the effects, merged per broker."""
        context = self._context
        for broker, leaders in sorted(self._leader_and_isr.items()):
            if broker not in context.brokers:
                continue
            states: list[effects.LeaderAndIsrPartition] = []
            leader_ids: set[int] = set()
            for some, long in in_steps(sorted(leaders)):
                states += [leaders[partition] for partition in some]
                leader_ids.update([leaders[partition].state.leader for partition in some])
                if long:
                    yield PAUSE
            context.effects.append(
                effects.SendLeaderAndIsr(
                    self._address(broker),
                    context.controller_epoch,
                    tuple(states),
                    tuple(context.brokers[leader] for leader in sorted(leader_ids & context.brokers.keys())),
                )
            )
        recipients = sorted(self._metadata_brokers & context.brokers.keys())
        if recipients:
            addresses = tuple(self._address(broker) for broker in recipients)
            live = tuple(context.brokers[broker] for broker in sorted(context.brokers))
            for some in _parts(sorted(self._metadata)):
                partitions = tuple(self._metadata[partition] for partition in some)
                context.effects.append(
                    effects.SendUpdateMetadata(addresses, context.controller_epoch, partitions, live)
                )
                if len(some) >= AT_ONCE:
                    yield PAUSE
        for broker, stopped in sorted(self._stop_replica.items()):
            if broker in context.brokers:
                context.effects.append(
                    effects.SendStopReplica(
                        self._address(broker),
                        context.controller_epoch,
                        tuple(stopped[partition] for partition in sorted(stopped)),
                    )
                )

    def _address(self, broker: int) -> effects.BrokerEpoch:
        return effects.BrokerEpoch(broker, self._context.brokers[broker].epoch)


def send_metadata(
    context: ControllerContext, brokers: Iterable[int], partitions: Iterable[TopicPartition]
) -> Procedure[None]:
    """Send UpdateMetadata to `brokers`, with these partitions and the live brokers."""
    batch = RequestBatch(context)
    batch.update_metadata(brokers, ())
    for some, long in in_steps(list(partitions)):
        batch.update_metadata((), some)
        if long:
            yield PAUSE
    yield from batch.send()


def _parts(partitions: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    """Split sorted partitions into groups of about PARTITIONS_PER_REQUEST. If there are no partitions, yield
    one empty group. Topics are not split, because clients would take a part of a new topic for all of it.
    """
    end = 0
    while end < len(partitions) or not end:
        first, end = end, end + PARTITIONS_PER_REQUEST
        while end < len(partitions) and partitions[end].topic == partitions[end - 1].topic:
            end += 1
        yield partitions[first:end]
