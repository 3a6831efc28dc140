"""Interfaces between the replicated store and the quorum node that runs it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID


class LogNode(Protocol):
    """The node of the quorum in this process, as the store sees it."""

    node_id: int
    directory_id: UUID
    """The ID of the node's metadata directory (meta.properties)."""

    def append(self, records: Sequence[bytes], failed: Callable[[], None]) -> None:
        """Send records to the leader, which appends them in the order in which they were sent to it.

        `failed` is called, never within `append`, if the leader did not take them, or if it is not known
        whether it did. If it takes them, nothing is called: the store sees the records when they are applied.
        """


class AppliedRecord(NamedTuple):
    """A committed record of the store. `value` is its payload, without the frame that names its type."""

    offset: int
    type: int
    version: int
    value: bytes


class LogApplication(Protocol):
    """What the quorum node tells the store. All calls are made in the event loop's thread."""

    def apply(self, records: Sequence[AppliedRecord]) -> None:
        """Apply committed records, in the order of their offsets, each exactly once."""

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        """The known leader (-1: none) or its epoch has changed. A new leader starts session timeouts."""

    def replica_fetched(self, node_id: int) -> None:
        """While this node leads: another node has fetched, so its process is alive."""

    def snapshot(self) -> Sequence[bytes]:
        """Return the framed records of a snapshot of everything applied so far."""

    def restore(self, offset: int, records: Sequence[AppliedRecord]) -> None:
        """Replace everything with a snapshot that ends at `offset`."""
