"""What a controller says to elections and reassignments that cannot be, in words that Kafka's tools show."""

from collections.abc import Collection, Sequence

from kafka_compat.coordination.controller.outcomes import (
    ControllerError,
    ElectionType,
    Outcome,
    TopicPartition,
)

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


def election_failed(election: ElectionType, partition: TopicPartition) -> Outcome:
    """Nobody can be elected."""
    error, strategy = _FAILED[election]
    return Outcome(error, f"Failed to elect leader for partition {partition} under strategy {strategy}")


def refused_target(
    target: Sequence[int], present: Collection[int], live_brokers: Collection[int]
) -> Outcome | None:
    """Why replicas that are on the brokers `present` cannot move to these; None when they can."""
    problem = None
    added = [broker for broker in target if broker not in present]
    if not target:
        problem = "Empty replica list specified in partition reassignment."
    elif len(set(target)) != len(target):
        twice = _scala("ArrayBuffer", target)
        problem = f"Duplicate replica ids in partition reassignment replica list: {twice}"
    elif min(target) < 0:
        problem = f"Invalid broker id in replica list: {_scala('ArrayBuffer', target)}"
    elif not set(added) <= set(live_brokers):
        problem = (
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {_scala('ArrayBuffer', added)}, live broker list: {_scala('Set', live_brokers)}"
        )
    return None if problem is None else Outcome(ControllerError.INVALID_REPLICA_ASSIGNMENT, problem)


def _scala(kind: str, numbers: Collection[int]) -> str:
    return f"{kind}({', '.join(map(str, numbers))})"
