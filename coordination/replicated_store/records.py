"""Records of the replicated store in the metadata log: their types and payloads.

Each record has a frame (record_frames.py), and its payload is JSON. Data of nodes is text in the encoding of
the journal (coordination/store/journal.py), and operations, results and errors are encoded as in
coordination/store/store_wire.py:

    1000 OpenSession    [token, node, directory, incarnation, timeout in ms]
    1001 CloseSession   [session, "closed", call] or [session, "expired", null]
    1002 Transaction    [session, call, first call whose result is not known yet, time in ms, [operation, …]]

`call` numbers the calls of a session from 1. The records of a snapshot are:

    1010 Summary        [number of nodes, number of sessions]                                   first
    1011 Nodes          [[path, data, czxid, …], …], as in the journal, parents before children
    1012 Session        [session, token, node, directory, incarnation, timeout in ms, last call, [outcome, …]]
    1013 Incarnations   [[node, [incarnation, …]], …]

An outcome is [call, results, null] or [call, null, error].
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord
from kafka_compat.coordination.replicated_store.record_frames import UNREADABLE, frame
from kafka_compat.coordination.store import store_wire
from kafka_compat.coordination.store.metadata_store import (
    MetadataStoreError,
    Operation,
    Stat,
    TransactionFailed,
)

OPEN_SESSION = 1000
CLOSE_SESSION = 1001
TRANSACTION = 1002
SUMMARY = 1010
NODES = 1011
SESSION = 1012
INCARNATIONS = 1013

RECORD_BYTES_MAX = 1024 * 1024
"""Maximum size of a framed record in bytes. ZooKeeper also accepts about 1 MB (jute.maxbuffer)."""
BATCH_BYTES_MAX = 4 * RECORD_BYTES_MAX
"""Maximum size of the records of one append in bytes: one record of a snapshot may be this large."""


class BadRecord(Exception):
    """A record that this version does not know, or that is malformed."""


class TransactionTooLarge(MetadataStoreError):
    """A transaction that does not fit in a record. It had no effect."""


Result = str | Stat | None


class Outcome(NamedTuple):
    """What became of a call: its results, or the error if it failed."""

    call: int
    results: Sequence[Result]
    failed_index: int = -1
    """The index of the operation that failed, or -1."""
    cause: Sequence[str] = ()
    """The name and text of the error of this operation."""

    def error(self) -> TransactionFailed | None:
        """Return a new error, or None if the call succeeded."""
        if self.failed_index < 0:
            return None
        return TransactionFailed(self.failed_index, store_wire.decode_error(list(self.cause)))


def failed(call: int, error: TransactionFailed) -> Outcome:
    """Return the outcome of a failed transaction."""
    return Outcome(call, (), error.index, tuple(store_wire.encode_error(error.cause)))


class OpenSession(NamedTuple):
    """Opens a session. A second record with the same token has no effect while the session lives."""

    token: str
    node_id: int
    directory_id: str
    incarnation: str
    """Identifies the process."""
    timeout_ms: int

    def framed(self) -> bytes:
        """Return the framed record."""
        return framed(OPEN_SESSION, list(self))


CloseReason = Literal["closed", "expired"]


class CloseSession(NamedTuple):
    """Ends a session: as a call of its owner (`call` is set), or because it expired."""

    session_id: int
    reason: CloseReason
    call: int | None = None

    def framed(self) -> bytes:
        """Return the framed record."""
        return framed(CLOSE_SESSION, list(self))


class Transaction(NamedTuple):
    """A call of `multi`."""

    session_id: int
    call: int
    first_unknown: int
    """The owner knows the results of all calls below this number."""
    time_ms: int
    operations: Sequence[Operation]

    def framed(self) -> bytes:
        """Return the framed record. Raises TransactionTooLarge above RECORD_BYTES_MAX."""
        record = framed(TRANSACTION, [*self[:4], store_wire.encode_operations(self.operations)])
        if len(record) > RECORD_BYTES_MAX:
            raise TransactionTooLarge(
                f"a transaction of {len(self.operations)} operations, the first on "
                f"{self.operations[0].path}, has {len(record)} bytes: the maximum is {RECORD_BYTES_MAX}. "
                "Split it, or write less data"
            )
        return record


class Summary(NamedTuple):
    """The first record of a snapshot."""

    nodes: int
    sessions: int


class Nodes(NamedTuple):
    """Nodes of the tree, in the encoding of the journal."""

    nodes: list[list[Any]]


class SavedSession(NamedTuple):
    """A session, with the outcomes that its owner may not know yet."""

    session_id: int
    opened: OpenSession
    last_call: int
    outcomes: tuple[Outcome, ...]

    def framed(self) -> bytes:
        """Return the framed record."""
        outcomes = [
            [outcome.call, outcome.results, None]
            if outcome.failed_index < 0
            else [outcome.call, None, ["TransactionFailed", "", outcome.failed_index, outcome.cause]]
            for outcome in self.outcomes
        ]
        return framed(SESSION, [self.session_id, *self.opened, self.last_call, outcomes])


class Incarnations(NamedTuple):
    """The latest incarnations of each node, the current one last."""

    by_node: list[tuple[int, list[str]]]


Change = OpenSession | CloseSession | Transaction
Saved = Summary | Nodes | SavedSession | Incarnations


def framed(record_type: int, payload: Any) -> bytes:
    """Return a framed record of version 0 with this JSON payload."""
    return frame(record_type, 0, json.dumps(payload, separators=(",", ":")).encode())


def decode_change(record: AppliedRecord) -> Change:
    """Decode a record of the log. Raises BadRecord."""
    change = _decode(record)
    if not isinstance(change, OpenSession | CloseSession | Transaction):
        raise BadRecord(f"type {record.type} at offset {record.offset} belongs in a snapshot")
    return change


def decode_saved(record: AppliedRecord) -> Saved:
    """Decode a record of a snapshot. Raises BadRecord."""
    saved = _decode(record)
    if isinstance(saved, OpenSession | CloseSession | Transaction):
        raise BadRecord(f"type {record.type} does not belong in a snapshot")
    return saved


def _decode(record: AppliedRecord) -> Change | Saved:
    if record.type == UNREADABLE:
        raise BadRecord(f"the frame at offset {record.offset} is incomplete or has an unknown version")
    if record.version != 0 or record.type not in _DECODERS:
        raise BadRecord(f"type {record.type}, version {record.version} at offset {record.offset} is unknown")
    try:
        decoded = _DECODERS[record.type](json.loads(record.value))
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise BadRecord(f"type {record.type} at offset {record.offset} is malformed: {error}") from None
    return cast(Change | Saved, decoded)


def _open_session(payload: Any) -> OpenSession:
    match payload:
        case [str(token), int(node_id), str(directory), str(incarnation), int(timeout_ms)]:
            return OpenSession(token, node_id, directory, incarnation, timeout_ms)
    raise ValueError(_shown(payload))


def _close_session(payload: Any) -> CloseSession:
    match payload:
        case [int(session_id), "closed", int(call)]:
            return CloseSession(session_id, "closed", call)
        case [int(session_id), "expired", None]:
            return CloseSession(session_id, "expired")
    raise ValueError(_shown(payload))


def _transaction(payload: Any) -> Transaction:
    match payload:
        case [int(session_id), int(call), int(first), int(time_ms), list(operations)]:
            return Transaction(
                session_id, call, first, time_ms, [store_wire.decode_operation(item) for item in operations]
            )
    raise ValueError(_shown(payload))


def _summary(payload: Any) -> Summary:
    nodes, sessions = payload
    return Summary(int(nodes), int(sessions))


def _nodes(payload: Any) -> Nodes:
    if not all(isinstance(item, list) and len(item) == 9 for item in payload):
        raise ValueError(_shown(payload))
    return Nodes(payload)


def _session(payload: Any) -> SavedSession:
    session_id, *opened, last_call, outcomes = payload
    return SavedSession(
        session_id, _open_session(opened), last_call, tuple(_outcome(item) for item in outcomes)
    )


def _outcome(item: Any) -> Outcome:
    match item:
        case [int(call), list(results), None]:
            return Outcome(call, store_wire.decode_results(results))
        case [int(call), None, ["TransactionFailed", str(), int(index), [str(name), str(text)]]]:
            return Outcome(call, (), index, (name, text))
    raise ValueError(_shown(item))


def _incarnations(payload: Any) -> Incarnations:
    return Incarnations([(int(node_id), [str(item) for item in items]) for node_id, items in payload])


_DECODERS = {
    OPEN_SESSION: _open_session,
    CLOSE_SESSION: _close_session,
    TRANSACTION: _transaction,
    SUMMARY: _summary,
    NODES: _nodes,
    SESSION: _session,
    INCARNATIONS: _incarnations,
}


def _shown(value: Any) -> str:
    return repr(value)[:120]
