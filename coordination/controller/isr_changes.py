"""ISR changes that leaders request with AlterPartition (KIP-497), and the checks that they must pass.

The checks, in Kafka's order: a stale broker epoch; epochs newer than the controller's, which mean that
another controller was elected; an old leader epoch; a request for the current state, which succeeds; an old
partition epoch; an ISR with followers while the leader is recovering, or a return to recovering; and replicas
on brokers that are not alive. Unlike Apache Kafka, this controller also rejects requests from brokers other
than the leader, ISRs without the leader, and ISRs with a broker that has no replica.

Leaders before Kafka 3.3 may add a broker that is not alive, as their own controllers allow it: after an error
for it, leaders of Kafka 2.8 never propose an ISR again. The controller removes a broker that has stopped from
the ISRs when its session ends. Apache Kafka 3.9 responds with OPERATION_NOT_ATTEMPTED.
"""

from collections.abc import Mapping

from kafka_compat.coordination.controller.context import ControllerContext, Procedure, write_states
from kafka_compat.coordination.controller.effects import AlterPartitionReply, StateWrite
from kafka_compat.coordination.controller.events import AlterPartitionRequested, IsrChange
from kafka_compat.coordination.controller.outcomes import ControllerError, TopicPartition
from kafka_compat.coordination.controller.request_batch import send_metadata
from kafka_compat.coordination.nodes.cluster_state import PartitionState


def alter_partitions(
    context: ControllerContext, request: AlterPartitionRequested
) -> Procedure[AlterPartitionReply]:
    """Apply the permitted changes, send the new metadata to all brokers, and return the reply."""
    broker = context.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return AlterPartitionReply(ControllerError.STALE_BROKER_EPOCH)
    results: dict[TopicPartition, PartitionState | ControllerError] = {}
    writes = []
    for partition, change in request.partitions.items():
        decided = _decide(context, request, partition, change)
        if isinstance(decided, StateWrite):
            writes.append(decided)
        else:
            results[partition] = decided
    written, conflicts = yield from write_states(context, writes)
    results.update(written)
    for partition in conflicts:
        # A write whose response was lost may already have set the requested state.
        decided = _decide(context, request, partition, request.partitions[partition])
        if isinstance(decided, PartitionState):
            results[partition] = decided
        else:
            results[partition] = ControllerError.INVALID_UPDATE_VERSION
    yield from send_metadata(context, context.brokers, request.partitions)
    return AlterPartitionReply(ControllerError.NONE, results)


def altered(reply: AlterPartitionReply) -> Mapping[TopicPartition, PartitionState]:
    """Return the states of the partitions in the reply that have no error."""
    return {key: state for key, state in reply.partitions.items() if isinstance(state, PartitionState)}


def _decide(
    context: ControllerContext, request: AlterPartitionRequested, partition: TopicPartition, change: IsrChange
) -> StateWrite | PartitionState | ControllerError:
    broker_id, state = request.broker_id, context.states.get(partition)
    if state is None:
        return ControllerError.UNKNOWN_TOPIC_OR_PARTITION
    if change.partition_epoch > state.partition_epoch or change.leader_epoch > state.leader_epoch:
        return ControllerError.NOT_CONTROLLER
    if change.leader_epoch < state.leader_epoch:
        return ControllerError.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return ControllerError.INVALID_REQUEST
    if (change.isr, change.recovering) == (state.isr, state.recovering):
        return state
    if change.partition_epoch < state.partition_epoch:
        return ControllerError.INVALID_UPDATE_VERSION
    if change.recovering and (len(change.isr) > 1 or not state.recovering):
        return ControllerError.INVALID_REQUEST
    if request.knows_ineligible and not set(change.isr) <= context.live_brokers():
        return ControllerError.INELIGIBLE_REPLICA
    if broker_id not in change.isr or not set(change.isr) <= set(context.assignment(partition).replicas):
        return ControllerError.INVALID_REQUEST
    wanted = state._replace(
        isr=change.isr, recovering=change.recovering, controller_epoch=context.controller_epoch
    )
    return StateWrite(partition, wanted, state.partition_epoch)
