"""Wire format between a shared store and its client processes: frames and messages. No I/O.

A frame is the length of its text in four bytes, big-endian, and the text: a JSON array whose first item is
the message type. The client process sends:

    ["open", id]                                                  → a session's ID
    ["get" | "exists" | "children", id, session, path, watch]     → [data, stat], stat or null, names
    ["multi", id, session, [operation, …]]                        → [path, stat or null, …]
    ["close", id, session]                                        → null
    ["alive"]                                                     (no response)

The server process sends:

    ["done", id, result]        ["failed", id, error]
    ["event", watch, kind, path]        ["expired", session]

`id` and `watch` are numbers chosen by the client; `watch` is null if no watch is set. An operation is
["create", path, data, ephemeral, sequential], ["set", path, data, version], ["delete", path, version] or
["check", path, version]. A stat is the list of its numbers. An error is [name, text], and for a transaction
[name, text, index, cause]. Data is text in the encoding of the journal, or null.
"""

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.journal import bytes_of, text_of
from kafka_compat.coordination.store.metadata_store import Event, MetadataStoreError, Operation, Stat
from kafka_compat.coordination.store.tree import check_path

FRAME_BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of a frame in bytes, which is sufficient for a list of a million topics."""

READS = ("get", "exists", "children")

_LENGTH = struct.Struct(">I")
_ERRORS: dict[str, type[MetadataStoreError]] = {
    error.__name__: error
    for error in (
        stores.NoNode,
        stores.NodeExists,
        stores.BadVersion,
        stores.NotEmpty,
        stores.NoChildrenForEphemerals,
        stores.SessionExpired,
        stores.ConnectionLost,
    )
}

Message = Sequence[Any]


class BadFrame(Exception):
    """Received data that is not a valid frame or message. The connection is then unusable."""


class Open(NamedTuple):
    """Request to open a session."""

    request_id: int


class Read(NamedTuple):
    """Request to read a node. `kind` is one of READS."""

    kind: str
    request_id: int
    session_id: int
    path: str
    watch_id: int | None


class Multi(NamedTuple):
    """Request for a transaction."""

    request_id: int
    session_id: int
    operations: list[Operation]


class Close(NamedTuple):
    """Request to close a session."""

    request_id: int
    session_id: int


class Alive(NamedTuple):
    """Heartbeat of the client process."""


Request = Open | Read | Multi | Close | Alive


class Done(NamedTuple):
    """Successful response to a request."""

    request_id: int
    result: Any


class Failed(NamedTuple):
    """Error response to a request."""

    request_id: int
    error: MetadataStoreError


class WatchEvent(NamedTuple):
    """Message that a watch has fired."""

    watch_id: int
    event: Event


class Expired(NamedTuple):
    """Message that a session has expired."""

    session_id: int


Answer = Done | Failed | WatchEvent | Expired


# --- frames


def encode_frame(message: Message) -> bytes:
    """Encode a message as a frame. Raises MetadataStoreError if it exceeds FRAME_BYTES_MAX."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > FRAME_BYTES_MAX:
        raise MetadataStoreError(f"a message of {len(text)} bytes: the maximum is {FRAME_BYTES_MAX}")
    return _LENGTH.pack(len(text)) + text


class Splitter:
    """A decoder that splits a byte stream into messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """Add received data, and yield all complete messages. Raises BadFrame at an invalid message."""
        rest = self._rest
        rest += data
        start = 0
        try:
            while len(rest) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(rest, start)
                if length > FRAME_BYTES_MAX:
                    raise BadFrame(f"a frame of {length} bytes")
                end = start + _LENGTH.size + length
                if len(rest) < end:
                    return
                text = bytes(rest[start + _LENGTH.size : end])
                start = end
                yield _parsed(text)
        finally:
            del rest[:start]


def _parsed(text: bytes) -> list[Any]:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"{text[:80]!r} is not JSON: {error}") from None
    if not isinstance(message, list) or not message:
        raise BadFrame(f"{text[:80]!r} is not a message")
    return message


# --- messages of the client process


def encode_operations(operations: Sequence[Operation]) -> list[Message]:
    """Encode the operations of a transaction."""
    return [_operation(operation) for operation in operations]


def _operation(operation: Operation) -> Message:
    if isinstance(operation, stores.Create):
        path, data, ephemeral, sequential = operation
        return ["create", path, text_of(data), ephemeral, sequential]
    if isinstance(operation, stores.SetData):
        return ["set", operation.path, text_of(operation.data), operation.version]
    return ["delete" if isinstance(operation, stores.Delete) else "check", operation.path, operation.version]


def decode_request(message: Message) -> Request:
    """Decode a request. Raises BadFrame if it is invalid."""
    try:
        match message:
            case ["alive"]:
                return Alive()
            case ["open", int(request_id)]:
                return Open(request_id)
            case ["close", int(request_id), int(session_id)]:
                return Close(request_id, session_id)
            case ["multi", int(request_id), int(session_id), list(operations)]:
                return Multi(request_id, session_id, [decode_operation(item) for item in operations])
            case [str(kind), int(request_id), int(session_id), str(path), int() | None as watch_id]:
                if kind in READS:
                    check_path(path)
                    return Read(kind, request_id, session_id, path, watch_id)
    except ValueError as error:
        raise BadFrame(str(error)) from None
    raise BadFrame(f"{_shown(message)} is not a request")


def decode_operation(item: Any) -> Operation:
    """Decode an operation of a transaction. Raises ValueError if it is invalid."""
    operation: Operation
    match item:
        case ["create", str(path), str() | None as data, bool(ephemeral), bool(sequential)]:
            operation = stores.Create(path, bytes_of(data), ephemeral, sequential)
        case ["set", str(path), str() | None as data, int(version)]:
            operation = stores.SetData(path, bytes_of(data), version)
        case ["delete", str(path), int(version)]:
            operation = stores.Delete(path, version)
        case ["check", str(path), int(version)]:
            operation = stores.Check(path, version)
        case _:
            raise ValueError(f"{_shown(item)} is not an operation")
    check_path(path)
    return operation


# --- messages of the server process


def encode_node(data: bytes | None, stat: Stat) -> Message:
    """Encode the result of a "get" request."""
    return [text_of(data), stat]


def decode_node(result: Any) -> tuple[bytes | None, Stat]:
    """Decode the result of a "get" request: the data and the stat of the node."""
    data, stat = result
    return bytes_of(data), Stat(*stat)


def decode_stat(result: Any) -> Stat | None:
    """Decode the result of an "exists" request."""
    return None if result is None else Stat(*result)


def decode_results(result: Any) -> list[str | Stat | None]:
    """Decode the results of a transaction."""
    return [item if isinstance(item, str) else decode_stat(item) for item in result]


def encode_error(error: MetadataStoreError) -> Message:
    """Encode an error. The receiver decodes unknown classes as MetadataStoreError."""
    if isinstance(error, stores.TransactionFailed):
        return ["TransactionFailed", str(error), error.index, encode_error(error.cause)]
    return [type(error).__name__, str(error)]


def decode_answer(message: Message) -> Answer:
    """Decode a message from the server. Raises BadFrame if it is invalid."""
    try:
        match message:
            case ["done", int(request_id), result]:
                return Done(request_id, result)
            case ["failed", int(request_id), error]:
                return Failed(request_id, decode_error(error))
            case ["event", int(watch_id), str(kind), str(path)]:
                return WatchEvent(watch_id, Event(stores.EventKind(kind), path))
            case ["expired", int(session_id)]:
                return Expired(session_id)
    except ValueError as error:
        raise BadFrame(str(error)) from None
    raise BadFrame(f"{_shown(message)} is not a response")


def decode_error(error: Any) -> MetadataStoreError:
    """Decode an error. Raises ValueError if it is invalid."""
    match error:
        case ["TransactionFailed", str(), int(index), cause]:
            return stores.TransactionFailed(index, decode_error(cause))
        case [str(name), str(text)]:
            return _ERRORS.get(name, MetadataStoreError)(text)
    raise ValueError(f"{_shown(error)} is not an error")


def _shown(value: Any) -> str:
    return repr(value)[:120]
