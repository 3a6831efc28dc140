"""Generates one decoder and one encoder per (message class, version), as Python source that is then exec'd.

What makes the generated code quick: adjacent fixed-size values, with the length or count that follows them,
are read and written by one prebuilt Struct; the one-byte varint is handled in line; nested structs are
nested loops of one function; objects are made without their `__init__`. The source is registered in
linecache, so that a traceback shows it. `kafka_compat.protocol.interpreter` says the same without tricks.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast
from uuid import UUID

from kafka_compat.protocol.buffers import (
    Records,
    read_uvarint,
    size_of,
    skip_tagged_fields,
    tagged_section,
    uuid_from,
    uvarint,
)
from kafka_compat.protocol.interpreter import smallest_size_bytes
from kafka_compat.protocol.schema import ArrayOf, FieldSpec, Message, Wire, WireType, schema_of

Decoder: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]
Encoder: TypeAlias = Callable[[Any, Callable[[Records], None], Callable[[Records], None]], None]

_ONE_BYTE_UVARINTS = tuple(bytes([value]) for value in range(128))


def compile_decoder(cls: type[Message], version: int) -> Decoder:
    """`decode(buffer, position) -> (message, position after it)`.

    The function raises struct.error, IndexError or ValueError for bytes that are no such message.
    """
    generator = _DecoderSource(version, version in schema_of(cls).flexible)
    return cast(Decoder, generator.compile(cls, f"decode {cls.__name__} v{version}"))


def compile_encoder(cls: type[Message], version: int) -> Encoder:
    """`encode(message, write, write_records)`: calls one of the two with each part in turn."""
    generator = _EncoderSource(version, version in schema_of(cls).flexible)
    return cast(Encoder, generator.compile(cls, f"encode {cls.__name__} v{version}"))


def _identifier(codes: str) -> str:
    return codes.replace("?", "o")


@cache
def _array_layouts(code: str) -> tuple[struct.Struct, ...]:
    """Layouts of short arrays by their length: replica lists have mostly three elements."""
    return tuple(struct.Struct(f">{length}{code}") for length in range(16))


def _array_layout(code: str) -> str:
    """The expression for the layout of `n` values."""
    return f"(layouts_{_identifier(code)}[n] if n < 16 else Struct(f'>{{n}}{code}'))"


class _Source:
    """Lines of a function body at the current depth, and the names that they use."""

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
        """A name for `value`; the same one for the same object."""
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

    def load(self, title: str, header: str) -> Any:
        source = header + "\n" + "\n".join(self.lines) + "\n"
        filename = f"<{title}>"
        code = compile(source, filename, "exec")
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(code, self.names)
        return self.names["generated"]


class _DecoderSource(_Source):
    def __init__(self, version: int, flexible: bool) -> None:
        super().__init__(version, flexible)
        self.targets: list[str] = []  # of the fixed-size values that the next flush reads
        self.codes = ""
        self.after_flush: list[str] = []

    def compile(self, cls: type[Message], title: str) -> Any:
        self.names |= {
            "new": object.__new__,
            "uuid_from": uuid_from,
            "read_uvarint": read_uvarint,
            "skip_tagged_fields": skip_tagged_fields,
            "Struct": struct.Struct,
        }
        self.line("end = len(b)")
        self.struct(cls, "m")
        self.flush()
        self.line("return m, p")
        return self.load(title, "def generated(b, p):")

    def fixed(self, target: str, code: str) -> None:
        self.targets.append(target)
        self.codes += code

    def flush(self) -> None:
        if self.codes == "B":
            self.line(f"{self.targets[0]} = b[p]")
            self.line("p += 1")
        elif self.codes:
            layout = struct.Struct(">" + self.codes)
            name = f"unpack_{_identifier(self.codes)}"
            self.names[name] = layout.unpack_from
            self.line(f"{', '.join(self.targets)}{',' if len(self.targets) == 1 else ''} = {name}(b, p)")
            self.line(f"p += {layout.size}")
        for text in self.after_flush:
            self.line(text)
        self.targets, self.codes, self.after_flush = [], "", []

    def struct(self, cls: type[Message], target: str) -> None:
        self.line(f"{target} = new({self.constant(cls.__name__, cls)})")
        tagged = []
        for spec in cls.__fields__:
            if self.in_version(spec) and not self.is_tagged(spec):
                self.value(spec.type, self.version in spec.nullable, f"{target}.{spec.name}")
            else:
                self.line(f"{target}.{spec.name} = {self.default(spec)}")
                if self.in_version(spec):
                    tagged.append(spec)
        if self.flexible:
            self.tagged_fields(tagged, target)

    def default(self, spec: FieldSpec) -> str:
        if spec.factory is not None:
            return f"{self.constant('make', spec.factory)}()"
        if isinstance(spec.default, bool | int | float | str | bytes | None):
            return repr(spec.default)
        return "[]" if isinstance(spec.default, list) else self.constant("default", spec.default)

    def tagged_fields(self, tagged: list[FieldSpec], target: str) -> None:
        count = self.variable("t")
        self.fixed(count, "B")
        self.flush()
        self.line(f"if {count}:")
        self.depth += 1
        self.line(f"if {count} > 127: {count}, p = read_uvarint(b, p - 1)")
        if tagged:
            self.line(f"for _ in range({count}):")
            self.depth += 1
            stop = self.variable("stop")
            self.line("start = p")
            self.line("tag, p = read_uvarint(b, p)")
            self.line("size, p = read_uvarint(b, p)")
            self.line(f"{stop} = p + size")
            for number, spec in enumerate(tagged):
                self.line(f"{'elif' if number else 'if'} tag == {spec.tag}:")
                self.depth += 1
                self.value(spec.type, self.version in spec.nullable, f"{target}.{spec.name}")
                self.flush()
                self.line(f"if p != {stop}: raise ValueError")
                self.depth -= 1
            self.line("else:")
            self.line("    p = skip_tagged_fields(b, start, 1)")
            self.depth -= 1
        else:
            self.line(f"p = skip_tagged_fields(b, p, {count})")
        self.depth -= 1

    def value(self, wire_type: WireType, nullable: bool, target: str) -> None:
        if isinstance(wire_type, ArrayOf):
            self.array(wire_type.element, nullable, target)
        elif not isinstance(wire_type, Wire):
            self.nested(wire_type, nullable, target)
        elif wire_type.name == "uuid":
            raw = self.variable("u")
            self.fixed(raw, "16s")
            self.after_flush.append(f"{target} = uuid_from({raw})")
        elif wire_type.code:
            self.fixed(target, wire_type.code)
        else:
            length = self.length("h" if wire_type.name == "string" else "i", nullable, target)
            self.line(f"    e = p + {length}")
            self.line("    if e > end: raise ValueError")
            read = {"string": "b[p:e].tobytes().decode()", "bytes": "b[p:e].tobytes()", "records": "b[p:e]"}
            self.line(f"    {target} = {read[wire_type.name]}")
            self.line("    p = e")

    def length(self, code: str, nullable: bool, target: str) -> str:
        """Reads a length or count into `n`, deals with null, and opens the branch of all other values.

        Returns the expression for the length: a compact one is sent increased by one (KIP-482).
        """
        if self.flexible:
            self.fixed("n", "B")
            self.flush()
            self.line("if n > 127: n, p = read_uvarint(b, p - 1)")
        else:
            self.fixed("n", code)
            self.flush()
        self.line(f"if n {'== 0' if self.flexible else '< 0'}:")
        self.line(f"    {f'{target} = None' if nullable else 'raise ValueError'}")
        self.line("else:")
        return "n - 1" if self.flexible else "n"

    def nested(self, cls: type[Message], nullable: bool, target: str) -> None:
        if nullable:
            self.fixed("n", "b")
            self.flush()
            self.line("if n < 0:")
            self.line(f"    {target} = None")
            self.line("else:")
            self.depth += 1
        message = self.variable("m")
        self.struct(cls, message)
        self.flush()
        self.line(f"{target} = {message}")
        if nullable:
            self.depth -= 1

    def array(self, element: WireType, nullable: bool, target: str) -> None:
        count = self.length("i", nullable, target)
        self.depth += 1
        size_bytes = smallest_size_bytes(element, self.version, self.flexible)
        self.line(f"if ({count}) * {size_bytes} > end - p: raise ValueError")
        if isinstance(element, Wire) and element.code and element.name != "uuid":
            self.names[f"layouts_{_identifier(element.code)}"] = _array_layouts(element.code)
            self.line(f"n = {count}")
            self.line(f"{target} = list({_array_layout(element.code)}.unpack_from(b, p))")
            self.line(f"p += n * {size_bytes}")
        else:
            items = self.variable("a")
            self.line(f"{items} = {target} = []")
            self.line(f"for _ in range({count}):")
            self.depth += 1
            if isinstance(element, type):
                message = self.variable("m")
                self.struct(element, message)
                self.flush()
                self.line(f"{items}.append({message})")
            else:
                value = self.variable("v")
                self.value(element, False, value)
                self.flush()
                self.line(f"{items}.append({value})")
            self.depth -= 1
        self.depth -= 1


class _EncoderSource(_Source):
    def __init__(self, version: int, flexible: bool) -> None:
        super().__init__(version, flexible)
        self.arguments: list[str] = []  # the fixed-size values that the next flush writes
        self.codes = ""
        self.write = "w"

    def compile(self, cls: type[Message], title: str) -> Any:
        self.names |= {
            "size_of": size_of,
            "uvarint": uvarint,
            "uvarints": _ONE_BYTE_UVARINTS,
            "tagged_section": tagged_section,
            "Struct": struct.Struct,
        }
        self.line("pass")
        self.struct(cls, "m")
        self.flush()
        return self.load(title, "def generated(m, w, write_records):")

    def fixed(self, argument: str, code: str) -> None:
        self.arguments.append(argument)
        self.codes += code

    def packer(self, codes: str) -> str:
        name = f"pack_{_identifier(codes)}"
        self.names[name] = struct.Struct(">" + codes).pack
        return name

    def flush(self) -> None:
        if self.codes == "x":
            self.line(f"{self.write}(b'\\0')")
        elif self.codes:
            self.line(f"{self.write}({self.packer(self.codes)}({', '.join(self.arguments)}))")
        self.arguments, self.codes = [], ""

    def struct(self, cls: type[Message], source: str) -> None:
        tagged = []
        for spec in cls.__fields__:
            if self.in_version(spec):
                if self.is_tagged(spec):
                    tagged.append(spec)
                else:
                    self.value(spec.type, self.version in spec.nullable, f"{source}.{spec.name}")
        if tagged:
            self.tagged_fields(tagged, source)
        elif self.flexible:
            self.codes += "x"

    def tagged_fields(self, tagged: list[FieldSpec], source: str) -> None:
        self.flush()
        fields = self.variable("tagged")
        self.line(f"{fields} = None")
        for spec in sorted(tagged, key=lambda spec: spec.tag or 0):
            value = f"{source}.{spec.name}"
            self.line(f"if {self.differs(spec, value)}:")
            self.depth += 1
            outer, self.write = self.write, self.variable("w")
            payload = self.variable("payload")
            self.line(f"{payload} = []")
            self.line(f"{self.write} = {payload}.append")
            self.value(spec.type, self.version in spec.nullable, value)
            self.flush()
            self.line(f"if {fields} is None: {fields} = []")
            self.line(f"{fields}.append(({spec.tag}, b''.join({payload})))")
            self.write = outer
            self.depth -= 1
        self.line(f"{self.write}(b'\\0' if {fields} is None else tagged_section({fields}))")

    def differs(self, spec: FieldSpec, value: str) -> str:
        """The condition under which a tagged field is sent."""
        if spec.default is None and spec.factory is None:
            return f"{value} is not None"
        if isinstance(spec.default, list):
            return f"{value} != []"
        if isinstance(spec.default, Message):
            shared = self.constant("default", spec.default)
            return f"{value} is not {shared} and {self.differs_from(spec.default, value, shared)}"
        if isinstance(spec.default, UUID):
            # The comparison of UUIDs is a call of Python; most often it is the default itself.
            shared = self.constant("default", spec.default)
            return f"{value} is not {shared} and {value} != {shared}"
        return f"{value} != {self.constant('default', spec.default)}"

    def differs_from(self, default: Message, value: str, shared: str) -> str:
        """The condition under which a message is another than `default`, told field by field where all of
        them are numbers: every fetch of a follower asks.
        """
        values = {spec.name: getattr(default, spec.name) for spec in default.__fields__}
        if all(isinstance(known, int) for known in values.values()):
            return "(" + " or ".join(f"{value}.{name} != {known!r}" for name, known in values.items()) + ")"
        return f"{value} != {shared}"

    def value(self, wire_type: WireType, nullable: bool, source: str) -> None:
        if isinstance(wire_type, ArrayOf):
            self.array(wire_type.element, nullable, source)
        elif not isinstance(wire_type, Wire):
            self.nested(wire_type, nullable, source)
        elif wire_type.name == "uuid":
            self.fixed(f"{source}.bytes", "16s")
        elif wire_type.code:
            self.fixed(source, wire_type.code)
        else:
            self.bytes_value(wire_type, nullable, source)

    def bytes_value(self, wire_type: Wire, nullable: bool, source: str) -> None:
        self.line(f"s = {source}")
        plus = " + 1" if self.flexible else ""
        size = "size_of(s)" if wire_type.name == "records" else "len(s)"
        if nullable:
            self.line("if s is None:")
            self.line(f"    n = {0 if self.flexible else -1}; s = b''")
            self.line("else:")
            self.depth += 1
        if wire_type.name == "string":
            self.line("s = s.encode()")
        self.line(f"n = {size}{plus}")
        if nullable:
            self.depth -= 1
        self.length("h" if wire_type.name == "string" else "i")
        self.line(f"{'write_records' if wire_type.name == 'records' else self.write}(s)")

    def length(self, code: str) -> None:
        """Writes `n`, which in flexible versions is already one more than the length."""
        if not self.flexible:
            self.fixed("n", code)
            self.flush()
        elif not self.codes:
            self.line(f"{self.write}(uvarints[n] if n < 128 else uvarint(n))")
        else:
            arguments = "".join(argument + ", " for argument in self.arguments)
            self.line(f"if n < 128: {self.write}({self.packer(self.codes + 'B')}({arguments}n))")
            self.line("else:")
            self.depth += 1
            self.flush()
            self.line(f"{self.write}(uvarint(n))")
            self.depth -= 1

    def nested(self, cls: type[Message], nullable: bool, source: str) -> None:
        message = self.variable("m")
        self.line(f"{message} = {source}")
        if nullable:
            self.flush()
            self.line(f"if {message} is None: {self.write}(b'\\xff')")
            self.line("else:")
            self.depth += 1
            self.line(f"{self.write}(b'\\x01')")
        self.struct(cls, message)
        if nullable:
            self.flush()
            self.depth -= 1

    def array(self, element: WireType, nullable: bool, source: str) -> None:
        items = self.variable("a")
        self.line(f"{items} = {source}")
        count = f"len({items})"
        if self.flexible:
            count += " + 1"
        if nullable:
            self.line(f"if {items} is None: n = {0 if self.flexible else -1}; {items} = ()")
            self.line(f"else: n = {count}")
        else:
            self.line(f"n = {count}")
        self.length("i")
        if isinstance(element, Wire) and element.code and element.name != "uuid":
            self.names[f"layouts_{_identifier(element.code)}"] = _array_layouts(element.code)
            self.line(f"n = len({items})")
            self.line(f"if n: {self.write}({_array_layout(element.code)}.pack(*{items}))")
            return
        item = self.variable("m" if isinstance(element, type) else "v")
        self.line(f"for {item} in {items}:")
        self.depth += 1
        if isinstance(element, type):
            self.struct(element, item)
        else:
            self.value(element, False, item)
        self.flush()
        self.depth -= 1
