"""Base class and helpers of native messages (see native_module.py). Compiled; unused in the Python form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from librt.strings import BytesWriter, write_i32_be

from kafka_compat.protocol.buffers import IN_MEMORY
from kafka_compat.protocol.schema import ArrayOf, FieldSpec, represent, same

if TYPE_CHECKING:
    # mypyc replaces these types, whose module is slow to import.
    from mypy_extensions import i32, i64, u8

RECORDS_COPIED_BYTES_MAX: i64 = 32 * 1024


class NativeMessage:
    """Base class of native messages, which are compared and printed by value like `schema.Message`."""

    def __eq__(self, other: object) -> bool:
        return same(self, other)

    def __repr__(self) -> str:
        return represent(self)


def describe(schemas: Any, classes: list[Any]) -> None:
    """Give native classes the schemas of the classes that they replace, which `schemas` contains."""
    natives = {cls.__name__: cls for cls in classes}
    for cls in classes:
        original = getattr(schemas, cls.__name__)
        cls.__hash__ = None
        cls.__fields__ = tuple(_described(spec, natives) for spec in original.__fields__)
        if "__schema__" in original.__dict__:
            cls.__schema__, cls.__decoders__, cls.__encoders__ = original.__schema__, {}, {}


def _described(spec: FieldSpec, natives: dict[str, Any]) -> FieldSpec:
    of: Any = spec.type
    if isinstance(of, ArrayOf):
        element: Any = of.element
        return spec._replace(type=ArrayOf(natives[element.__name__])) if isinstance(element, type) else spec
    if not isinstance(of, type):
        return spec
    native = natives[of.__name__]
    if spec.factory is not None:
        return spec._replace(type=native, factory=native)
    return spec._replace(type=native, default=None if spec.default is None else native())


class Frame:
    """A response frame under construction."""

    def __init__(self, correlation_id: int, has_tags: bool) -> None:
        self.out = BytesWriter()
        """The writer of the first part, which begins with the size of the frame."""
        write_i32_be(self.out, 0)
        write_i32_be(self.out, i32(correlation_id))
        if has_tags:
            self.out.append(0)
        self._earlier: list[Any] = []
        self._earlier_bytes: i64 = 0

    def write_records(self, out: BytesWriter, records: Any, size: i64) -> BytesWriter:
        """Write short records to `out`. Others become a part. Return the writer to continue with."""
        if size <= RECORDS_COPIED_BYTES_MAX and isinstance(records, IN_MEMORY):
            out.write(bytes(records))
            return out
        self._earlier.append(out)
        self._earlier.append(records)
        self._earlier_bytes += len(out) + size
        return BytesWriter()

    def parts(self, out: BytesWriter) -> list[Any]:
        """Finish the frame, whose last bytes are in `out`, and return its parts."""
        size: i64 = self._earlier_bytes + len(out) - 4
        first = self.out
        first[0] = u8(size >> 24 & 255)
        first[1] = u8(size >> 16 & 255)
        first[2] = u8(size >> 8 & 255)
        first[3] = u8(size & 255)
        if not self._earlier:
            return [out.getvalue()]
        parts: list[Any] = [
            part.getvalue() if isinstance(part, BytesWriter) else part for part in self._earlier
        ]
        parts.append(out.getvalue())
        return parts


def write_uvarint(out: BytesWriter, value: i64) -> None:
    """Write an unsigned varint."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def write_i8(out: BytesWriter, value: i64) -> None:
    """Write a signed byte. Raises ValueError if the value does not fit."""
    if value < -128 or value > 127:
        raise ValueError("not a signed byte")
    out.append(value & 255)


def write_string(out: BytesWriter, value: bytes) -> None:
    """Write the bytes of a string after a length of two bytes. Raises ValueError if it is too long."""
    size: i64 = len(value)
    if size > 32767:
        raise ValueError("a string of more than 32767 bytes")
    out.append(size >> 8)
    out.append(size & 255)
    out.write(value)
