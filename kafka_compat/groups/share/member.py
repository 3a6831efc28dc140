"""A member of a share group (KIP-932)."""

from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.groups.consumer.member import JOIN_EPOCH

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.assignors.assignor import Assignment


class ShareMember(NamedTuple):
    """A member. It takes its target assignment at once, because share-partitions have no owner."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    """The epoch before the last change of `epoch`. A heartbeat with it means that a response was lost."""
    assigned: "Assignment" = {}

    def at_epoch(self, epoch: int, assigned: "Assignment") -> "ShareMember":
        """Return the member with a new epoch and assignment."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch, assigned=assigned)
