"""When a consumer group computes its target assignment: in a heartbeat, or in the background if it is large.

Apache Kafka computes every assignment in a heartbeat. Here, a large group would delay all other requests. The
heartbeat that causes the computation waits for its result; others get the former target assignment.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from kafka_compat.coordinator_runtime.machine import Waiter
    from kafka_compat.groups.consumer.assignors.assignor import Assignment
    from kafka_compat.groups.consumer.heartbeat import Heartbeat
    from kafka_compat.groups.consumer.member import Member
    from kafka_compat.long_work import Steps

T = TypeVar("T")

TARGETS_PER_WRITE: Final = 100
"""Number of members whose target assignments a large group writes at once."""

_MAX_COST: Final = 1_500
_COST_OF_MEMBER: Final = 2
"""Cost of a member. A partition costs 1, which corresponds to 10 µs."""


class ComputeAssignment(NamedTuple):
    """Request of a group to compute the target assignment for `group_epoch` in the background, from a copy of
    its state. `matched` maps regular expressions to topics.
    """

    group_epoch: int
    assignor: str
    members: "Mapping[str, Member]"
    targets: "Mapping[str, Assignment]"
    matched: Mapping[str, frozenset[str]]

    def topics_of(self, regex: str) -> frozenset[str]:
        """Return the topics that match a regular expression ("": none)."""
        return self.matched.get(regex, frozenset())


class PendingHeartbeat(NamedTuple):
    """A heartbeat whose member has not been reconciled with the target assignment yet. `former` is the member
    before this heartbeat.
    """

    request: "Heartbeat"
    waiter: "Waiter"
    former: "Member"
    has_new_topics: bool
    """Whether the member is known to have subscribed to other topics."""


class BackgroundAssignment:
    """The computation of a group's target assignment in the background, at most one at a time, and the
    heartbeat that waits for its result.
    """

    __slots__ = ("computation", "heartbeat")

    def __init__(self) -> None:
        self.computation: ComputeAssignment | None = None
        self.heartbeat: PendingHeartbeat | None = None

    def end(self) -> PendingHeartbeat | None:
        """End the computation, and return the heartbeat that waits for it."""
        heartbeat = self.heartbeat
        self.computation = self.heartbeat = None
        return heartbeat


def is_large(member_count: int, partition_count: int) -> bool:
    """Return whether the target assignment of a group takes too long for a heartbeat."""
    return member_count * _COST_OF_MEMBER + partition_count > _MAX_COST


def finished(steps: "Steps[T]") -> T:
    """Execute all steps, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
