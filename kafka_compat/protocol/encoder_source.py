"""Source generator for the encoder of one version of a message class. See compiler.py."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from kafka_compat.protocol import buffers
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import ArrayOf, FieldSpec, Message, Wire, WireType, schema_of
from kafka_compat.protocol.source import KIB_SHIFT, Source, array_layout, identifier


class EncoderSource(Source):
    def __init__(self, version: int, flexible: bool) -> None:
        super().__init__(version, flexible)
        self.arguments: list[str] = []  # The fixed-size values that the next flush writes.
        self.codes = ""
        self.write = "w"
        self.signature = "m, w, write_records, left"
        self.put_records = ["write_records(s)"]

    def compile(self, cls: type[Message], title: str) -> Any:
        self.names |= {
            "IN_MEMORY": buffers.IN_MEMORY,
            "uvarint": buffers.uvarint,
            "uvarints": buffers.ONE_BYTE_UVARINTS,
            "tagged_section": buffers.tagged_section,
            "Struct": struct.Struct,
            "TooLong": buffers.TooLong,
        }
        self.write_function(cls)
        return self.load(title, f"def generated({self.signature}):")

    def write_function(self, cls: type[Message]) -> None:
        self.line("pass")
        self.struct(cls, "m")
        self.flush()

    def fixed(self, argument: str, code: str) -> None:
        self.arguments.append(argument)
        self.codes += code

    def packer(self, codes: str) -> str:
        name = f"pack_{identifier(codes)}"
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
            self.value(spec.type, self.version in spec.nullable, value, is_tagged=True)
            self.flush()
            self.line(f"if {fields} is None: {fields} = []")
            self.line(f"{fields}.append(({spec.tag}, b''.join({payload})))")
            self.write = outer
            self.depth -= 1
        self.line(f"{self.write}(b'\\0' if {fields} is None else tagged_section({fields}))")

    def differs(self, spec: FieldSpec, value: str) -> str:
        """Return the condition under which a tagged field is sent."""
        if spec.default is None and spec.factory is None:
            return f"{value} is not None"
        if isinstance(spec.default, list):
            return f"{value} != []"
        if isinstance(spec.default, Message):
            shared = self.constant("default", spec.default)
            return f"{value} is not {shared} and {self.differs_from(spec.default, value, shared)}"
        if isinstance(spec.default, UUID):
            # Test for identity first, because comparing UUIDs requires a Python call.
            shared = self.constant("default", spec.default)
            return f"{value} is not {shared} and {value} != {shared}"
        return f"{value} != {self.constant('default', spec.default)}"

    def differs_from(self, default: Message, value: str, shared: str) -> str:
        """Return the condition under which a message differs from `default`. If all fields are numbers, they
        are compared one by one, because the condition is evaluated in every fetch by a follower.
        """
        values = {spec.name: getattr(default, spec.name) for spec in default.__fields__}
        if all(isinstance(known, int) for known in values.values()):
            return "(" + " or ".join(f"{value}.{name} != {known!r}" for name, known in values.items()) + ")"
        return f"{value} != {shared}"

    def value(self, wire_type: WireType, nullable: bool, source: str, *, is_tagged: bool = False) -> None:
        if isinstance(wire_type, ArrayOf):
            self.array(wire_type.element, nullable, source)
        elif not isinstance(wire_type, Wire):
            self.nested(wire_type, nullable, source, is_tagged=is_tagged)
        elif wire_type.name == "uuid":
            self.fixed(f"{source}.bytes", "16s")
        elif wire_type.code:
            self.fixed(source, wire_type.code)
        else:
            self.bytes_value(wire_type, nullable, source)

    def bytes_value(self, wire_type: Wire, nullable: bool, source: str) -> None:
        self.line(f"s = {source}")
        code = "h" if wire_type.name == "string" else "i"
        if nullable:
            arguments, codes = list(self.arguments), self.codes
            self.line("if s is None:")
            self.depth += 1
            if self.flexible:
                self.codes += "x"
            else:
                self.fixed("-1", code)
            self.flush()
            self.arguments, self.codes = arguments, codes
            self.depth -= 1
            self.line("else:")
            self.depth += 1
        if wire_type.name == "string":
            self.line("s = s.encode()")
        size = "len(s)"
        if wire_type.name == "records":
            size = "(len(s) if isinstance(s, IN_MEMORY) else s.size_bytes)"
        self.line(f"n = {size}{' + 1' if self.flexible else ''}")
        if wire_type.name == "bytes":
            self.spend(f"n >> {KIB_SHIFT}")
        self.length(code)
        for statement in self.put_records if wire_type.name == "records" else [f"{self.write}(s)"]:
            self.line(statement)
        if nullable:
            self.depth -= 1

    def length(self, code: str) -> None:
        """Generate code that writes `n`. In flexible versions, `n` is already the length plus one."""
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

    def put_byte(self, value: int) -> str:
        """Return the statement that writes one byte."""
        return f"{self.write}({bytes([value])!r})"

    def nested(self, cls: type[Message], nullable: bool, source: str, *, is_tagged: bool = False) -> None:
        message = self.variable("m")
        self.line(f"{message} = {source}")
        if nullable:
            self.flush()
            self.line(f"if {message} is None: {self.put_byte(0 if is_tagged else 0xFF)}")
            self.line("else:")
            self.depth += 1
            self.line(self.put_byte(1))
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
            self.names[f"layouts_{identifier(element.code)}"] = buffers.array_layouts(element.code)
            self.line(f"n = len({items})")
            self.line(f"if n: {self.write}({array_layout(element.code)}.pack(*{items}))")
            self.spend("n >> 5")
            return
        self.spend(f"len({items})")
        item = self.variable("m" if isinstance(element, type) else "v")
        self.line(f"for {item} in {items}:")
        self.depth += 1
        if isinstance(element, type):
            self.struct(element, item)
        else:
            self.value(element, False, item)
        self.flush()
        self.depth -= 1


class FrameSource(EncoderSource):
    """Source generator for the encoder of a response frame."""

    def write_function(self, cls: type[Message]) -> None:
        self.signature = "m, correlation_id, left"
        self.put_records = [
            f"if isinstance(s, IN_MEMORY) and n <= {buffers.JOINED_RECORDS_BYTES_MAX}: w(s)",
            "else: apart += (b''.join(parts), s); parts.clear(); "
            f"size += len(apart[-2]) + n - {int(self.flexible)}",
        ]
        self.line("parts, apart, size = [], [], 0")
        self.line("w = parts.append")
        # Like `has_flexible_response_header` in `headers`, which this module cannot import.
        has_tags = self.flexible and schema_of(cls).api_key != ApiKey.API_VERSIONS
        self.fixed("correlation_id", "ix" if has_tags else "i")
        self.struct(cls, "m")
        self.flush()
        self.line("rest = b''.join(parts)")
        pack = self.packer("i")
        self.line(f"if not apart: return [{pack}(len(rest)) + rest]")
        self.line(f"apart[0] = {pack}(size + len(rest)) + apart[0]")
        self.line("return [*apart, rest] if rest else apart")
