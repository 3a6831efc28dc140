"""Decode Avro values to Python values for Arrow columns of the newest schema, by Avro's schema resolution."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka_compat.decoding.avro import VALUE, parsed, shown_value
from kafka_compat.decoding.plain import NotSo

Decode = Callable[[bytes], Any]
"""Decodes a value without its header. Raises NotSo if the value does not match its schema."""

_MILLIS: Final = ("timestamp-millis", "local-timestamp-millis")
_MICROS: Final = ("timestamp-micros", "local-timestamp-micros")
_READ_AS_NUMBERS: Final = frozenset(
    (
        *_MILLIS,
        *_MICROS,
        "date",
        "time-millis",
        "time-micros",
        "timestamp-nanos",
        "local-timestamp-nanos",
        "uuid",
    )
)
"""Logical types that are not passed to fastavro: Arrow takes the numbers, so that no Python objects are
needed, and times beyond the year 9999 are possible.
"""
_DECIMAL_DIGITS_MAX: Final = 38


class Column(NamedTuple):
    """An Arrow type, and the conversion that its values need (None: no conversion)."""

    type: Any
    convert: Callable[[Any], Any] | None = None


class AvroValues:
    """The newest schema of a column. It reads values of all compatible schemas."""

    def __init__(self, text: str, references: Sequence[str] = ()) -> None:
        """Parse the schema. Raises NotSo if it is invalid."""
        schema, named = parsed(text, references)
        self._text, self._references = text, list(references)
        self._column = _column(schema["fields"][0]["type"], named, ())
        self._schema, _ = _parsed_for_reading(text, references)
        self._recursive = _is_recursive(schema, named)

    @property
    def type(self) -> Any:
        """The column's Arrow type."""
        return self._column.type

    def decoder(self, text: str, references: Sequence[str] = ()) -> Decode:
        """Return a function that decodes values written with a schema. Raises NotSo if it is invalid."""
        if (text, [*references]) == (self._text, self._references):
            schema, reader, recursive = self._schema, None, self._recursive
        else:
            schema, named = _parsed_for_reading(text, references)
            reader, recursive = self._schema, _is_recursive(schema, named)
        # The compiled reader recurses on the C stack, where nested values of a recursive schema would crash
        # the process. Without recursion, the schema limits the depth.
        if recursive:
            from fastavro._read_py import schemaless_reader as read
        else:
            from fastavro import schemaless_reader as read
        convert = self._column.convert

        def decode(content: bytes) -> Any:
            stream = io.BytesIO(content)
            try:
                record: Any = read(stream, schema, reader)
                value = record[VALUE]
                value = value if convert is None or value is None else convert(value)
            except Exception as error:
                # A KeyError and the like have only the value as text.
                raise NotSo(f"does not match its Avro schema: {type(error).__name__}: {error}") from None
            rest = len(content) - stream.tell()
            if rest:
                raise NotSo(f"{rest} bytes after the value of its Avro schema")
            return value

        return decode


def _parsed_for_reading(text: str, references: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    return parsed(_without_times(text), [_without_times(each) for each in references])


def _without_times(text: str) -> str:
    """Remove the logical types that are read as numbers from a schema."""

    def strip(each: Any) -> Any:
        if isinstance(each, list):
            return [strip(one) for one in each]
        if not isinstance(each, dict):
            return each
        dropped = each.get("logicalType") in _READ_AS_NUMBERS
        return {
            name: one if name == "default" else strip(one)
            for name, one in each.items()
            if not (dropped and name == "logicalType")
        }

    try:
        return json.dumps(strip(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise NotSo(f"not an Avro schema: {error}") from None


def _column(schema: Any, named: Mapping[str, Any], within: tuple[str, ...]) -> Column:
    """Return the column of a parsed schema. `within` contains the names of the enclosing records."""
    import pyarrow as pa

    if isinstance(schema, list):
        return _union([each for each in schema if each != "null"], named, within)
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    kind = schema["type"] if isinstance(schema, dict) else schema
    if not isinstance(kind, str) or kind in named:
        return _column(kind, named, within)
    if kind in ("record", "error"):
        if schema["name"] in within or not schema["fields"]:
            return _as_json()
        inner = (*within, schema["name"])
        columns = {field["name"]: _column(field["type"], named, inner) for field in schema["fields"]}
        converts = [(name, one.convert) for name, one in columns.items() if one.convert is not None]
        fields = [(name, one.type) for name, one in columns.items()]
        return Column(pa.struct(fields), _in_record(converts) if converts else None)
    if kind == "array":
        item = _column(schema["items"], named, within)
        return Column(pa.list_(item.type), None if item.convert is None else _in_list(item.convert))
    if kind == "map":
        item = _column(schema["values"], named, within)
        return Column(pa.map_(pa.string(), item.type), _in_map(item.convert))
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    return _logical(kind, logical, schema) or Column(_plain_type(kind))


def _plain_type(kind: str) -> Any:
    import pyarrow as pa

    types = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "fixed": pa.binary(),
    }
    return types.get(kind, pa.string())


def _logical(kind: str, logical: str | None, schema: Any) -> Column | None:
    import pyarrow as pa

    if logical in _MILLIS + _MICROS and kind == "long":
        type_ = pa.timestamp("us", None if logical.startswith("local") else "UTC")
        return Column(type_, _micros if logical in _MILLIS else None)
    if logical == "date" and kind == "int":
        return Column(pa.date32())
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = int(schema["precision"]), int(schema.get("scale", 0))
        if precision <= _DECIMAL_DIGITS_MAX:
            return Column(pa.decimal128(precision, scale))
        return Column(pa.string(), str)
    return None


def _micros(millis: int) -> int:
    return millis * 1000


def _union(others: list[Any], named: Mapping[str, Any], within: tuple[str, ...]) -> Column:
    import pyarrow as pa

    if len(others) == 1:
        return _column(others[0], named, within)
    if not others:
        return Column(pa.string())
    if all(isinstance(each, str) for each in others):
        kinds = set(others)
        if kinds == {"int", "long"}:
            return Column(pa.int64())
        if kinds == {"float", "double"}:
            return Column(pa.float64())
    return _as_json()


def _as_json() -> Column:
    import pyarrow as pa

    return Column(pa.string(), lambda value: json.dumps(value, ensure_ascii=False, default=shown_value))


def _in_record(converts: list[tuple[str, Callable[[Any], Any]]]) -> Callable[[Any], Any]:
    def convert(record: Any) -> Any:
        for name, one in converts:
            if record[name] is not None:
                record[name] = one(record[name])
        return record

    return convert


def _in_list(one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda items: [None if item is None else one(item) for item in items]


def _in_map(one: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if one is None:
        return lambda entries: list(entries.items())
    return lambda entries: [(key, None if item is None else one(item)) for key, item in entries.items()]


def _is_recursive(schema: Any, named: Mapping[str, Any]) -> bool:
    def walk(each: Any, within: tuple[str, ...]) -> bool:
        if isinstance(each, list):
            return any(walk(one, within) for one in each)
        if isinstance(each, str):
            if each in within:
                return True
            return each in named and walk(named[each], within)
        kind = each["type"]
        if kind == "array":
            return walk(each["items"], within)
        if kind == "map":
            return walk(each["values"], within)
        if kind in ("record", "error"):
            if each["name"] in within:
                return True
            return any(walk(field["type"], (*within, each["name"])) for field in each["fields"])
        return False if isinstance(kind, str) and kind not in named else walk(kind, within)

    return walk(schema, ())
