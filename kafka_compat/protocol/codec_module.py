"""Source generator for a module, compiled by mypyc, that decodes and encodes the messages of one API.

The compiled package contains such a module next to the messages of each API in `codec.HOT_APIS` (decision 9).
Its code is the code that `compiler` generates at the first use of a version, plus the types of variables.
"""

from __future__ import annotations

import re
from importlib import import_module
from struct import Struct
from typing import Any

from kafka_compat.protocol.decoder_source import DecoderSource
from kafka_compat.protocol.encoder_source import EncoderSource
from kafka_compat.protocol.schema import Message, schema_of
from kafka_compat.protocol.source import Source

_MADE = {
    "ProduceRequest": {"decode": 7},
    "ProduceResponse": {"encode": 7},
    "FetchRequest": {"decode": 11, "encode": 13},
    "FetchResponse": {"encode": 11, "decode": 13},
    "ApiVersionsRequest": {"decode": 3},
    "ApiVersionsResponse": {"encode": 0},
}
"""The lowest version of each generated codec. Recent clients and followers use these versions."""

_PARAMETERS = {
    "decode": "(b: memoryview, p: int, left: int) -> tuple[Any, int]",
    "encode": "(m: Any, w: Any, write_records: Any, left: int) -> None",
}
_TYPES = {"a": "list[Any]", "c": "int", "t": "int", "stop": "int", "payload": "list[Any]"}
"""Types of the numbered variables, by the first letters of their names. All other variables are Any. An array
to encode is also Any, because it may be None or any sequence.
"""
_NUMBERED = re.compile(r"\b(a|c|m|payload|stop|t|tagged|u|v|w)(\d+)\b")
_OPENING = '''"""Made by kafka_compat.protocol.codec_module for the compiled form."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from kafka_compat.protocol.buffers import (
    ONE_BYTE_UVARINTS, TooLong, array_layouts, copy_in_steps, read_uvarint,
    size_of, skip_tagged_fields, tagged_section, uuid_from, uvarint,
)
from kafka_compat.protocol.schema import fields_of
from {module} import {classes}

new: Final[Any] = object.__new__
uvarints: Final = ONE_BYTE_UVARINTS
'''


def codec_module(api: str) -> str:
    """Return the source code for the messages of one API. `api` is the name of its module in `messages`."""
    module = import_module(f"kafka_compat.protocol.messages.{api}")
    classes: dict[str, type[Message]] = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__
    }
    constants: dict[str, str] = {}
    functions: list[str] = []
    tables: dict[str, list[str]] = {"decode": [], "encode": []}
    for name, cls in classes.items():
        known: dict[str, str] = {}
        for kind, first_version in _MADE.get(name, {}).items():
            for version in range(first_version, schema_of(cls).versions.high + 1):
                source = _body(kind, cls, version)
                body = _with_constants(source, classes, constants)
                function = known.get(kind + body)
                if function is None:
                    function = known[kind + body] = f"{kind}_{name}_{version}"
                    functions.append(f"def {function}{_PARAMETERS[kind]}:\n{body}")
                tables[kind].append(f"    ({name}, {version}): {function},")
    lines = [_OPENING.format(module=module.__name__, classes=", ".join(classes))]
    lines += [f"{name}: Final[{_type_of(value)}] = {value}" for name, value in constants.items()]
    lines += functions
    for kind, table in (("DECODERS", "decode"), ("ENCODERS", "encode")):
        lines += [f"{kind}: Final[dict[tuple[type, int], Any]] = {{", *tables[table], "}"]
    return "\n".join(lines) + "\n"


def _body(kind: str, cls: type[Message], version: int) -> Source:
    flexible = version in schema_of(cls).flexible
    source = DecoderSource(version, flexible) if kind == "decode" else EncoderSource(version, flexible)
    source.write_function(cls)
    return source


def _with_constants(source: Source, classes: dict[str, type[Message]], constants: dict[str, str]) -> str:
    """Return the source, preceded by declarations of its variables. Add its constants to `constants`."""
    body = "\n".join(source.lines)
    for name, value in source.names.items():
        if not re.search(rf"\b{name}\b", body):
            continue
        expression = _expression(value, classes)
        if expression is None:
            continue
        shared = next((known for known, of in constants.items() if of == expression), None)
        if shared is None:
            shared = f"{name}_of_{len(constants)}"
            constants[shared] = expression
        body = re.sub(rf"\b{name}\b", shared, body)
    numbered = sorted({found.group() for found in _NUMBERED.finditer(body)})
    types = {name: _TYPES.get(name.rstrip("0123456789"), "Any") for name in numbered}
    if isinstance(source, EncoderSource):
        types |= {name: "Any" for name in numbered if name.startswith("a")}
    types |= {"n": "int", "e": "int", "start": "int", "tag": "int", "size": "int", "s": "Any"}
    declared = [f"    {name}: {of}" for name, of in types.items() if re.search(rf"\b{name}\b", body)]
    return "\n".join([*declared, body])


def _type_of(expression: str) -> str:
    """Return a constant's type. For `unpack_from`, it states the tuple's length, which mypyc needs."""
    unpacks = re.fullmatch(r"Struct\('(.*)'\)\.unpack_from", expression)
    if unpacks is None:
        return "Any"
    values = ", ".join(["Any"] * len(re.findall("[a-zA-Z?]", unpacks[1])))
    return f"Callable[[memoryview, int], tuple[{values}]]"


def _expression(value: Any, classes: dict[str, type[Message]]) -> str | None:
    """Return the definition of a constant in the module, or None if the module imports the constant."""
    if isinstance(value, bool | int | float | str | bytes | None):
        return repr(value)
    owner = getattr(value, "__self__", None)
    if isinstance(owner, Struct):
        return f"Struct({owner.format!r}).{value.__name__}"
    if isinstance(value, tuple) and value and isinstance(value[0], Struct):
        code = value[1].format.lstrip(">0123456789")
        return f"array_layouts({code!r})" if len(value) == 16 else None
    for name, cls in classes.items():
        if value is cls:
            return name
        for number, spec in enumerate(cls.__fields__):
            for attribute in ("default", "factory"):
                found: Any = getattr(spec, attribute)
                if found is value:
                    return f"fields_of({name})[{number}].{attribute}"
    return None
