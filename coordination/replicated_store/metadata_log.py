"""Interfaces between the replicated store and the quorum node that runs it."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol
from uuid import UUID

Steps = Generator[None, None, None]
"""Work in steps of a few milliseconds. Other work may run at each `yield`, as in kafka_compat.long_work."""


class Reach(Enum):
    """The result of an attempt to connect to a node."""

    CONNECTED = "connected"
    REFUSED = "refused"
    """Nothing listens at the address."""
    FAILED = "failed"
    """The address cannot be reached or resolved, or did not respond in time."""
    NO_ADDRESS = "no address"
    """The address is unknown: the node is not a voter."""


class LogNode(Protocol):
    """The node of the quorum in this process, as the store sees it."""

    node_id: int
    directory_id: UUID
    """The ID of the node's metadata directory (meta.properties)."""

    def append(self, records: Sequence[bytes], failed: Callable[[], None], epoch: int = -1) -> None:
        """Send framed records to the leader, which appends them in the order in which they were sent to it.

        `failed` is called, never within `append`, if the leader did not take them, or if it is not known
        whether it did. If it takes them, nothing is called: the store sees the records when they are applied,
        or `LogApplication.leader_changed` is called. Unless `epoch` is -1, they are appended only if this
        node is the leader of that epoch. One call has at most records.BATCH_BYTES_MAX bytes of records.
        """

    def probe(self, node_id: int, done: Callable[[Reach], None]) -> None:
        """Try to connect to another node's controller listener. `done` is called with the result within
        seconds, never within `probe`, and not after the node has stopped.
        """


class AppliedRecord(NamedTuple):
    """A committed record of the store. `value` is its payload, without the frame that names its type
    (record_frames.unframe).
    """

    offset: int
    type: int
    version: int
    value: bytes


class LogApplication(Protocol):
    """What the quorum node tells the store. All calls are made in the event loop's thread.

    The node runs all steps of `apply` and `restore` before it calls either again. It may call the other
    methods between the steps.
    """

    @property
    def failure(self) -> str | None:
        """Why the store has stopped, at a record that it does not know. It then ignores all later records,
        and `snapshot` raises an error. The log goes on being replicated.
        """

    def apply(self, records: Sequence[AppliedRecord]) -> Steps:
        """Apply committed records, in the order of their offsets, each exactly once. Each is visible as a
        whole when its step ends.
        """

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        """The known leader (-1: none) or its epoch has changed. A new leader starts session timeouts."""

    def replica_fetched(self, node_id: int) -> None:
        """While this node leads: another node has fetched, so its process is alive."""

    def replica_left(self, node_id: int) -> None:
        """Another node has closed a connection over which it fetched. Its process may have ended."""

    def snapshot(self) -> Iterator[bytes]:
        """Return the framed records of a snapshot of everything applied when this method is called.

        Each record is made, in a few milliseconds, when it is taken from the iterator, and has at most
        records.BATCH_BYTES_MAX bytes. Records may be applied meanwhile. Close the iterator if it is not read
        to its end. Reading it raises store.tree.ImageClosed if `restore` has replaced everything, or another
        snapshot was begun.
        """

    def restore(self, offset: int, records: Iterable[AppliedRecord]) -> Steps:
        """Replace everything with a snapshot of all records below `offset`. `records` is read step by step.
        The old state stays visible until the last step.
        """
