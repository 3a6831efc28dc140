"""The codec as an executable specification: slow, short, and precise about errors.

`kafka_compat.protocol.compiler` generates code with the same results; the tests compare both. A running
broker uses this codec only to explain why generated code rejected a message.
"""

from __future__ import annotations

import struct
from typing import Any, cast

from kafka_compat.protocol.buffers import (
    Buffer,
    Records,
    read_uvarint,
    size_of,
    skip_tagged_fields,
    tagged_section,
    uuid_from,
    uvarint,
)
from kafka_compat.protocol.schema import ArrayOf, FieldSpec, Message, Wire, WireType, allocator, schema_of

STRING_BYTES_MAX = 0x7FFF
"""Maximum size of a string in bytes (a two-byte length). Kafka also applies it in flexible versions."""


class Refused(ValueError):
    """Raised for an invalid message. `path` names the field, as in FetchRequest.topics[0].topic."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")


def absent_value(spec: FieldSpec) -> Any:
    """Return the value of a field that the version does not have or that is not set."""
    if spec.factory is not None:
        return spec.factory()
    return [] if isinstance(spec.default, list) else spec.default


def smallest_size_bytes(wire_type: WireType, version: int, flexible: bool) -> int:
    """Return the minimum encoded size of a value in bytes, for limiting the announced lengths of arrays."""
    if isinstance(wire_type, ArrayOf):
        return 1 if flexible else 4
    if isinstance(wire_type, Wire):
        if wire_type.code:
            return struct.calcsize(">" + wire_type.code)
        return 1 if flexible else 2 if wire_type.name == "string" else 4
    size_bytes = 1 if flexible else 0
    for spec in wire_type.__fields__:
        if version in spec.versions and not (flexible and spec.tag is not None):
            nullable_struct = isinstance(spec.type, type) and version in spec.nullable
            size_bytes += 1 if nullable_struct else smallest_size_bytes(spec.type, version, flexible)
    return size_bytes


def interpret_decode(cls: type[Message], version: int, buffer: Buffer, position: int) -> tuple[Message, int]:
    """Decode the message at `position`. Return it with the next position. Raises Refused if it is invalid."""
    flexible = version in schema_of(cls).flexible
    return _Decoder(memoryview(buffer), version, flexible).struct(cls, position, cls.__name__)


def interpret_encode(message: Message, version: int) -> list[Records]:
    """Encode `message` in parts. Raises Refused if a value does not fit its field."""
    flexible = version in schema_of(type(message)).flexible
    parts: list[Records] = []
    _Encoder(parts, version, flexible).struct(message, type(message).__name__)
    return parts


class _Decoder:
    def __init__(self, buffer: memoryview, version: int, flexible: bool) -> None:
        self.buffer = buffer
        self.version = version
        self.flexible = flexible

    def struct(self, cls: type[Message], position: int, path: str) -> tuple[Message, int]:
        message: Message = allocator(cls)(cls)
        tagged: dict[int, FieldSpec] = {}
        for spec in cls.__fields__:
            present = self.version in spec.versions
            if present and not (self.flexible and spec.tag is not None):
                value, position = self.field(spec, position, f"{path}.{spec.name}")
            else:
                value = absent_value(spec)
                if present and spec.tag is not None:
                    tagged[spec.tag] = spec
            setattr(message, spec.name, value)
        if self.flexible:
            position = self.tagged_fields(message, tagged, position, path)
        return message, position

    def tagged_fields(self, message: Message, known: dict[int, FieldSpec], position: int, path: str) -> int:
        count, position = self.uvarint(position, f"{path} tag count")
        for _ in range(count):
            tag, after_tag = self.uvarint(position, f"{path} tag")
            size_bytes, start = self.uvarint(after_tag, f"{path} tag {tag} size")
            stop = start + size_bytes
            if tag not in known:
                try:
                    position = skip_tagged_fields(self.buffer, position, 1)
                except (IndexError, ValueError) as error:
                    raise Refused(f"{path} tag {tag}", position, str(error)) from None
                continue
            spec = known[tag]
            value, position = self.field(spec, start, f"{path}.{spec.name}")
            if position != stop:
                raise Refused(f"{path}.{spec.name}", start, f"uses {position - start} of {size_bytes} bytes")
            setattr(message, spec.name, value)
        return position

    def field(self, spec: FieldSpec, position: int, path: str) -> tuple[Any, int]:
        nullable = self.version in spec.nullable
        if self.flexible and spec.tag is not None and nullable and isinstance(spec.type, type):
            marker, position = self.fixed("b", position, path)
            return (None, position) if marker < 1 else self.value(spec.type, False, position, path)
        return self.value(spec.type, nullable, position, path)

    def value(self, wire_type: WireType, nullable: bool, position: int, path: str) -> tuple[Any, int]:
        if isinstance(wire_type, ArrayOf):
            return self.array(wire_type.element, nullable, position, path)
        if not isinstance(wire_type, Wire):
            if nullable:
                marker, position = self.fixed("b", position, path)
                if marker < 0:
                    return None, position
            return self.struct(wire_type, position, path)
        if wire_type.name == "uuid":
            raw, position = self.fixed("16s", position, path)
            return uuid_from(raw), position
        if wire_type.code:
            return self.fixed(wire_type.code, position, path)
        length, position = self.length("h" if wire_type.name == "string" else "i", nullable, position, path)
        if length is None:
            return None, position
        if wire_type.name == "string" and length > STRING_BYTES_MAX:
            raise Refused(path, position, f"a string of {length} bytes")
        stop = position + length
        if stop > len(self.buffer):
            raise Refused(path, position, f"{length} bytes announced, {len(self.buffer) - position} left")
        view = self.buffer[position:stop]
        if wire_type.name == "records":
            return view, stop
        if wire_type.name == "bytes":
            return bytes(view), stop
        try:
            return str(view, "utf-8"), stop
        except UnicodeDecodeError as error:
            raise Refused(path, position, f"not UTF-8: {error.reason}") from None

    def array(self, element: WireType, nullable: bool, position: int, path: str) -> tuple[Any, int]:
        count, position = self.length("i", nullable, position, path)
        if count is None:
            return None, position
        left = len(self.buffer) - position
        if count * smallest_size_bytes(element, self.version, self.flexible) > left:
            raise Refused(path, position, f"{count} elements announced, {left} bytes left")
        values = []
        for index in range(count):
            value, position = self.value(element, False, position, f"{path}[{index}]")
            values.append(value)
        return values, position

    def length(self, code: str, nullable: bool, position: int, path: str) -> tuple[int | None, int]:
        if self.flexible:
            length, after = self.uvarint(position, path)
            length -= 1
        else:
            length, after = self.fixed(code, position, path)
        if length >= 0:
            return length, after
        if not nullable:
            raise Refused(path, position, "null in a field that cannot be null")
        return None, after

    def fixed(self, code: str, position: int, path: str) -> tuple[Any, int]:
        size_bytes = struct.calcsize(">" + code)
        try:
            (value,) = struct.unpack_from(">" + code, self.buffer, position)
        except struct.error:
            left = len(self.buffer) - position
            raise Refused(path, position, f"{size_bytes} bytes needed, {left} left") from None
        return value, position + size_bytes

    def uvarint(self, position: int, path: str) -> tuple[int, int]:
        try:
            return read_uvarint(self.buffer, position)
        except IndexError:
            raise Refused(path, position, "the bytes end within a varint") from None
        except ValueError as error:
            raise Refused(path, position, str(error)) from None


class _Encoder:
    def __init__(self, parts: list[Records], version: int, flexible: bool) -> None:
        self.parts = parts
        self.version = version
        self.flexible = flexible

    def struct(self, message: Message, path: str) -> None:
        tagged: list[tuple[int, bytes]] = []
        for spec in message.__fields__:
            if self.version not in spec.versions:
                continue
            value = getattr(message, spec.name)
            if not self.flexible or spec.tag is None:
                self.field(spec, value, f"{path}.{spec.name}")
            elif value != absent_value(spec):
                payload = _Encoder([], self.version, self.flexible)
                payload.field(spec, value, f"{path}.{spec.name}")
                tagged.append((spec.tag, b"".join(cast(list[bytes], payload.parts))))
        if self.flexible:
            self.parts.append(tagged_section(sorted(tagged)))

    def field(self, spec: FieldSpec, value: Any, path: str) -> None:
        nullable = self.version in spec.nullable
        if value is None and not nullable:
            raise Refused(path, self.position, "None in a field that cannot be null")
        try:
            if value is None and self.flexible and spec.tag is not None and isinstance(spec.type, type):
                self.parts.append(b"\0")
            else:
                self.value(spec.type, nullable, value, path)
        except Refused:
            raise
        except (struct.error, TypeError, AttributeError, ValueError) as error:
            raise Refused(path, self.position, f"{value!r} does not fit: {error}") from None

    def value(self, wire_type: WireType, nullable: bool, value: Any, path: str) -> None:
        if isinstance(wire_type, ArrayOf):
            self.length("i", None if value is None else len(value))
            for index, element in enumerate(value or ()):
                self.value(wire_type.element, False, element, f"{path}[{index}]")
        elif not isinstance(wire_type, Wire):
            if nullable:
                self.parts.append(b"\xff" if value is None else b"\x01")
            if value is not None:
                self.struct(value, path)
        elif wire_type.name == "uuid":
            self.parts.append(value.bytes)
        elif wire_type.code:
            self.parts.append(struct.pack(">" + wire_type.code, value))
        else:
            if isinstance(value, str):
                value = value.encode()
            self.length("h" if wire_type.name == "string" else "i", None if value is None else size_of(value))
            if value is not None:
                self.parts.append(value)

    def length(self, code: str, length: int | None) -> None:
        if self.flexible:
            self.parts.append(uvarint(0 if length is None else length + 1))
        else:
            self.parts.append(struct.pack(">" + code, -1 if length is None else length))

    @property
    def position(self) -> int:
        return sum(map(size_of, self.parts))
