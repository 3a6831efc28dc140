"""Decode Avro values with the fastavro package. No I/O, except to import the package."""

import io
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, Final

from kafka_compat.decoding.plain import NotSo

_WRAPPER: Final = "kafka_compat.Wrapper"
VALUE: Final = "value"
"""Field of the record in which each schema is wrapped, because only records accept references to named
schemas. The record adds no bytes.
"""
_PRIMITIVE_BYTES: Final = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
    "enum": 1,
    "array": 1,
    "map": 1,
}
"""Minimum size in bytes of a value of each type."""


def parsed(text: str, references: Sequence[str] = ()) -> tuple[Any, dict[str, Any]]:
    """Parse a schema as the field VALUE of a record, and return the record and all named schemas.

    `references` contains the referenced schemas, dependencies first. Raises NotSo if the schema is invalid or
    has arrays of zero-byte items, which could be huge.
    """
    try:
        from fastavro.schema import parse_schema
    except ImportError:
        raise NotSo("Avro requires the package fastavro: install kafka-compat[schemas]") from None
    named: dict[str, Any] = {}
    try:
        for each in references:
            parse_schema(json.loads(each), named_schemas=named)
        fields = [{"name": VALUE, "type": json.loads(text)}]
        schema = parse_schema({"type": "record", "name": _WRAPPER, "fields": fields}, named_schemas=named)
    except Exception as error:
        raise NotSo(f"not an Avro schema: {type(error).__name__}: {error}") from None
    _check_items(schema, named)
    return schema, named


class AvroSchema:
    """An Avro schema that decodes the values written with it."""

    kind = "avro"

    def __init__(self, text: str, references: Sequence[str] = ()) -> None:
        """Parse a schema. Raises NotSo like `parsed`."""
        self._schema, _ = parsed(text, references)

    def read(self, content: bytes) -> str:
        """Decode a value to JSON, with bytes as in Avro's JSON (one character for each byte). Raises NotSo if
        the value does not match the schema.
        """
        # Do not use the compiled reader: deep nesting in hostile bytes would overflow its stack and crash the
        # process. Python's recursion limit stops this reader.
        from fastavro import _read_py as reader

        stream = io.BytesIO(content)
        try:
            record: Any = reader.schemaless_reader(stream, self._schema)
            shown = json.dumps(record[VALUE], indent=2, ensure_ascii=False, default=shown_value)
        except Exception as error:
            raise NotSo(f"does not match its Avro schema: {type(error).__name__}: {error}") from None
        rest = len(content) - stream.tell()
        if rest:
            raise NotSo(f"{rest} bytes after the value of its Avro schema")
        return shown


def shown_value(value: Any) -> Any:
    """Return a JSON-compatible form of a value that JSON does not have, such as bytes or a time."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def _check_items(schema: Any, named: Mapping[str, Any]) -> None:
    """Raise NotSo for arrays of zero-byte items, because a few bytes could declare 2^60 items."""
    seen: set[str] = set()

    def least_bytes(each: Any, within: tuple[str, ...]) -> int:
        if isinstance(each, list):
            return 1
        kind = each["type"] if isinstance(each, dict) else each
        if not isinstance(kind, str):
            return least_bytes(kind, within)
        if kind in _PRIMITIVE_BYTES:
            return _PRIMITIVE_BYTES[kind]
        if kind == "fixed":
            return int(each["size"])
        if kind in ("record", "error"):
            fields: list[Any] = each["fields"]
            return sum(least_bytes(field["type"], within) for field in fields)
        return 1 if kind in within else least_bytes(named[kind], (*within, kind))

    def check(each: Any) -> None:
        if isinstance(each, list):
            for one in each:
                check(one)
        elif isinstance(each, str):
            if each in named and each not in seen:
                seen.add(each)
                check(named[each])
        elif not isinstance(each["type"], str):
            check(each["type"])
        elif each["type"] == "array":
            if least_bytes(each["items"], ()) == 0:
                raise NotSo("its Avro schema has an array of zero-byte items, which could be endless")
            check(each["items"])
        elif each["type"] == "map":
            check(each["values"])
        elif each["type"] in ("record", "error"):
            for field in each["fields"]:
                check(field["type"])

    check(schema)
