"""Requests to a share coordinator for one share-partition, and their results, as values."""

from typing import Final, NamedTuple, TypeAlias

from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode
from kafka_compat.share_coordinator.persister import StateBatch, StateSummary, StoredState


class Initialize(NamedTuple):
    """Create a state, or replace the state of a lower or the same state epoch."""

    state_epoch: int
    start_offset: int


class Read(NamedTuple):
    """Return the state, and reject writes of former leaders from then on."""

    leader_epoch: int


class Write(NamedTuple):
    """Store changes. `start_offset` is -1 if it has not changed, and `delivery_complete_count` -1 if it is
    unknown.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class Delete(NamedTuple):
    """Delete the state. A missing state is no error."""


class ReadSummary(NamedTuple):
    """Return the progress. `leader_epoch` is not used, as in Kafka."""

    leader_epoch: int


Operation: TypeAlias = Initialize | Read | Write | Delete | ReadSummary


class Result(NamedTuple):
    """The result of an operation: a StoredState for Read, a StateSummary for ReadSummary, otherwise None."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    value: StoredState | StateSummary | None = None


_MESSAGES: Final = STANDARD_MESSAGES | {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is still loading its state.",
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is too old.",
    ErrorCode.FENCED_STATE_EPOCH: (
        "The coordinator rejected the request because the state epoch did not match."
    ),
}

_ACTIVITIES: Final[dict[type[Operation], str]] = {
    Initialize: "initialize share group state",
    Read: "read share group state",
    Write: "write share group state",
    Delete: "delete share group state",
    ReadSummary: "read share group state summary",
}


def rejected(error: ErrorCode) -> Result:
    """Return the result of an operation that the coordinator rejected, with Kafka's message."""
    return Result(error, _MESSAGES.get(error, error.name))


def not_done(operation: Operation, error: ErrorCode) -> Result:
    """Return the result of an operation that could not be executed or stored, with Kafka's message."""
    reason = _MESSAGES.get(error, error.name)
    return Result(error, f"Unable to {_ACTIVITIES[type(operation)]}: {reason}")
