"""A member of a consumer group, with its subscription and its current assignment, as an immutable value."""

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from uuid import UUID

JOIN_EPOCH: Final = 0
"""The epoch of a heartbeat that joins the group."""
LEAVE_EPOCH: Final = -1
"""The epoch of a heartbeat that leaves the group."""
LEAVE_TEMPORARILY_EPOCH: Final = -2
"""The epoch of a static member that has left the group but keeps its partitions until its session ends."""

PartitionEpochs = Mapping["UUID", Mapping[int, int]]
"""Maps topic IDs to partitions, and partitions to the epochs at which the member got them (KIP-1251)."""


class MemberState(IntEnum):
    """State of a member during reconciliation. The values are stored in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """The member must revoke partitions before it can go on to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """The member waits for partitions that other members have not released."""


class ClassicMember(NamedTuple):
    """The session timeout and the protocols (name, metadata) of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(NamedTuple):
    """A member. `topic_regex` is empty if it does not subscribe by a regular expression, and `classic` is
    None if it uses the consumer protocol.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMember | None = None
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    """The epoch before the last change of `epoch`. A heartbeat with it means that a response was lost."""
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = {}
    pending_revocation: PartitionEpochs = {}

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target assignment of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def subscribes_like(self, other: "Member") -> bool:
        """Return whether the other member has the same topics, regular expression and classic protocols."""
        return (self.topic_names, self.topic_regex, self.classic) == (
            other.topic_names,
            other.topic_regex,
            other.classic,
        )

    def at_epoch(self, epoch: int) -> "Member":
        """Return the member with a new epoch, which may be the same one."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch)
