"""Random messages of any schema, reproducible by seed."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from kafka_compat.protocol.schema import ArrayOf, FieldSpec, Message, Wire, WireType, fields_of

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
_ALPHABET = "abcdefghijklmnopqrstuvwxyz-_.0123456789"
_FAR_CHARACTERS = "äßñЖ中文\u00a0😀\x00"


class RandomMessages:
    """Generates messages whose arrays have at most `longest` elements.

    With `full`, every field of the version has content: no nulls, no empty arrays, and no tagged field with
    its default.
    """

    def __init__(self, seed: int | str, longest: int = 3, full: bool = False) -> None:
        self._random = random.Random(seed)
        self._longest = longest
        self._full = full

    def message(self, cls: type[Message], version: int) -> Message:
        """Return a message with random values in the fields of `version`, and defaults in the others."""
        values = {
            spec.name: self._field(spec, version) for spec in fields_of(cls) if version in spec.versions
        }
        return cls(**{name: value for name, value in values.items() if value is not _DEFAULT})

    def _field(self, spec: FieldSpec, version: int) -> Any:
        if spec.tag is not None and not self._full and self._random.random() < 0.4:
            return _DEFAULT
        if version in spec.nullable and not self._full and self._random.random() < 0.25:
            return None
        return self._value(spec.type, version)

    def _value(self, wire_type: WireType, version: int) -> Any:
        if isinstance(wire_type, ArrayOf):
            length = self._random.randint(1 if self._full else 0, self._longest)
            if isinstance(wire_type.element, Wire) and self._random.random() < 0.02:
                length = 140  # a count of two varint bytes
            return [self._value(wire_type.element, version) for _ in range(length)]
        if not isinstance(wire_type, Wire):
            return self.message(wire_type, version)
        return self._primitive(wire_type.name)

    def _primitive(self, name: str) -> Any:
        if name == "bool":
            return self._random.random() < 0.5
        if name == "float64":
            return self._random.choice([0.0, -1.5, self._random.uniform(-1e9, 1e9), 1e300])
        if name == "uuid":
            return UUID(int=self._random.getrandbits(128))
        if name == "string":
            return self._text()
        if name in ("bytes", "records"):
            return self._random.randbytes(self._length())
        bits = _BITS[name]
        low = 0 if name.startswith("u") else -(1 << (bits - 1))
        high = low + (1 << bits) - 1
        return self._random.choice([low, -1 if low else 1, 0, high, self._random.randint(low, high)])

    def _text(self) -> str:
        letters = _ALPHABET if self._random.random() < 0.8 else _ALPHABET + _FAR_CHARACTERS * 3
        return "".join(self._random.choices(letters, k=self._length()))

    def _length(self) -> int:
        return self._random.randint(120, 300) if self._random.random() < 0.03 else self._random.randint(0, 12)


_DEFAULT = object()
