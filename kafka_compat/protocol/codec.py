"""Decoding and encoding of messages. The codec for a message class and version is compiled on first use."""

from __future__ import annotations

import struct
import sys
from typing import Any, Final, TypeVar, cast

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.buffers import (
    COPIED_BYTES_MAX,
    IN_MEMORY,
    JOINED_RECORDS_BYTES_MAX,
    STEP_BYTES,
    Buffer,
    Records,
    size_of,
)
from kafka_compat.protocol.schema import Message, schema_of

M = TypeVar("M")

UNBOUNDED: Final = sys.maxsize
"""The value of `elements_max` for no limit."""

HOT_APIS: Final = ("api_versions", "fetch", "metadata", "produce")
"""APIs whose messages are native classes in the compiled form (see native_module): those that transfer
records, and the first requests of every client.
"""
ENCODING_ERRORS: Final = (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError)
_VERSION: Final = struct.Struct(">h")

_EXPLAINED_BYTES_MAX: Final = 16 * 1024
"""Maximum size of a message in which errors are located, which is 100 times slower than decoding."""


class MalformedRequest(KafkaError):
    """Raised for bytes that are not a valid message in this version. Contains the position and the cause."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message)


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0, *, exact: bool = False) -> M:
    """Decode the message of class `cls` that starts at `position`. Later bytes are ignored unless `exact`.

    `records` fields are bytes or, in a large message, memoryviews of `buffer`. Raises MalformedRequest if the
    bytes are invalid or, with `exact`, if bytes remain. Raises KafkaError(UNSUPPORTED_VERSION) if the class
    does not have this version.
    """
    buffer = _decodable(buffer)
    decode_from = _decoder(cls, version, buffer)
    try:
        message, end = decode_from(buffer, position, UNBOUNDED)
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedRequest(_why_not_decoded(cls, version, buffer, position, error)) from None
    if exact and end != len(buffer):
        raise MalformedRequest(f"{cls.__name__} v{version}: {len(buffer) - end} bytes after the end")
    return message  # type: ignore[no-any-return]


def decode_at(
    cls: type[M], version: int, buffer: Buffer, position: int, elements_max: int = UNBOUNDED
) -> tuple[M, int]:
    """Decode a message, and return it with the position after it. Raises the same errors as `decode` and,
    without decoding further elements, TooLong if its arrays have more than `elements_max` elements.
    """
    buffer = _decodable(buffer)
    decode_from = _decoder(cls, version, buffer)
    try:
        return decode_from(buffer, position, elements_max)  # type: ignore[no-any-return]
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedRequest(_why_not_decoded(cls, version, buffer, position, error)) from None


def decoder(cls: type, version: int) -> Any:
    """Return the function that decodes a small message: decoder(content, position, elements_max) returns the
    message and the position after it. `content` is bytes. Raises struct.error, IndexError or ValueError if
    they are invalid, and TooLong.
    """
    return cls.__decoders__.get(version) or _new_decoder(cls, version, version)  # type: ignore[attr-defined]


def decode_long(
    cls: type[M], version: int, buffer: Buffer, position: int, elements_max: int
) -> tuple[M, int]:
    """Decode a long message, and return it with the position after it. Call this in a separate thread. Unlike
    compiled codecs, it releases the interpreter lock now and then.
    """
    decode_from = cls.__decoders__.get(~version) or _interruptible_decoder(cls, version)  # type: ignore[attr-defined]
    try:
        return decode_from(buffer, position, elements_max)  # type: ignore[no-any-return]
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedRequest(_why_not_decoded(cls, version, buffer, position, error)) from None


def encode(message: object, version: int, elements_max: int = UNBOUNDED) -> bytes:
    """Encode a message whose records are in memory.

    Fields that `version` does not have are omitted. Raises ValueError, which names the field, if a value does
    not fit; KafkaError(UNSUPPORTED_VERSION) if the class does not have this version; and TooLong if its
    arrays have more than `elements_max` elements.
    """
    parts: list[Any] = []
    cls = type(message)
    encode_to = cls.__encoders__.get(version) or _new_encoder(cls, version)  # type: ignore[attr-defined]
    try:
        encode_to(message, parts.append, parts.append, elements_max)
    except ENCODING_ERRORS as error:
        raise ValueError(_why_not_encoded(message, version, error)) from error
    return b"".join(parts)


def framer(cls: type, version: int) -> Any:
    """Return the function that encodes a response frame: framer(message, correlation_id, elements_max)
    returns its parts. Raises one of ENCODING_ERRORS if a value does not fit, and TooLong.
    """
    native = native_codecs(cls, "FRAMERS").get((cls, version))
    if native is not None:
        return native
    from kafka_compat.protocol.compiler import compile_framer

    _check_version(cls, version)
    return compile_framer(cls, version)


def encode_long(message: object, version: int) -> list[Records]:
    """Encode a long message as parts. Call this in a separate thread. Unlike a single join of a million
    parts, it releases the interpreter lock repeatedly.
    """
    joined = bytearray()
    alone: list[tuple[int, Records]] = []

    def write(value: Records) -> None:
        if size_of(value) <= STEP_BYTES:
            joined.extend(cast(Buffer, value))
        else:
            view = memoryview(cast(Buffer, value))
            for position in range(0, len(view), STEP_BYTES):
                joined.extend(view[position : position + STEP_BYTES])

    def write_records(value: Records) -> None:
        if isinstance(value, IN_MEMORY) and len(value) <= JOINED_RECORDS_BYTES_MAX:
            joined.extend(value)
        else:
            alone.append((len(joined), value))

    cls = type(message)
    encode_to = cls.__encoders__.get(~version) or _interruptible_encoder(cls, version)  # type: ignore[attr-defined]
    try:
        encode_to(message, write, write_records, UNBOUNDED)
    except ENCODING_ERRORS as error:
        raise ValueError(_why_not_encoded(message, version, error)) from error
    whole = memoryview(joined)
    parts: list[Records] = []
    start = 0
    for position, value in alone:
        parts += (whole[start:position], value)
        start = position
    if start < len(whole):
        parts.append(whole[start:])
    return parts


def decode_versioned(cls: type[M], buffer: Buffer) -> tuple[M, int]:
    """Decode bytes that start with a version, and return the message and the version. Used for records of
    `__consumer_offsets` and for the embedded consumer protocol.
    """
    if len(buffer) < 2:
        raise MalformedRequest(f"{cls.__name__}: no version")
    (version,) = _VERSION.unpack_from(buffer)
    return decode(cls, version, buffer, 2), version


def encode_versioned(message: object, version: int) -> bytes:
    """Encode a message, preceded by its version."""
    return _VERSION.pack(version) + encode(message, version)


def _decodable(buffer: Buffer) -> bytes | memoryview:
    return bytes(buffer) if len(buffer) <= COPIED_BYTES_MAX else memoryview(buffer)


def _decoder(cls: type, version: int, buffer: bytes | memoryview) -> Any:
    if isinstance(buffer, bytes):
        return decoder(cls, version)
    # Native decoders read bytes only. The interruptible decoder serves large messages just as well.
    key = ~version
    return cls.__decoders__.get(key) or _new_decoder(cls, version, key)  # type: ignore[attr-defined]


def _new_decoder(cls: type, version: int, key: int) -> Any:
    _check_version(cls, version)
    decoder = None if key < 0 else native_codecs(cls, "DECODERS").get((cls, version))
    if decoder is None:
        decoder = _interruptible_decoder(cls, version)
    cls.__decoders__[key] = decoder  # type: ignore[attr-defined]
    return decoder


def _new_encoder(cls: type, version: int) -> Any:
    _check_version(cls, version)
    encoder = native_codecs(cls, "ENCODERS").get((cls, version))
    if encoder is None:
        encoder = _interruptible_encoder(cls, version)
    cls.__encoders__[version] = encoder  # type: ignore[attr-defined]
    return encoder


def _interruptible_decoder(cls: type, version: int) -> Any:
    from kafka_compat.protocol.compiler import compile_decoder

    _check_version(cls, version)
    decoder = cls.__decoders__[~version] = compile_decoder(cls, version)  # type: ignore[attr-defined]
    return decoder


def _interruptible_encoder(cls: type, version: int) -> Any:
    from kafka_compat.protocol.compiler import compile_encoder

    _check_version(cls, version)
    encoder = cls.__encoders__[~version] = compile_encoder(cls, version)  # type: ignore[attr-defined]
    return encoder


def native_codecs(cls: type, kind: str) -> dict[tuple[type, int], Any]:
    """Return the native codecs of a message class's module, by class and version: kind is DECODERS, ENCODERS
    or FRAMERS. Empty if the classes are not native.
    """
    return getattr(sys.modules[cls.__module__], kind, {})


def _check_version(cls: type, version: int) -> None:
    if version not in schema_of(cls).versions:
        reason = f"{cls.__name__} v{version}: known are {schema_of(cls).versions}"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)


def _why_not_decoded(cls: type, version: int, buffer: Buffer, position: int, error: Exception) -> str:
    from kafka_compat.protocol.interpreter import Refused, interpret_decode

    if len(buffer) - position <= _EXPLAINED_BYTES_MAX:
        try:
            interpret_decode(cls, version, buffer, position)
        except Refused as refused:
            return f"v{version} {refused}"
    return f"{cls.__name__} v{version}: {error}"


def _why_not_encoded(message: object, version: int, error: Exception) -> str:
    from kafka_compat.protocol.interpreter import Refused, interpret_encode

    try:
        interpret_encode(cast(Message, message), version)
    except Refused as refused:
        return f"v{version} {refused}"
    return f"{type(message).__name__} v{version}: {error}"
