"""Source generator for a module, compiled by mypyc, with the messages of one API as native classes.

In the compiled package, such a module replaces the module of the API's messages, for the APIs in
`codec.HOT_APIS` (decision 30). Its classes have the same names, fields and defaults, and store their fields
in C variables. It also contains their codecs for recent versions, which read from bytes and write to a
BytesWriter without creating intermediate objects. The original module remains as `NAME_schema`.
"""

from __future__ import annotations

import re
from importlib import import_module

from kafka_compat.protocol.decoder_source import DecoderSource
from kafka_compat.protocol.encoder_source import EncoderSource
from kafka_compat.protocol.headers import has_flexible_response_header
from kafka_compat.protocol.interpreter import smallest_size_bytes
from kafka_compat.protocol.schema import ArrayOf, FieldSpec, Message, Wire, WireType, schema_of
from kafka_compat.protocol.source import NUMBERS_SHIFT

_CODECS = {
    "ProduceRequest": {"decode": 7},
    "ProduceResponse": {"frame": 7},
    "FetchRequest": {"decode": 11, "encode": 13},
    "FetchResponse": {"frame": 11, "decode": 13},
    "MetadataRequest": {"decode": 4},
    "MetadataResponse": {"frame": 4},
    "ApiVersionsRequest": {"decode": 0},
    "ApiVersionsResponse": {"frame": 0},
}
"""The lowest version of each generated codec. Recent clients and followers use these versions. A "frame"
encodes a whole response frame, with its size and header, as a list of parts.
"""

_READ = {"h": ("read_i16_be", 2), "i": ("read_i32_be", 4), "q": ("read_i64_be", 8)}
_WRITE = {"b": "write_i8", "h": "write_i16_be", "i": "write_i32_be", "q": "write_i64_be"}
_OPENING = '''\
"""Made by kafka_compat.protocol.native_module for the compiled form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from librt.strings import (
    BytesWriter, read_i16_be, read_i32_be, read_i64_be, write_i16_be, write_i32_be, write_i64_be,
)

from kafka_compat.protocol.buffers import (
    TooLong, read_uvarint, size_of, skip_tagged_fields, tagged_section, uuid_from,
)
from kafka_compat.protocol.messages import {api}_schema as schemas
from kafka_compat.protocol.native import (
    Frame, NativeMessage, describe, write_i8, write_string, write_uvarint,
)
{constants}
if TYPE_CHECKING:
    from mypy_extensions import i32, i64
ABSENT: Final[Any] = object()
'''


def native_module(api: str) -> str:
    """Return the source code for the messages of one API. `api` is the name of its module in `messages`."""
    module = import_module(f"kafka_compat.protocol.messages.{api}")
    classes: list[type[Message]] = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__
    ]
    lines: list[str] = []
    for cls in classes:
        lines += _class_source(cls)
    tables: dict[str, list[str]] = {"decode": [], "encode": [], "frame": []}
    for cls in classes:
        known: dict[str, str] = {}
        for kind, first_version in _CODECS.get(cls.__name__, {}).items():
            for version in range(first_version, schema_of(cls).versions.high + 1):
                flexible = version in schema_of(cls).flexible
                source = _SOURCES[kind](version, flexible)
                source.write_function(cls)
                body = "\n".join(source.lines)
                name = known.get(kind + body)
                if name is None:
                    name = known[kind + body] = f"{kind}_{cls.__name__}_{version}"
                    lines += [source.heading(name, cls), body]
                tables[kind].append(f"    ({cls.__name__}, {version}): {name},")
    for kind, table in tables.items():
        lines += [f"{kind.upper()}RS: Final[dict[tuple[type, int], Any]] = {{", *table, "}"]
    names = ", ".join(cls.__name__ for cls in classes)
    lines.append(f"describe(schemas, [{names}])")
    body = "\n".join(lines) + "\n"
    constants = "from kafka_compat.protocol.zero_uuid import ZERO_UUID\n" if "ZERO_UUID" in body else ""
    return _OPENING.format(api=api, constants=constants) + body


def _class_source(cls: type[Message]) -> list[str]:
    """Return the definition of a native class, and of its shared instance if it is a default."""
    parameters, body = [], []
    for spec in cls.__fields__:
        of, default, value = _type_of(spec), _default(spec), spec.name
        if default is None:
            # The default is a new object for each message.
            of, default = "Any", "ABSENT"
            new = "[]" if spec.factory is None else f"{_class_name(spec.type)}()"
            value = f"{new} if {spec.name} is ABSENT else {spec.name}"
        parameters.append(f"{spec.name}: {of} = {default}")
        body.append(f"        self.{spec.name}: {_type_of(spec)} = {value}")
    star = "*, " if parameters else ""
    return [
        f"class {cls.__name__}(NativeMessage):",
        f"    def __init__(self, {star}{', '.join(parameters)}) -> None:",
        *(body or ["        pass"]),
        f"shared_{cls.__name__}: Final = {cls.__name__}()",
    ]


def _type_of(spec: FieldSpec) -> str:
    of = spec.type
    if isinstance(of, ArrayOf):
        name = f"list[{_value_type(of.element)}]"
    else:
        name = _value_type(of)
    return f"{name} | None" if (spec.nullable.low <= spec.nullable.high and name != "Any") else name


def _value_type(of: WireType) -> str:
    if not isinstance(of, Wire):
        return _class_name(of)
    named = {"bool": "bool", "float64": "float", "string": "str", "uuid": "Any"}
    return named.get(of.name, "int" if of.code else "Any")


def _class_name(of: WireType) -> str:
    assert isinstance(of, type)
    return of.__name__


def _default(spec: FieldSpec) -> str | None:
    """Return the source of a default value, or None if it is a new object for each message."""
    if spec.factory is not None or isinstance(spec.default, list):
        return None
    if isinstance(spec.default, Message):
        return f"shared_{_class_name(spec.type)}"
    if isinstance(spec.default, bool | int | float | str | bytes | None):
        return repr(spec.default)
    return "ZERO_UUID"


class _NativeDecoder(DecoderSource):
    """Reads each value from the bytes `b`."""

    def heading(self, name: str, cls: type[Message]) -> str:
        return f"def {name}(b: bytes, position: int, limit: int) -> tuple[{cls.__name__}, int]:"

    def write_function(self, cls: type[Message]) -> None:
        for text in ("p: i64 = position", "left: i64 = limit", "end: i64 = len(b)"):
            self.line(text)
        for name in ("n", "e", "start", "tag", "size"):
            self.line(f"{name}: i64 = 0")
        self.struct(cls, "m")
        self.line("return m, p")

    def flush(self) -> None:
        for target, code in zip(self.targets, _codes(self.codes), strict=True):
            if code == "16s":
                self.line("if p + 16 > end: raise IndexError")
                self.line(f"{target} = b[p : p + 16]")
                self.line("p += 16")
            elif code in _READ:
                function, size_bytes = _READ[code]
                self.line(f"{target} = {'i64' if target == 'n' else 'int'}({function}(b, p))")
                self.line(f"p += {size_bytes}")
            else:
                value = {"?": "b[p] != 0", "b": "(b[p] ^ 128) - 128", "B": "b[p]"}[code]
                self.line(f"{target} = {value}")
                self.line("p += 1")
        for text in self.after_flush:
            self.line(text)
        self.targets, self.codes, self.after_flush = [], "", []

    def struct(self, cls: type[Message], target: str) -> None:
        tagged = []
        for spec in cls.__fields__:
            name = self.field(target, spec)
            if self.in_version(spec) and not self.is_tagged(spec):
                if not isinstance(spec.type, Wire) or not spec.type.code:
                    self.line(f"{name}: {_type_of(spec)}")
                self.value(spec.type, self.version in spec.nullable, name)
            else:
                absent = _default(spec) or ("[]" if spec.factory is None else f"{_class_name(spec.type)}()")
                self.line(f"{name}: {_type_of(spec)} = {absent}")
                if self.in_version(spec):
                    tagged.append(spec)
        if self.flexible:
            self.tagged_fields(tagged, target)
        self.flush()
        values = ", ".join(f"{spec.name}={self.field(target, spec)}" for spec in cls.__fields__)
        self.line(f"{target} = {cls.__name__}({values})")

    def field(self, target: str, spec: FieldSpec) -> str:
        return f"{target}_{spec.name}"

    def read(self, wire_type: Wire) -> str:
        return {"string": "b[p:e].decode()", "bytes": "b[p:e]", "records": "b[p:e]"}[wire_type.name]

    def array(self, element: WireType, nullable: bool, target: str) -> None:
        count = self.length("i", nullable, target)
        self.depth += 1
        size_bytes = smallest_size_bytes(element, self.version, self.flexible)
        bound, items = self.variable("c"), self.variable("a")
        self.line(f"{bound} = {count}")
        self.line(f"if {bound} * {size_bytes} > end - p: raise ValueError")
        is_number = isinstance(element, Wire) and element.code and element.name != "uuid"
        self.spend(f"{bound} >> {NUMBERS_SHIFT}" if is_number else bound)
        self.line(f"{items}: list[{_value_type(element)}] = []")
        self.line(f"{target} = {items}")
        self.line(f"for _ in range({bound}):")
        self.depth += 1
        value = self.variable("m" if isinstance(element, type) else "v")
        if isinstance(element, type):
            self.struct(element, value)
        else:
            self.value(element, False, value)
            self.flush()
        self.line(f"{items}.append({value})")
        self.depth -= 2


class _NativeEncoder(EncoderSource):
    """Writes each value to a BytesWriter, `out` or, for tagged fields, another one."""

    def heading(self, name: str, cls: type[Message]) -> str:
        return f"def {name}(m: {cls.__name__}, w: Any, write_apart: Any, limit: int) -> None:"

    def write_function(self, cls: type[Message]) -> None:
        self.write = "out"
        for text in ("out = BytesWriter()", "n: i64 = 0", "left: i64 = limit"):
            self.line(text)
        self.struct(cls, "m")
        self.flush()
        self.line("w(out.getvalue())")

    def flush(self) -> None:
        arguments = iter(self.arguments)
        for code in _codes(self.codes):
            if code == "x":
                self.line(f"{self.write}.append(0)")
                continue
            value = next(arguments)
            if code == "16s":
                self.line(f"{self.write}.write({value})")
            elif code == "?":
                self.line(f"{self.write}.append(1 if {value} else 0)")
            else:
                self.line(f"{_WRITE[code]}({self.write}, {value})")
        self.arguments, self.codes = [], ""

    def length(self, code: str) -> None:
        self.flush()
        write = "write_uvarint({}, n)" if self.flexible else "write_i32_be({}, i32(n))"
        self.line(write.format(self.write))

    def bytes_value(self, wire_type: Wire, nullable: bool, source: str) -> None:
        self.flush()
        value = self.variable("s")
        self.line(f"{value} = {source}")
        self.line(f"if {value} is None:")
        if nullable:
            null = b"\0" if self.flexible else b"\xff" * (2 if wire_type.name == "string" else 4)
            self.line(f"    {self.write}.write({null!r})")
            self.line("else:")
            self.depth += 1
        else:
            self.line("    raise ValueError")
        if wire_type.name == "string" and not self.flexible:
            self.line(f"write_string({self.write}, {value}.encode())")
        else:
            encoded = value
            if wire_type.name == "string":
                encoded = self.variable("e")
                self.line(f"{encoded} = {value}.encode()")
            size = f"size_of({value})" if wire_type.name == "records" else f"len({encoded})"
            self.line(f"n = {size}{' + 1' if self.flexible else ''}")
            self.length("i")
            if wire_type.name == "records":
                self.line(f"{self.write} = {self.write_records(value)}")
            else:
                self.line(f"{self.write}.write({encoded})")
        if nullable:
            self.depth -= 1

    def write_records(self, value: str) -> str:
        """Return the expression that writes `n` bytes of records and returns the writer for later fields."""
        raise NotImplementedError("no message of this kind has records")

    def tagged_fields(self, tagged: list[FieldSpec], source: str) -> None:
        self.flush()
        fields = self.variable("tagged")
        self.line(f"{fields}: list[tuple[int, bytes]] | None = None")
        for spec in sorted(tagged, key=lambda spec: spec.tag or 0):
            value = f"{source}.{spec.name}"
            self.line(f"if {self.differs(spec, value)}:")
            self.depth += 1
            outer, self.write = self.write, self.variable("w")
            self.line(f"{self.write} = BytesWriter()")
            self.value(spec.type, self.version in spec.nullable, value)
            self.flush()
            self.line(f"if {fields} is None: {fields} = []")
            self.line(f"{fields}.append(({spec.tag}, {self.write}.getvalue()))")
            self.write = outer
            self.depth -= 1
        self.line(f"if {fields} is None: {self.write}.append(0)")
        self.line(f"else: {self.write}.write(tagged_section({fields}))")

    def differs(self, spec: FieldSpec, value: str) -> str:
        default = _default(spec)
        if default is None:
            return f"len({value}) > 0"
        if isinstance(spec.default, Message):
            return f"{value} is not {default} and {self.differs_from(spec.default, value, default)}"
        return f"{value} is not None" if default == "None" else f"{value} != {default}"

    def put_byte(self, value: int) -> str:
        return f"{self.write}.append({value})"

    def array(self, element: WireType, nullable: bool, source: str) -> None:
        self.flush()
        items = self.variable("a")
        self.line(f"{items} = {source}")
        self.line(f"if {items} is None:")
        if not nullable:
            self.line("    raise ValueError")
        else:
            self.depth += 1
            self.line(f"n = {0 if self.flexible else -1}")
            self.length("i")
            self.depth -= 1
            self.line("else:")
            self.depth += 1
        self.line(f"n = len({items})")
        is_number = isinstance(element, Wire) and element.code and element.name != "uuid"
        self.spend("n >> 5" if is_number else "n")
        if self.flexible:
            self.line("n += 1")
        self.length("i")
        item = self.variable("m" if isinstance(element, type) else "v")
        self.line(f"for {item} in {items}:")
        self.depth += 1
        if isinstance(element, type):
            self.struct(element, item)
        else:
            self.value(element, False, item)
        self.flush()
        self.depth -= 2 if nullable else 1


class _NativeFrame(_NativeEncoder):
    """Writes a response frame."""

    def heading(self, name: str, cls: type[Message]) -> str:
        return f"def {name}(m: {cls.__name__}, correlation_id: int, limit: int) -> list[Any]:"

    def write_function(self, cls: type[Message]) -> None:
        self.write = "out"
        has_tags = has_flexible_response_header(schema_of(cls).api_key or 0, self.version)
        for text in (
            f"frame = Frame(correlation_id, {has_tags})",
            "out = frame.out",
            "n: i64 = 0",
            "left: i64 = limit",
        ):
            self.line(text)
        self.struct(cls, "m")
        self.flush()
        self.line("return frame.parts(out)")

    def write_records(self, value: str) -> str:
        size = "n - 1" if self.flexible else "n"
        return f"frame.write_records({self.write}, {value}, {size})"


_SOURCES: dict[str, type[_NativeDecoder | _NativeEncoder]] = {
    "decode": _NativeDecoder,
    "encode": _NativeEncoder,
    "frame": _NativeFrame,
}


def _codes(codes: str) -> list[str]:
    return re.findall(r"\d*[a-zA-Z?]", codes)
