"""Interface of a coordinator's state machine, which holds the state of one group or one transactional ID.

A machine does no I/O and has no clock. Events carry the time, and each returns an Output. Only `replay`
changes the state that is stored in the log; see `runtime.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from kafka_compat.coordinator_runtime.coordinator_log import TransactionalProducer
from kafka_compat.errors import ErrorCode

Waiter = object
"""A waiting request. The machine keeps it and returns it with the response; it never looks inside."""


class Now(NamedTuple):
    """One moment on two clocks: timers run on one that never jumps, records carry the time of day."""

    timer_ms: int
    wall_ms: int


class KeyedRecord(Protocol):
    """A record of one machine; `machine_key` is the group's id, or the transactional id. The value of a
    deletion is None.
    """

    @property
    def machine_key(self) -> str: ...

    @property
    def value(self) -> object: ...


R_in = TypeVar("R_in", contravariant=True)


class Write(NamedTuple):
    """Append these records (of the machine's own kinds) as one batch, in a transaction when there is a
    producer. Once they are committed and replayed, or have failed, the runtime calls the machine's `written`
    with the `purpose`. `commits` are offsets that a consumer committed.
    """

    records: Sequence[Any]
    purpose: object
    producer: TransactionalProducer | None = None
    commits: bool = False


@dataclass(slots=True)
class Output:
    """Everything one event leads to. `notes` are for the log; `has_effects` where there is more than answers
    and a write.
    """

    responses: list[tuple[Waiter, Any]] = field(default_factory=list)
    write: Write | None = None
    notes: list[str] = field(default_factory=list)
    has_effects: bool = False


class Outbox:
    """The Output of the event that a machine is handling. The parts of a machine share it."""

    __slots__ = ("output",)

    def __init__(self) -> None:
        self.output = Output()

    def begin(self) -> Output:
        """A new event: what follows goes into this Output."""
        self.output = Output()
        return self.output

    def note(self, text: str) -> None:
        self.output.notes.append(text)

    def respond(self, waiter: Waiter, result: object) -> None:
        self.output.responses.append((waiter, result))

    def write(self, write: Write) -> None:
        assert self.output.write is None, "an event leads to one batch"
        self.output.write = write


class Machine(Protocol[R_in]):
    """What the runtime asks of a machine; its requests are its own."""

    @property
    def wake_at_ms(self) -> int | None:
        """When `tick` is due, or somewhat before; None for never."""

    @property
    def is_dead(self) -> bool:
        """Nothing is left of it: it is forgotten."""

    def replay(self, record: R_in, log_offset: int, producer_id: int) -> None:
        """A record is committed, in the transaction of `producer_id` unless that is -1. `log_offset` is the
        one after its batch.
        """

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """The transaction of a producer has ended."""

    def loaded(self, now: Now) -> Output:
        """All that the log holds has been replayed: go on from there."""

    def written(self, purpose: object, error: ErrorCode, now: Now) -> Output:
        """The records of a Write are committed and replayed, or (error) are not, or nobody knows yet."""

    def tick(self, now: Now) -> Output:
        """Let everything happen that is due."""

    def unload(self) -> Output:
        """This broker is no longer the coordinator: answer waiting requests."""
