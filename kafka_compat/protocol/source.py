"""Base of the source generators for decoders and encoders: Python source code under construction."""

from __future__ import annotations

import linecache
from typing import Any

from kafka_compat.protocol.schema import FieldSpec

KIB_SHIFT = 10
"""Bits to shift sizes in bytes by, because a KiB takes about as long to decode as an array element."""

NUMBERS_SHIFT = 2
"""Bits to shift the lengths of arrays of numbers by: four numbers take as much time and memory as an element
of another array.
"""


def identifier(codes: str) -> str:
    return codes.replace("?", "o")


def array_layout(code: str) -> str:
    """Return the source expression for the layout of an array with `n` values."""
    return f"(layouts_{identifier(code)}[n] if n < 16 else Struct(f'>{{n}}{code}'))"


class Source:
    """The lines of a function under construction, its indentation depth, and the names used in it."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.depth = 1
        self.variables = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def variable(self, prefix: str) -> str:
        self.variables += 1
        return f"{prefix}{self.variables}"

    def constant(self, prefix: str, value: object) -> str:
        """Return a name for `value`. The same object always has the same name."""
        for name, known in self.names.items():
            if known is value and name.startswith(prefix):
                return name
        name = f"{prefix}_{len(self.names)}"
        self.names[name] = value
        return name

    def in_version(self, spec: FieldSpec) -> bool:
        return self.version in spec.versions

    def is_tagged(self, spec: FieldSpec) -> bool:
        return self.flexible and spec.tag is not None

    def spend(self, elements: str) -> None:
        """Generate code that counts array elements, and raises TooLong above the limit."""
        self.line(f"left -= {elements}")
        self.line("if left < 0: raise TooLong")

    def load(self, title: str, header: str) -> Any:
        source = header + "\n" + "\n".join(self.lines) + "\n"
        filename = f"<{title}>"
        code = compile(source, filename, "exec")
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(code, self.names)
        return self.names["generated"]
