"""Buffers and low-level helpers with which the codec reads and writes bytes."""

from __future__ import annotations

from functools import cache, lru_cache
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from uuid import UUID

Buffer: TypeAlias = bytes | bytearray | memoryview


IN_MEMORY: Final = (bytes, bytearray, memoryview)

JOINED_RECORDS_BYTES_MAX: Final = 32 * 1024
"""Maximum size in bytes of in-memory records that are joined with adjacent bytes of a message."""
COPIED_BYTES_MAX: Final = 64 * 1024
"""Maximum size of a message that is copied to a bytes object before it is decoded. Its records are bytes.
Larger messages are decoded from a view, and their records are views.
"""


class TooLong(Exception):
    """Raised if the arrays of a message have more elements than the caller allows."""


class FileSliceLike(Protocol):
    """Bytes that remain in a file until they are sent, such as a slice of a log segment."""

    @property
    def size_bytes(self) -> int: ...


Records: TypeAlias = Buffer | FileSliceLike


def in_memory(records: Records | None) -> Buffer | None:
    """Return records that are in memory, or None."""
    if isinstance(records, bytes):
        return records
    return records if isinstance(records, IN_MEMORY) else None


def size_of(value: Records) -> int:
    """Return the size in bytes of the value of a records field."""
    return len(value) if isinstance(value, IN_MEMORY) else value.size_bytes


@lru_cache(maxsize=1024)
def uuid_from(raw: bytes) -> UUID:
    """Convert 16 bytes to a UUID. Results are cached, because few different topic IDs are in use."""
    from uuid import UUID

    return UUID(bytes=raw)


STEP_BYTES: Final = 1024 * 1024
"""Number of bytes copied at a time, which blocks the interpreter for about half a millisecond."""


def copy_in_steps(buffer: Buffer, start: int, stop: int) -> bytes:
    """Copy `buffer[start:stop]` without blocking other threads for long."""
    copied = BytesIO()
    for position in range(start, stop, STEP_BYTES):
        copied.write(buffer[position : min(position + STEP_BYTES, stop)])
    return copied.getvalue()


NUMBERS_AT_ONCE: Final = 8_000
"""Number of array elements unpacked at a time, which blocks the interpreter for less than a millisecond."""


def numbers_in_steps(code: str, buffer: Buffer, position: int, count: int) -> list[int]:
    """Unpack an array of `count` numbers without blocking other threads for long."""
    numbers: list[int] = []
    for first in range(0, count, NUMBERS_AT_ONCE):
        some = Struct(f">{min(NUMBERS_AT_ONCE, count - first)}{code}")
        numbers += some.unpack_from(buffer, position)
        position += some.size
    return numbers


ONE_BYTE_UVARINTS: Final = tuple(bytes([value]) for value in range(128))


@cache
def array_layouts(code: str) -> tuple[Struct, ...]:
    """Return the layouts of arrays with up to 15 elements, indexed by length."""
    return tuple(Struct(f">{length}{code}") for length in range(16))


def uvarint(value: int) -> bytes:
    """Encode a non-negative `value` as an unsigned varint."""
    if 1 << 7 <= value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if 1 << 14 <= value < 1 << 21:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return an unsigned varint and the next position. Raises IndexError or ValueError if it is invalid."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        if byte < 0x80:
            value |= byte << shift
            if value > 0xFFFFFFFF:
                raise ValueError("an unsigned varint above 32 bits")
            return value, position
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 28:
            raise ValueError("an unsigned varint longer than five bytes")


def skip_tagged_fields(buffer: Buffer, position: int, count: int) -> int:
    """Return the position after `count` unknown tagged fields."""
    end = len(buffer)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size_bytes, position = read_uvarint(buffer, position)
        position += size_bytes
        if position > end:
            raise ValueError("a tagged field extends past the end")
    return position


def tagged_section(fields: list[tuple[int, bytes]]) -> bytes:
    """Encode tagged fields in ascending order of tags, preceded by their count."""
    parts = [uvarint(len(fields))]
    for tag, payload in fields:
        parts += (uvarint(tag), uvarint(len(payload)), payload)
    return b"".join(parts)
