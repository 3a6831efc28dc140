"""Decode Protobuf values to Python values for Arrow columns of one message of the newest schema."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka_compat.decoding.plain import NotSo
from kafka_compat.decoding.protobuf import ProtobufSchema
from kafka_compat.decoding.wire_format import message_indexes
from kafka_compat.pipelines.decode.avro_values import Column, Decode

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


class ProtobufValues:
    """A message of the newest schema. It reads values of all versions of that message."""

    def __init__(
        self, serialized: str, references: Mapping[str, str] | None = None, message: str | None = None
    ) -> None:
        """Parse the schema; `message` is by default the first message of the file. Raises NotSo."""
        schema = ProtobufSchema(serialized, references)
        from google.protobuf import message_factory

        self._descriptor = schema.message_named(message)
        self._class = message_factory.GetMessageClass(self._descriptor)
        self._column = _message(self._descriptor, ())

    @property
    def type(self) -> Any:
        """The column's Arrow type."""
        return self._column.type

    def decoder(self, serialized: str, references: Mapping[str, str] | None = None) -> Decode:
        """Return a function that decodes values written with a schema. Raises NotSo if it is invalid."""
        schema = ProtobufSchema(serialized, references)
        wanted, convert = self._descriptor.full_name, self._column.convert
        allowed: dict[tuple[int, ...], bool] = {}

        def decode(content: bytes) -> Any:
            indexes, content = message_indexes(content)
            path = tuple(indexes)
            if path not in allowed:
                found = schema.message_at(path).full_name
                if found != wanted:
                    raise NotSo(f"is a {found}, but the column has values of {wanted}")
                allowed[path] = True
            try:
                message = self._class.FromString(content)
                return message if convert is None else convert(message)
            except Exception as error:
                raise NotSo(f"no {wanted}: {type(error).__name__}: {error}") from None

        return decode


def _message(descriptor: Any, within: tuple[str, ...]) -> Column:
    """Return the column of a message. `within` contains the names of the enclosing messages."""
    import pyarrow as pa

    name = descriptor.full_name
    if name == _TIMESTAMP:
        return Column(pa.timestamp("us", "UTC"), lambda each: each.seconds * 1_000_000 + each.nanos // 1000)
    if name in _WRAPPERS:
        inner = _single(descriptor.fields_by_name["value"], within)
        convert = inner.convert
        return Column(inner.type, lambda each: each.value if convert is None else convert(each.value))
    if name in within or not descriptor.fields or name == "google.protobuf.Struct":
        return Column(pa.string(), _as_json)
    readers = [(field.name, _field(field, (*within, name))) for field in descriptor.fields]
    types = [(name, type_) for name, (type_, _) in readers]
    reads = [(name, read) for name, (_, read) in readers]
    return Column(pa.struct(types), lambda each: {name: read(each) for name, read in reads})


def _as_json(message: Any) -> str:
    from google.protobuf import json_format

    shown = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return json.dumps(shown, ensure_ascii=False)


def _field(field: Any, within: tuple[str, ...]) -> tuple[Any, Callable[[Any], Any]]:
    """Return the type of a field, and a function that reads it from a message."""
    import pyarrow as pa

    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key = _single(field.message_type.fields_by_name["key"], within)
        of_value = field.message_type.fields_by_name["value"]
        value = _single(of_value, within)
        convert = value.convert
        # A map with message values must be read by key: iteration over items would copy them.
        return pa.map_(key.type, value.type), lambda message: [
            (each, item if convert is None else convert(item))
            for each, item in getattr(message, name).items()
        ]
    one = _single(field, within)
    convert = one.convert
    if _is_repeated(field):
        if convert is None:
            return pa.list_(one.type), lambda message: list(getattr(message, name))
        return pa.list_(one.type), lambda message: [convert(each) for each in getattr(message, name)]
    if field.has_presence:

        def read(message: Any) -> Any:
            if not message.HasField(name):
                return None
            value = getattr(message, name)
            return value if convert is None else convert(value)

        return one.type, read
    if convert is None:
        return one.type, lambda message: getattr(message, name)
    return one.type, lambda message: convert(getattr(message, name))


def _is_repeated(field: Any) -> bool:
    # Older releases of protobuf have no `is_repeated`, newer ones no `label`.
    found = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if found is None else found)


def _single(field: Any, within: tuple[str, ...]) -> Column:
    """Return the column of one value of a field, which may be repeated."""
    import pyarrow as pa

    kind = field.cpp_type
    if kind == field.CPPTYPE_MESSAGE:
        return _message(field.message_type, within)
    if kind == field.CPPTYPE_ENUM:
        names = field.enum_type.values_by_number

        def name_of(number: int) -> str:
            return names[number].name if number in names else str(number)

        return Column(pa.string(), name_of)
    if kind == field.CPPTYPE_STRING:
        return Column(pa.binary() if field.type == field.TYPE_BYTES else pa.string())
    types = {
        field.CPPTYPE_INT32: pa.int32(),
        field.CPPTYPE_INT64: pa.int64(),
        field.CPPTYPE_UINT32: pa.int64(),
        field.CPPTYPE_UINT64: pa.decimal128(20, 0),
        field.CPPTYPE_DOUBLE: pa.float64(),
        field.CPPTYPE_FLOAT: pa.float32(),
        field.CPPTYPE_BOOL: pa.bool_(),
    }
    return Column(types[kind], _decimal if kind == field.CPPTYPE_UINT64 else None)


def _decimal(value: int) -> Any:
    from decimal import Decimal

    return Decimal(value)
