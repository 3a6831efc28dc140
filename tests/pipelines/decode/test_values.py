"""Columns of decoded values: types, several schemas in one topic, newer schemas, and invalid values."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from kafka_compat.decoding.plain import NotSo
from kafka_compat.pipelines.decode.avro_values import AvroValues
from kafka_compat.pipelines.decode.columns import ColumnSpec, by_topic
from kafka_compat.pipelines.decode.json_values import type_of
from tests.decoding.schema_registry import NODE, SchemaRegistry, framed
from tests.pipelines.decode.values import (
    FLIGHT,
    FLIGHT_2,
    avro,
    decoded,
    json_value,
    proto_file,
    proto_message,
    protobuf,
    spec_of,
)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry().serve() as served:
        yield served


def test_values_of_an_older_schema_have_the_columns_of_the_newest(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    registry.add(7, FLIGHT_2, subject="flights-value", version=2)
    old = avro(1, FLIGHT, {"carrier": "AA", "distance": 3})
    new = avro(7, FLIGHT_2, {"carrier": "BB", "distance": 1 << 40, "origin": "JFK"})
    spec = spec_of(registry, "avro")
    registry.asked.clear()
    assert decoded(pickle.loads(pickle.dumps(spec)), old, new, None) == [
        ({"carrier": "AA", "distance": 3, "origin": "?"}, 1, None),
        ({"carrier": "BB", "distance": 1 << 40, "origin": "JFK"}, 7, None),
        (None, None, None),
    ]
    assert registry.asked == [], "executors know the subject's versions"


def test_a_schema_of_another_subject_is_requested_from_the_registry(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    longer = {**FLIGHT, "fields": [{"name": "origin", "type": "string"}, *FLIGHT["fields"]]}
    registry.add(9, longer)
    spec = spec_of(registry, "avro")
    values = [avro(9, longer, {"carrier": "CC", "distance": 4, "origin": "LGA"})] * 3
    registry.asked.clear()
    assert decoded(spec, *values) == [({"carrier": "CC", "distance": 4}, 9, None)] * 3
    assert registry.asked == ["/schemas/ids/9"]


def test_values_that_cannot_be_decoded_have_the_reason_instead(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    registry.add(2, {"type": "object"}, "JSON")
    registry.add(3, {"type": "record", "name": "Other", "fields": [{"name": "n", "type": "int"}]})
    good = avro(1, FLIGHT, {"carrier": "AA", "distance": 3})
    values = [
        b"plain",
        b"",
        good[:-1],
        good + b"!!",
        framed(99, b""),
        framed(2, b"{}"),
        framed(3, b"\2"),
        good,
    ]
    # 2^40 as a value of the type int.
    values.append(framed(1, b"\4AA" + b"\x80\x80\x80\x80\x80\x40"))
    found = decoded(spec_of(registry, "avro"), *values)
    assert found[7] == ({"carrier": "AA", "distance": 3}, 1, None)
    reasons = [error for value, _, error in found if value is None]
    for reason, expected in zip(
        reasons,
        [
            "does not begin with 0 and a schema ID",
            "does not begin with 0 and a schema ID",
            "does not match its Avro schema",
            "2 bytes after the value",
            "schema 99: the registry does not have it",
            "schema 2 is of type JSON, not AVRO",
            "does not match its Avro schema: SchemaResolutionError",
            "does not fit struct<carrier: string, distance: int32>",
        ],
        strict=True,
    ):
        assert reason is not None and expected in reason
    assert [schema_id for _, schema_id, _ in found] == [None, None, 1, 1, 99, 2, 3, 1, 1]


def test_random_bytes_cause_few_requests_and_no_failure(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    spec = spec_of(registry, "avro")
    registry.asked.clear()
    found = decoded(spec, *(framed(number, b"junk") for number in range(1000, 4000)))
    assert {value for value, _, _ in found} == {None}
    assert len(registry.asked) <= 1001
    assert "too many IDs are unknown" in str(found[-1][2])


EVERYTHING: dict[str, Any] = {
    "type": "record",
    "name": "Everything",
    "fields": [
        {"name": "yes", "type": "boolean"},
        {"name": "small", "type": ["null", "int"]},
        {"name": "half", "type": "float"},
        {"name": "raw", "type": "bytes"},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["HEARTS", "SPADES"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at_ms", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "at_us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "noon", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "stops", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {
            "name": "times",
            "type": {"type": "array", "items": {"type": "long", "logicalType": "timestamp-millis"}},
        },
        {"name": "either", "type": ["string", "int"]},
        {"name": "wide", "type": ["null", "int", "long"]},
        {
            "name": "inner",
            "type": {"type": "record", "name": "Inner", "fields": [{"name": "suit", "type": "Suit"}]},
        },
    ],
}


def test_every_avro_type_has_a_column_type(registry: SchemaRegistry) -> None:
    registry.add(1, EVERYTHING, subject="flights-value")
    when = datetime(2013, 1, 2, 3, 4, 5, 6000, UTC)
    value = {
        "yes": True,
        "small": None,
        "half": 0.5,
        "raw": b"\0\xff",
        "four": b"abcd",
        "suit": "SPADES",
        "price": Decimal("12.30"),
        "day": date(2013, 1, 2),
        "at_ms": when,
        "at_us": when,
        "noon": 43_200_000,
        "id": "5a5e1b52-1a5b-4d71-9a65-0a9d6d6f7b11",
        "stops": ["ORD", None],
        "counts": {"a": 1},
        "times": [when],
        "either": 5,
        "wide": 1 << 40,
        "inner": {"suit": "HEARTS"},
    }
    spec = spec_of(registry, "avro")
    assert decoded(spec, avro(1, EVERYTHING, value)) == [
        ({**value, "either": "5", "counts": [("a", 1)]}, 1, None)
    ]
    types = {field.name: str(field.type) for field in spec.values().type}
    assert types["at_ms"] == "timestamp[us, tz=UTC]"
    assert types["price"] == "decimal128(8, 2)"
    assert types["counts"] == "map<string, int64>"


def test_a_recursive_value_becomes_json_text_and_deep_nesting_an_error(registry: SchemaRegistry) -> None:
    registry.add(1, NODE, subject="flights-value")
    spec = spec_of(registry, "avro")
    two, deep = framed(1, b"\2\2\0"), framed(1, b"\2" * 1_000_000)
    found = decoded(spec, two, deep)
    assert found[0] == ({"next": '{"next": {"next": null}}'}, 1, None)
    assert "RecursionError" in str(found[1][2])


def test_an_array_that_could_be_endless_is_rejected() -> None:
    with pytest.raises(NotSo, match="zero-byte"):
        AvroValues('{"type": "array", "items": "null"}')


def test_protobuf_messages_of_all_versions_are_columns_of_the_newest(registry: SchemaRegistry) -> None:
    suit = descriptor_pb2.EnumDescriptorProto(name="Suit")
    suit.value.add(name="HEARTS", number=0)
    suit.value.add(name="SPADES", number=1)
    leg = proto_message("Leg", "1 string origin")
    first = proto_file(proto_message("Flight", "1 string carrier, 2 int32 distance"))
    fields = (
        "1 string carrier, 2 int32 distance, 3 .air.Leg leg, 4 .air.Leg* legs, 5 enum:.air.Suit suit, "
        "6 uint64 big, 7 .google.protobuf.Timestamp at, 8 bytes raw, 9 string* tags, 10 .air.Flight next"
    )
    second = proto_file(proto_message("Flight", fields), leg, enums=[suit])
    registry.add(1, first, "PROTOBUF", subject="flights-value")
    registry.add(2, second, "PROTOBUF", subject="flights-value", version=2)
    old = protobuf(1, first, "Flight", {"carrier": "AA", "distance": 3})
    new = protobuf(
        2,
        second,
        "Flight",
        {
            "leg": {"origin": "JFK"},
            "legs": [{"origin": "LGA"}],
            "suit": "SPADES",
            "big": (1 << 64) - 1,
            "at": "2013-01-02T03:04:05.006Z",
            "tags": ["a"],
            "next": {"carrier": "CC"},
        },
    )
    other = protobuf(2, second, "Leg", {"origin": "EWR"}, indexes=b"\2\2")
    broken = framed(2, b"\0\x0a\xff")
    spec = spec_of(registry, "protobuf")
    registry.asked.clear()
    found = decoded(pickle.loads(pickle.dumps(spec)), old, new, other, broken, framed(2, b""))
    empty: dict[str, Any] = {
        "leg": None,
        "legs": [],
        "suit": "HEARTS",
        "big": Decimal(0),
        "at": None,
        "raw": b"",
        "tags": [],
    }
    assert found[0] == ({"carrier": "AA", "distance": 3, **empty, "next": None}, 1, None)
    assert found[1][0] == {
        "carrier": "",
        "distance": 0,
        "leg": {"origin": "JFK"},
        "legs": [{"origin": "LGA"}],
        "suit": "SPADES",
        "big": Decimal((1 << 64) - 1),
        "at": datetime(2013, 1, 2, 3, 4, 5, 6000, UTC),
        "raw": b"",
        "tags": ["a"],
        "next": '{"carrier": "CC"}',
    }
    assert found[2][2] == "is a air.Leg, but the column has values of air.Flight"
    assert "no air.Flight" in str(found[3][2])
    assert "ends within the message's indexes" in str(found[4][2])
    assert registry.asked == []


def test_another_message_of_the_protobuf_file_can_be_chosen(registry: SchemaRegistry) -> None:
    file = proto_file(proto_message("Flight", "1 string carrier"), proto_message("Leg", "1 string origin"))
    registry.add(1, file, "PROTOBUF", subject="flights-value")
    value = protobuf(1, file, "Leg", {"origin": "EWR"}, indexes=b"\2\2")
    for name in ("Leg", "air.Leg"):
        assert decoded(spec_of(registry, "protobuf", message=name), value) == [({"origin": "EWR"}, 1, None)]


def test_json_values_have_the_columns_of_their_json_schema(registry: SchemaRegistry) -> None:
    schema = {
        "type": "object",
        "properties": {
            "carrier": {"type": "string"},
            "distance": {"type": ["integer", "null"]},
            "leg": {"$ref": "#/definitions/leg"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "counts": {"type": "object", "additionalProperties": {"type": "number"}},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "definitions": {
            "leg": {
                "type": "object",
                "properties": {"last": {"$ref": "#/definitions/leg"}, "ok": {"type": "boolean"}},
            }
        },
    }
    registry.add(1, schema, "JSON", subject="flights-value")
    value = {"carrier": "AA", "distance": 3.0, "leg": {"last": {"ok": True}, "ok": False}, "tags": ["a"]}
    more = {"counts": {"x": 1}, "either": [5], "unknown": 1}
    bad = [
        json_value(1, {"distance": "far"}),
        json_value(1, {"leg": {"ok": 1}}),
        framed(1, b"{"),
        framed(1, b"3"),
    ]
    found = decoded(spec_of(registry, "json"), json_value(1, {**value, **more}), b'{"carrier": "BB"}', *bad)
    assert found[0] == (
        {**value, "leg": {"last": '{"ok": true}', "ok": False}, "counts": [("x", 1.0)], "either": "[5]"},
        1,
        None,
    )
    assert found[1][0]["carrier"] == "BB"
    errors = [error for _, _, error in found[2:]]
    assert errors[:2] == ["distance is not an integer", "leg.ok is not true or false"]
    assert "not JSON" in str(errors[2]) and errors[3] == "the value is not an object"


def test_json_values_can_have_types_that_json_lacks() -> None:
    type_ = pa.struct(
        [("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("price", pa.decimal128(8, 2))]
    )
    spec = ColumnSpec("json", json_type=type_)
    value = b'{"at": "2013-01-02T03:04:05+01:00", "day": "2013-01-02", "price": 1.25}'
    found = decoded(spec, value, b'{"at": "soon"}', b'{"price": 12345678}')
    assert found[0][0] == {
        "at": datetime(2013, 1, 2, 2, 4, 5, tzinfo=UTC),
        "day": date(2013, 1, 2),
        "price": Decimal("1.25"),
    }
    assert found[1][2] == "at is not an ISO 8601 time"
    assert "does not fit" in str(found[2][2])


def test_numbers_of_all_sizes_are_long_and_double_in_tables() -> None:
    kind = pa.struct(
        [
            pa.field("stops", pa.list_(pa.struct([pa.field("at", pa.int32())]))),
            pa.field("by_name", pa.map_(pa.string(), pa.float32())),
            pa.field("id", pa.string()),
        ]
    )
    value = b'{"stops": [{"at": 1}, {}], "by_name": {"a": 0.5}, "id": "x"}'
    batch = pa.RecordBatch.from_pydict({"value": [value, b"7"]})
    found = by_topic({"t": ColumnSpec("json", json_type=kind)}, wide_numbers=True)("t", batch)
    fields = found.schema.field("decoded").type
    assert fields.field("stops").type.value_type.field("at").type == pa.int64()
    assert fields.field("by_name").type.item_type == pa.float64()
    decoded = {"stops": [{"at": 1}, {"at": None}], "by_name": [("a", 0.5)], "id": "x"}
    assert found.column("decoded").to_pylist() == [decoded, None]


def test_a_json_schema_without_an_object_is_text() -> None:
    assert str(type_of('{"oneOf": [{"type": "string"}, {"type": "object"}]}')) == "string"
    with pytest.raises(NotSo, match="not a JSON Schema"):
        type_of("{")


def test_a_number_that_looks_like_a_header_is_an_error(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    assert decoded(spec_of(registry, "avro"), struct.pack(">q", 5))[0][0] is None
