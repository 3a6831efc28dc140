"""Leader elections requested by ElectLeaders (KIP-460) or the legacy tool, or caused by leader imbalance.

A partition needs a preferred election if its leader is not its first replica, and an unclean election if it
has no live leader.
"""

from collections.abc import Iterable
from functools import partial

from kafka_compat.coordination.controller.context import ControllerContext, Procedure, each, selected
from kafka_compat.coordination.controller.leader_election import elect_preferred
from kafka_compat.coordination.controller.outcomes import (
    ControllerError,
    ElectionType,
    Outcome,
    TopicPartition,
)
from kafka_compat.coordination.controller.partition_state_machine import Partitions, Strategy

_FAILED = {
    ElectionType.PREFERRED: (
        ControllerError.PREFERRED_LEADER_NOT_AVAILABLE,
        "PreferredReplicaPartitionLeaderElectionStrategy",
    ),
    ElectionType.UNCLEAN: (
        ControllerError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "OfflinePartitionLeaderElectionStrategy(true)",
    ),
}
"""Error codes for failed elections, and Kafka's strategy names for the error messages."""


class Elections:
    """Leader elections for existing partitions."""

    def __init__(self, context: ControllerContext, partitions: Partitions) -> None:
        self._context = context
        self._partitions = partitions

    def request(
        self, election: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> Procedure[dict[TopicPartition, Outcome]]:
        """Elect leaders for these partitions (None: all that need an election). Return the outcomes."""
        context = self._context
        outcomes: dict[TopicPartition, Outcome] = {}
        electable: list[TopicPartition] = []

        def sort_out(partition: TopicPartition) -> None:
            if not context.exists(partition):
                error = ControllerError.UNKNOWN_TOPIC_OR_PARTITION
                outcomes[partition] = Outcome(error, "The partition does not exist.")
            elif context.is_deleted(partition.topic):
                error = ControllerError.INVALID_TOPIC_EXCEPTION
                outcomes[partition] = Outcome(error, "The topic is being deleted")
            elif self._is_needed(election, partition):
                electable.append(partition)
            elif partitions is not None:
                error = ControllerError.ELECTION_NOT_NEEDED
                outcomes[partition] = Outcome(error, "Leader election not needed for topic partition.")

        wanted = (yield from context.partitions()) if partitions is None else list(dict.fromkeys(partitions))
        yield from each(wanted, sort_out)
        strategy = Strategy.PREFERRED if election is ElectionType.PREFERRED else Strategy.UNCLEAN
        elected = yield from self._partitions.elect(electable, strategy)

        def report(partition: TopicPartition) -> None:
            if partition in elected:
                outcomes[partition] = Outcome(ControllerError.NONE)
            else:
                outcomes[partition] = _election_failed(election, partition)

        yield from each(electable, report)
        return outcomes

    def rebalance(self) -> Procedure[None]:
        """Return leadership to each broker if other brokers lead too many of its preferred partitions."""
        context = self._context
        preferred: dict[int, list[TopicPartition]] = {}

        def group(partition: TopicPartition) -> None:
            if not context.is_deleted(partition.topic):
                preferred.setdefault(context.assignment(partition).replicas[0], []).append(partition)

        yield from each((yield from context.partitions()), group)
        for broker, partitions in sorted(preferred.items()):
            elsewhere = yield from selected(partitions, partial(self._is_led_elsewhere, broker))
            allowed = len(partitions) * context.settings.leader_imbalance_per_broker_percentage / 100
            if len(elsewhere) > allowed:
                candidates = yield from selected(elsewhere, self._preferred_may_lead)
                yield from self._partitions.elect(candidates, Strategy.PREFERRED)

    def _is_led_elsewhere(self, broker: int, partition: TopicPartition) -> bool:
        state = self._context.states.get(partition)
        return state is not None and state.leader != broker

    def _is_needed(self, election: ElectionType, partition: TopicPartition) -> bool:
        state = self._context.states.get(partition)
        if state is None:
            return True
        if election is ElectionType.PREFERRED:
            return state.leader != self._context.assignment(partition).replicas[0]
        return state.leader not in self._context.live_brokers()

    def _preferred_may_lead(self, partition: TopicPartition) -> bool:
        context = self._context
        replicas = context.assignment(partition).replicas
        state = context.states[partition]
        return elect_preferred(replicas, state.isr, context.online(partition, replicas)) is not None


def _election_failed(election: ElectionType, partition: TopicPartition) -> Outcome:
    error, strategy = _FAILED[election]
    return Outcome(error, f"Failed to elect leader for partition {partition} under strategy {strategy}")
