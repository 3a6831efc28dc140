"""Decode JSON values to Python values for Arrow columns of a JSON Schema or of an SQL schema."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from kafka_compat.decoding.plain import NotSo

_POINTER: Final = re.compile(r"~[01]")


class JsonValues:
    """An Arrow type for JSON values. Fields that the type lacks are ignored; missing fields are null."""

    def __init__(self, type_: Any) -> None:
        self.type = type_
        self._convert = _converter(type_)

    def decode(self, content: bytes) -> Any:
        """Decode a value without its header. Raises NotSo if it is not JSON of the type."""
        try:
            return self._convert(json.loads(content, parse_constant=_refused), "")
        except NotSo:
            raise
        except (ValueError, RecursionError) as error:
            raise NotSo(f"not JSON: {error}") from None


def type_of(text: str) -> Any:
    """Return the Arrow type for a JSON Schema. Parts without one type, such as `oneOf`, become JSON text.
    Raises NotSo if the text is not a JSON Schema.
    """
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotSo(f"not a JSON Schema: {error}") from None
    return _type(schema, schema, ())


def _type(schema: Any, root: Any, within: tuple[str, ...]) -> Any:
    """Return a schema's type. `within` contains the references that lead to the schema."""
    import pyarrow as pa

    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if isinstance(reference, str) and reference not in within:
        return _type(_referenced(reference, root), root, (*within, reference))
    if not isinstance(schema, dict) or reference is not None:
        return pa.string()
    kind = schema.get("type")
    for name in ("oneOf", "anyOf"):
        others = [each for each in schema.get(name, []) if each != {"type": "null"}]
        if kind is None and len(others) == 1:
            return _type(others[0], root, within)
    if isinstance(kind, list):
        kinds = [each for each in kind if each != "null"]
        kind = kinds[0] if len(kinds) == 1 else "number" if set(kinds) == {"integer", "number"} else None
    if kind == "object" or (kind is None and "properties" in schema):
        fields = [(name, _type(each, root, within)) for name, each in schema.get("properties", {}).items()]
        if fields:
            return pa.struct(fields)
        more = schema.get("additionalProperties")
        return pa.map_(pa.string(), _type(more, root, within)) if isinstance(more, dict) else pa.string()
    if kind == "array":
        items = schema.get("items")
        return pa.list_(_type(items, root, within)) if isinstance(items, dict) else pa.string()
    types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    return types.get(kind, pa.string()) if isinstance(kind, str) else pa.string()


def _referenced(reference: str, root: Any) -> Any:
    """Return the part of the schema that a local reference (#/definitions/…) names, or None."""
    if not reference.startswith("#"):
        return None
    found = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = _POINTER.sub(lambda each: "~" if each.group() == "~0" else "/", part)
        found = found.get(name) if isinstance(found, dict) else None
    return found


Convert = Callable[[Any, str], Any]
"""Converts a JSON value; the text is the value's path, for messages. Raises NotSo."""


def _converter(type_: Any) -> Convert:
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return _of_struct({field.name: _converter(field.type) for field in type_})
    if pa.types.is_map(type_):
        return _of_map(_converter(type_.item_type))
    if pa.types.is_list(type_):
        return _of_list(_converter(type_.value_type))
    if pa.types.is_boolean(type_):
        return _of_kind(bool, "true or false")
    if pa.types.is_integer(type_):
        return _integer
    if pa.types.is_floating(type_):
        return _number
    if pa.types.is_decimal(type_):
        return _decimal
    if pa.types.is_timestamp(type_):
        return _timestamp if type_.tz else _local_timestamp
    if pa.types.is_date(type_):
        return _date
    if pa.types.is_binary(type_):
        return lambda value, path: None if value is None else _text(value, path).encode()
    return _text


def _of_struct(converts: Mapping[str, Convert]) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _misfit(path, "an object")
        return {name: one(value.get(name), f"{path}.{name}") for name, one in converts.items()}

    return convert


def _of_map(one: Convert) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _misfit(path, "an object")
        return [(name, one(each, f"{path}.{name}")) for name, each in value.items()]

    return convert


def _of_list(one: Convert) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _misfit(path, "an array")
        return [one(each, path) for each in value]

    return convert


def _of_kind(kind: type, name: str) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if value is not None and not isinstance(value, kind):
            raise _misfit(path, name)
        return value

    return convert


def _integer(value: Any, path: str) -> Any:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    # JSON Schema counts 1.0 as an integer.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise _misfit(path, "an integer")


def _number(value: Any, path: str) -> Any:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return None if value is None else float(value)
    raise _misfit(path, "a number")


def _decimal(value: Any, path: str) -> Any:
    from decimal import Decimal

    return None if value is None else Decimal(str(_number(value, path)))


def _text(value: Any, _: str) -> Any:
    """Keep text, and return everything else as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _timestamp(value: Any, path: str) -> Any:
    found = _local_timestamp(value, path)
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def _local_timestamp(value: Any, path: str) -> Any:
    try:
        return None if value is None else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _misfit(path, "an ISO 8601 time") from None


def _date(value: Any, path: str) -> Any:
    try:
        return None if value is None else date.fromisoformat(value)
    except (TypeError, ValueError):
        raise _misfit(path, "an ISO 8601 date") from None


def _misfit(path: str, wanted: str) -> NotSo:
    return NotSo(f"{path.removeprefix('.') or 'the value'} is not {wanted}")


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")
