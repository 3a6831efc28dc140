"""Interface of a coordinator's state machine, which holds the state of one group or one transactional ID.

A machine does no I/O and has no clock. Events carry the time, and each returns an Output. Only `replay`
changes the state that is stored in the log, which consists of timeline values; see `runtime.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from kafka_compat.coordinator_runtime.coordinator_log import TransactionalProducer
from kafka_compat.errors import ErrorCode

Waiter = object
"""A pending request. The machine returns it with the response, without interpreting it."""


class Now(NamedTuple):
    """The current time on two clocks: the monotonic clock for timers, and the time of day for records."""

    timer_ms: int
    wall_ms: int


class KeyedRecord(Protocol):
    """A record of one machine. `machine_key` is the group ID or the transactional ID. A tombstone's value is
    None.
    """

    @property
    def machine_key(self) -> str: ...

    @property
    def value(self) -> object: ...


R_in = TypeVar("R_in", contravariant=True)


class Write(NamedTuple):
    """Records of a machine to append as one batch, in a transaction if `producer` is set. They are replayed
    when they have been appended. Once they are committed, or the write has failed, the runtime calls the
    machine's `written` with `purpose`. `commits` is true if the records are committed consumer offsets.

    `then` changes state that is not in the log, such as timers. It is called after the records have been
    replayed, before any other event, and not at all if they are not appended.

    `encoded` are the keys and values of the records, if the coordinator has already encoded them.
    """

    records: Sequence[Any]
    purpose: object
    producer: TransactionalProducer | None = None
    commits: bool = False
    then: "Callable[[], Output] | None" = None
    encoded: "Sequence[tuple[bytes, bytes | None]] | None" = None


class ResponseWhenCommitted(NamedTuple):
    """A response that is sent when the state that it shows is committed. If that fails, `failed` returns the
    result for an error code.
    """

    waiter: Callable[[Any], None]
    result: Any
    failed: Callable[[ErrorCode], Any]

    def send(self) -> None:
        self.waiter(self.result)

    def fail(self, error: ErrorCode) -> None:
        self.waiter(self.failed(error))


@dataclass(slots=True)
class Output:
    """All effects of one event. `responses` are sent immediately, and `responses_when_committed` when `write`
    and all earlier writes of the machine are committed. `notes` are log lines. `effects` are other effects,
    which the coordinator performs when the write has been appended.
    """

    responses: list[tuple[Waiter, Any]] = field(default_factory=list)
    responses_when_committed: list[ResponseWhenCommitted] = field(default_factory=list)
    write: Write | None = None
    notes: list[str] = field(default_factory=list)
    effects: list[Any] = field(default_factory=list)

    def respond(self) -> None:
        """Send the responses that do not depend on a write."""
        for waiter, result in self.responses:
            cast("Callable[[Any], None]", waiter)(result)


class Outbox:
    """A collector of the current event's Output. All parts of a machine share one Outbox."""

    __slots__ = ("output",)

    def __init__(self) -> None:
        self.output = Output()

    def begin(self) -> Output:
        """Start a new event. Later calls add to the returned Output."""
        self.output = Output()
        return self.output

    def resume(self, output: Output) -> None:
        """Continue an event, after other events have been processed in the meantime."""
        self.output = output

    def note(self, text: str) -> None:
        self.output.notes.append(text)

    def respond(self, waiter: Waiter, result: object) -> None:
        self.output.responses.append((waiter, result))

    def respond_when_committed(
        self, waiter: Waiter, result: object, failed: Callable[[ErrorCode], Any]
    ) -> None:
        response = ResponseWhenCommitted(cast("Callable[[Any], None]", waiter), result, failed)
        self.output.responses_when_committed.append(response)

    def perform(self, effect: object) -> None:
        self.output.effects.append(effect)

    def write(self, write: Write) -> None:
        assert self.output.write is None, "an event leads to one batch"
        self.output.write = write


class Machine(Protocol[R_in]):
    """The runtime's interface to a machine. Each kind of machine has its own methods for requests."""

    @property
    def wake_at_ms(self) -> int | None:
        """Time for the next `tick`, not later than the first deadline, or None if there is no deadline."""

    @property
    def is_dead(self) -> bool:
        """Whether the machine has no state left and can be removed."""

    def replay(self, record: R_in, log_offset: int, producer_id: int) -> None:
        """Apply an appended record. `producer_id` identifies its transaction (-1: none), and `log_offset` is
        the offset after its batch.
        """

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Commit or abort the transaction of a producer."""

    def loaded(self, now: Now) -> Output:
        """Start the machine after all records in the log have been replayed."""

    def written(self, purpose: object, error: ErrorCode, now: Now) -> Output:
        """Process the outcome of a Write. If `error` is NONE, its records are committed."""

    def tick(self, now: Now) -> Output:
        """Process all deadlines that have passed."""

    def unload(self) -> Output:
        """Respond to pending requests, because this broker is no longer the coordinator."""
