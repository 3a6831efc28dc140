"""Values in the format of schema registries, and schemas for them."""

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kafka_compat.pipelines.decode.columns import ColumnSpec, ValueDecoder
from kafka_compat.pipelines.decode.decoding import DecodeSettings, Decoding
from kafka_compat.pipelines.decode.registry import Connection
from tests.decoding.schema_registry import SchemaRegistry, framed

FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "namespace": "air",
    "fields": [{"name": "carrier", "type": "string"}, {"name": "distance", "type": "int"}],
}
FLIGHT_2: dict[str, Any] = {
    **FLIGHT,
    "fields": [
        {"name": "carrier", "type": "string"},
        {"name": "distance", "type": "long"},
        {"name": "origin", "type": "string", "default": "?"},
    ],
}
"""The second version of FLIGHT: a wider number, and a new field with a default."""


def avro(schema_id: int, schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return framed(schema_id, stream.getvalue())


def proto_file(*messages: descriptor_pb2.DescriptorProto, enums: Sequence[Any] = ()) -> bytes:
    """Return a serialized file in the package `air`."""
    imports = ["google/protobuf/timestamp.proto"]
    file = descriptor_pb2.FileDescriptorProto(
        name="air.proto", package="air", syntax="proto3", dependency=imports
    )
    file.message_type.extend(messages)
    file.enum_type.extend(enums)
    content: bytes = file.SerializeToString()
    return content


def proto_message(name: str, fields: str) -> descriptor_pb2.DescriptorProto:
    """Return a message of fields such as `1 string carrier, 2 int64* stops`, where * means repeated."""
    kinds = {"string": 9, "int32": 5, "int64": 3, "uint64": 4, "bytes": 12, "double": 1, "bool": 8}
    made = descriptor_pb2.DescriptorProto(name=name)
    for each in fields.split(", "):
        number, kind, field = each.split()
        added = made.field.add(name=field, number=int(number), label=3 if kind.endswith("*") else 1)
        kind = kind.rstrip("*")
        if kind in kinds:
            added.type = kinds[kind]
        else:
            added.type, added.type_name = 14 if kind.startswith("enum:") else 11, kind.removeprefix("enum:")
    return made


def protobuf(schema_id: int, file: bytes, name: str, value: Any, indexes: bytes = b"\0") -> bytes:
    """Return a value of the message `name`. `value` is its JSON."""
    from google.protobuf import json_format, timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"air.{name}"))()
    json_format.ParseDict(value, message)
    return framed(schema_id, indexes + message.SerializeToString())


def settings(registry: SchemaRegistry, value_format: str, **more: Any) -> DecodeSettings:
    return DecodeSettings(value_format, Connection(registry.url), **more)


def spec_of(registry: SchemaRegistry, value_format: str, **more: Any) -> ColumnSpec:
    """Return how to decode the values of the topic `flights`."""
    return Decoding(settings(registry, value_format, **more)).spec("flights")


def decoded(spec: ColumnSpec, *values: bytes | None) -> list[tuple[Any, int | None, str | None]]:
    """Return the columns (decoded, schema_id, decode_error) as an executor computes them."""
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    found = ValueDecoder(spec).with_columns(batch).to_pylist()
    return [(row.get("decoded"), row["schema_id"], row["decode_error"]) for row in found]


def json_value(schema_id: int, value: Any) -> bytes:
    return framed(schema_id, json.dumps(value).encode())
