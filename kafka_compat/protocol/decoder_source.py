"""Source generator for the decoder of one version of a message class. See compiler.py."""

from __future__ import annotations

import struct
from typing import Any

from kafka_compat.protocol import buffers
from kafka_compat.protocol.interpreter import STRING_BYTES_MAX, smallest_size_bytes
from kafka_compat.protocol.schema import ArrayOf, FieldSpec, Message, Wire, WireType, allocator
from kafka_compat.protocol.source import KIB_SHIFT, NUMBERS_SHIFT, Source, array_layout, identifier


class DecoderSource(Source):
    def __init__(self, version: int, flexible: bool) -> None:
        super().__init__(version, flexible)
        self.targets: list[str] = []  # Targets of the fixed-size values that the next flush reads.
        self.codes = ""
        self.after_flush: list[str] = []

    def compile(self, cls: type[Message], title: str) -> Any:
        self.names |= {
            "new": allocator(cls),
            "uuid_from": buffers.uuid_from,
            "copy_in_steps": buffers.copy_in_steps,
            "numbers_in_steps": buffers.numbers_in_steps,
            "read_uvarint": buffers.read_uvarint,
            "skip_tagged_fields": buffers.skip_tagged_fields,
            "Struct": struct.Struct,
            "TooLong": buffers.TooLong,
        }
        self.write_function(cls)
        return self.load(title, "def generated(b, p, left):")

    def write_function(self, cls: type[Message]) -> None:
        self.line("end = len(b)")
        self.struct(cls, "m")
        self.flush()
        self.line("return m, p")

    def fixed(self, target: str, code: str) -> None:
        self.targets.append(target)
        self.codes += code

    def flush(self) -> None:
        if self.codes == "B":
            self.line(f"{self.targets[0]} = b[p]")
            self.line("p += 1")
        elif self.codes:
            layout = struct.Struct(">" + self.codes)
            name = f"unpack_{identifier(self.codes)}"
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
                self.value(spec.type, self.version in spec.nullable, self.field(target, spec))
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
                self.value(spec.type, self.version in spec.nullable, self.field(target, spec), is_tagged=True)
                self.flush()
                self.line(f"if p != {stop}: raise ValueError")
                self.depth -= 1
            self.line("else:")
            self.line("    p = skip_tagged_fields(b, start, 1)")
            self.depth -= 1
        else:
            self.line(f"p = skip_tagged_fields(b, p, {count})")
        self.depth -= 1

    def value(self, wire_type: WireType, nullable: bool, target: str, *, is_tagged: bool = False) -> None:
        if isinstance(wire_type, ArrayOf):
            self.array(wire_type.element, nullable, target)
        elif not isinstance(wire_type, Wire):
            self.nested(wire_type, nullable, target, is_tagged=is_tagged)
        elif wire_type.name == "uuid":
            raw = self.variable("u")
            self.fixed(raw, "16s")
            self.after_flush.append(f"{target} = uuid_from({raw})")
        elif wire_type.code:
            self.fixed(target, wire_type.code)
        else:
            length = self.length("h" if wire_type.name == "string" else "i", nullable, target, wire_type.name)
            self.line(f"    e = p + {length}")
            self.line("    if e > end: raise ValueError")
            if wire_type.name == "bytes":
                self.depth += 1
                self.spend(f"n >> {KIB_SHIFT}")
                self.depth -= 1
            self.line(f"    {target} = {self.read(wire_type)}")
            self.line("    p = e")

    def field(self, target: str, spec: FieldSpec) -> str:
        """Return the variable for a field of the struct `target`."""
        return f"{target}.{spec.name}"

    def read(self, wire_type: Wire) -> str:
        """Return the expression for a value in `b[p:e]`."""
        if wire_type.name == "string":
            return "str(b[p:e], 'utf-8')"
        if wire_type.name == "records":
            return "b[p:e]"
        return f"bytes(b[p:e]) if n < {buffers.STEP_BYTES} else copy_in_steps(b, p, e)"

    def length(self, code: str, nullable: bool, target: str, kind: str = "") -> str:
        """Generate code that reads a length or count into `n`, handles null, and ends with `else:`. `kind` is
        the type of the value.

        Return the expression for the length. A compact length is sent increased by one (KIP-482).
        """
        if self.flexible:
            self.fixed("n", "B")
            self.flush()
            if kind == "records":
                # Most lengths of records take two bytes.
                self.line("if n > 127:")
                self.line("    if b[p] < 128: n += (b[p] << 7) - 128; p += 1")
                self.line("    else: n, p = read_uvarint(b, p - 1)")
            else:
                self.line("if n > 127:")
                self.line("    n, p = read_uvarint(b, p - 1)")
                if kind == "string":
                    self.line(f"    if n > {STRING_BYTES_MAX + 1}: raise ValueError")
        else:
            self.fixed("n", code)
            self.flush()
        self.line(f"if n {'== 0' if self.flexible else '< 0'}:")
        self.line(f"    {f'{target} = None' if nullable else 'raise ValueError'}")
        self.line("else:")
        return "n - 1" if self.flexible else "n"

    def nested(self, cls: type[Message], nullable: bool, target: str, *, is_tagged: bool = False) -> None:
        """Generate code that reads a struct. Before a struct that may be null, there is a byte: 1, or -1 for
        null, but 0 for null in a tagged field.
        """
        if nullable:
            self.fixed("n", "b")
            self.flush()
            self.line("if n < 1:" if is_tagged else "if n < 0:")
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
            self.names[f"layouts_{identifier(element.code)}"] = buffers.array_layouts(element.code)
            self.line(f"n = {count}")
            self.spend(f"n >> {NUMBERS_SHIFT}")
            few = f"list({array_layout(element.code)}.unpack_from(b, p))"
            many = f"numbers_in_steps({element.code!r}, b, p, n)"
            self.line(f"{target} = {few} if n <= {buffers.NUMBERS_AT_ONCE} else {many}")
            self.line(f"p += n * {size_bytes}")
        else:
            # Use a separate variable, because mypyc evaluates the bound of a range in every iteration.
            bound = self.variable("c")
            self.line(f"{bound} = {count}")
            self.spend(bound)
            items = self.variable("a")
            self.line(f"{items} = {target} = []")
            self.line(f"for _ in range({bound}):")
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
