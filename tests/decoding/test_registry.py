"""Values with schemas: every kind of schema, references, malicious schemas, and a registry that is down or
slow.
"""

from __future__ import annotations

import io
import json
import struct
import time
from collections.abc import Iterator
from decimal import Decimal

import fastavro
import pytest
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

from kafka_compat.decoding import registry as module
from kafka_compat.decoding.formats import Schema, decoded, schema_ids
from kafka_compat.decoding.registry import ASKED_MAX, Registry
from kafka_compat.http_client import place
from tests.decoding.schema_registry import NODE, SchemaRegistry, framed

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


@pytest.fixture
def served() -> Iterator[SchemaRegistry]:
    with SchemaRegistry().serve() as registry:
        yield registry


def avro(schema: object, value: object) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)  # type: ignore[arg-type]
    return stream.getvalue()


async def shown(registry: Registry, content: bytes, asked: str = "auto") -> tuple[str, object, str | None]:
    """Return the format, the decoded value, and the problem, if any."""
    schemas = await registry.schemas(schema_ids([content]))
    found = decoded(content, asked, schemas)
    assert found.text is not None
    return found.format, found.text, found.problem


async def test_an_avro_value_is_shown_as_json(served: SchemaRegistry) -> None:
    served.add(1, ORDER)
    value = {
        "id": 7,
        "note": "größer",
        "raw": b"\x00\xff",
        "price": Decimal("12.30"),
        "at": 1_700_000_000_000,
    }
    form, text, problem = await shown(served.registry(), framed(1, avro(ORDER, value)))
    assert (form, problem) == ("avro", None)
    assert json.loads(str(text)) == {
        "id": 7,
        "note": "größer",
        "raw": "\x00\xff",
        "price": "12.30",
        "at": "2023-11-14T22:13:20+00:00",
    }


async def test_avro_schemas_can_have_references(served: SchemaRegistry) -> None:
    money = {
        "type": "record",
        "name": "Money",
        "namespace": "shop",
        "fields": [{"name": "cents", "type": "int"}],
    }
    item = {
        "type": "record",
        "name": "Item",
        "namespace": "shop",
        "fields": [{"name": "price", "type": "shop.Money"}],
    }
    cart = ["null", {"type": "array", "items": "shop.Item"}]
    served.add(1, money, subject="money/value")
    served.add(2, item, subject="item", references=(("shop.Money", "money/value"),))
    served.add(3, cart, references=(("shop.Item", "item"), ("shop.Money", "money/value")))
    content = b"\x02" + b"\x02" + b"\x54" + b"\x00"
    form, text, problem = await shown(served.registry(), framed(3, content))
    assert (form, problem) == ("avro", None), problem
    assert json.loads(str(text)) == [{"price": {"cents": 42}}]


def file_of(name: str, *messages: descriptor_pb2.DescriptorProto, imports: tuple[str, ...] = ()) -> bytes:
    file = descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax="proto3", dependency=imports)
    file.message_type.extend(messages)
    content: bytes = file.SerializeToString()
    return content


def message(name: str, **fields: str) -> descriptor_pb2.DescriptorProto:
    found = descriptor_pb2.DescriptorProto(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        made = found.field.add(name=field, number=number, label=1)
        if kind.startswith("."):
            made.type, made.type_name = 11, kind
        else:
            made.type = {"string": 9, "int64": 3, "bytes": 12}[kind]
    return found


def protobuf(files: list[bytes], name: str, **fields: object) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(any_pb2.DESCRIPTOR.serialized_pb))
    for file in files:
        pool.Add(descriptor_pb2.FileDescriptorProto.FromString(file))
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    content: bytes = made(**fields).SerializeToString()
    return content


async def test_a_protobuf_value_is_shown_as_json(served: SchemaRegistry) -> None:
    outer = message("Outer", who="string", size="int64", raw="bytes")
    outer.nested_type.extend([message("First", a="string"), message("Second", b="string")])
    file = file_of("default", message("Zero", z="string"), outer)
    served.add(1, file, "PROTOBUF")
    registry = served.registry()
    value = protobuf([file], "shop.Outer", who="größer", size=1 << 60, raw=b"\0\xff")
    form, text, problem = await shown(registry, framed(1, b"\x02\x02" + value))
    assert (form, problem) == ("protobuf", None), problem
    assert json.loads(str(text)) == {"who": "größer", "size": str(1 << 60), "raw": "AP8="}
    value = protobuf([file], "shop.Outer.Second", b="inner")
    _, text, _ = await shown(registry, framed(1, b"\x04\x02\x02" + value))
    assert json.loads(str(text)) == {"b": "inner"}
    value = protobuf([file], "shop.Zero", z="first")
    _, text, _ = await shown(registry, framed(1, b"\x00" + value))
    assert json.loads(str(text)) == {"z": "first"}
    for indexes, reason in (
        (b"\x02\x0a", "no message 5"),
        (b"\x04\x02\x0a", "no message 1.5"),
        (b"\x02\x01", "no message -1"),
    ):
        form, _, problem = await shown(registry, framed(1, indexes + value))
        assert form == "hex" and problem is not None and reason in problem
    assert len(served.asked) == 2


async def test_protobuf_schemas_can_have_references(served: SchemaRegistry) -> None:
    money = file_of(
        "shop/money.proto",
        message("Money", cents="int64", more=".google.protobuf.Any"),
        imports=("google/protobuf/any.proto",),
    )
    order = file_of("default", message("Order", price=".shop.Money"), imports=("shop/money.proto",))
    served.add(1, money, "PROTOBUF", subject="money")
    served.add(2, order, "PROTOBUF", references=(("shop/money.proto", "money"),))
    value = protobuf([money, order], "shop.Order", price={"cents": 5})
    form, text, problem = await shown(served.registry(), framed(2, b"\x00" + value))
    assert (form, problem) == ("protobuf", None), problem
    assert json.loads(str(text)) == {"price": {"cents": "5"}}
    # JSON cannot represent an Any with an unknown message type.
    value = protobuf(
        [money, order], "shop.Order", price={"more": {"type_url": "x/unknown.Kind", "value": b"\x01"}}
    )
    form, text, problem = await shown(served.registry(), framed(2, b"\x00" + value))
    assert (form, problem) == ("protobuf", None) and "unknown.Kind" in str(text)


async def test_a_json_schema_value_is_shown_indented(served: SchemaRegistry) -> None:
    served.add(1, {"type": "object"}, "JSON")
    assert await shown(served.registry(), framed(1, b'{"a":1}')) == ("json-schema", '{\n  "a": 1\n}', None)
    form, _, problem = await shown(served.registry(), framed(1, b"nothing"))
    assert form == "hex" and "not JSON" in str(problem)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "does not match its Avro schema: EOFError"),
        (b"\x02" * 1_000_000, "RecursionError"),
        (b"\x00rest", "4 bytes after the value of its Avro schema"),
        (b"\x10", "does not match its Avro schema"),
    ],
)
async def test_hostile_avro_data_is_rejected(served: SchemaRegistry, content: bytes, reason: str) -> None:
    served.add(1, NODE)
    _, _, problem = await shown(served.registry(), framed(1, content))
    assert problem is not None and reason in problem


@pytest.mark.parametrize(
    "items",
    ["null", {"type": "record", "name": "R", "fields": []}, {"type": "fixed", "name": "F", "size": 0}],
)
async def test_avro_arrays_of_zero_byte_items_are_rejected(served: SchemaRegistry, items: object) -> None:
    fields = [{"name": "all", "type": ["null", {"type": "array", "items": items}]}]
    served.add(1, {"type": "record", "name": "Many", "fields": fields})
    endless = b"\x02" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x0f"
    _, _, problem = await shown(served.registry(), framed(1, endless))
    assert problem is not None and "zero-byte items" in problem


async def test_hostile_protobuf_data_is_rejected(served: SchemaRegistry) -> None:
    node = message("Node", next=".shop.Node")
    served.add(1, file_of("default", node), "PROTOBUF")
    deep = b""
    for _ in range(5000):
        deep = b"\x0a" + _varint(len(deep)) + deep
    for content in (deep, b"\x0a\xff\xff\xff\x7f", b"\x07"):
        _, _, problem = await shown(served.registry(), framed(1, b"\x00" + content))
        assert problem is not None and problem.startswith("no shop.Node")


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


@pytest.mark.parametrize(
    ("schema", "kind", "reason"),
    [
        ({"type": "nonsense"}, "AVRO", "not an Avro schema"),
        (b"\xff\xff", "PROTOBUF", "not a Protobuf file"),
        (file_of("default", message("M", a=".shop.Missing")), "PROTOBUF", "not a Protobuf file"),
        (file_of("default", message("M"), imports=("nowhere.proto",)), "PROTOBUF", "not a Protobuf file"),
        ({}, "THRIFT", "its type 'THRIFT' is not supported"),
    ],
)  # fmt: skip
async def test_invalid_schemas_are_reported(
    served: SchemaRegistry, schema: object, kind: str, reason: str
) -> None:
    served.add(1, schema, kind)
    form, _, problem = await shown(served.registry(), framed(1, b"\x00\x01\x02"))
    assert form == "long" or problem is not None
    _, _, problem = await shown(served.registry(), framed(1, b"\x00\x01\x02\x03"))
    assert problem is not None and reason in problem


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"{}", b'{"schema": 5}', b'{"schema": "{}", "references": [1]}', b"[" * 9000]
)
async def test_an_invalid_registry_response_is_reported(served: SchemaRegistry, answer: bytes) -> None:
    served.raw["/schemas/ids/1"] = (200, answer)
    _, _, problem = await shown(served.registry(), framed(1, b"abcde"))
    assert problem is not None


async def test_registry_responses_are_cached(served: SchemaRegistry) -> None:
    served.add(1, NODE)
    registry = served.registry()
    for _ in range(3):
        assert (await shown(registry, framed(1, b"\x00")))[0] == "avro"
        assert "has no schema 2" in str((await shown(registry, framed(2, b"\x00"), "schema"))[2])
    assert served.asked == ["/schemas/ids/1", "/schemas/ids/2"]


async def test_the_number_of_schemas_fetched_for_one_request_is_limited(served: SchemaRegistry) -> None:
    for schema_id in range(1, 121):
        served.add(schema_id, NODE)
    registry = served.registry()
    found = await registry.schemas(range(1, 121))
    assert sum(not isinstance(each, str) for each in found.values()) == ASKED_MAX
    assert any(isinstance(each, str) and "not fetched" in each for each in found.values())
    for _ in range(3):
        found = await registry.schemas(range(1, 121))
    assert not any(isinstance(each, str) for each in found.values())


async def test_credentials_are_sent_to_a_registry_that_requires_authentication(
    served: SchemaRegistry,
) -> None:
    served.user_info = "alice:secret"
    served.add(1, NODE)
    assert "HTTP 401" in str((await shown(served.registry(), framed(1, b"\x00")))[2])
    assert (await shown(served.registry("alice:secret"), framed(1, b"\x00")))[0] == "avro"


async def test_an_unreachable_registry_is_reported_and_not_queried_again_immediately() -> None:
    with SchemaRegistry().serve() as served:
        url = served.url
    now_s = 0.0
    registry = Registry(place(url), now_s=lambda: now_s)
    begun_s = time.monotonic()
    form, _, problem = await shown(registry, framed(1, b"\x00\x01"))
    assert form == "hex" and problem is not None and "the schema registry: ConnectionRefusedError" in problem
    # The failed registry is not queried again immediately, even for a different schema.
    assert "ConnectionRefused" in str((await registry.schemas([2]))[2])
    assert time.monotonic() - begun_s < module.PATIENCE_S


async def test_a_slow_registry_does_not_delay_the_web_console(
    served: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    served.delay_s = 3
    served.add(1, NODE)
    now_s = 0.0
    registry = Registry(place(served.url), now_s=lambda: now_s)
    begun_s = time.monotonic()
    found = await registry.schemas([1, 2, 3])
    assert time.monotonic() - begun_s < 2.5
    assert all(
        "no response within" in str(each) or "no complete response" in str(each) for each in found.values()
    )
    served.delay_s = 0
    now_s = module.AGAIN_AFTER_S + 1
    monkeypatch.setattr(module, "PATIENCE_S", 5)
    again: Schema | str = (await registry.schemas([1]))[1]
    assert not isinstance(again, str) and again.kind == "avro"


def test_numbers_are_not_mistaken_for_schema_ids() -> None:
    assert schema_ids([struct.pack(">q", number) for number in (0, 1, 1 << 20)]) == set()
    assert schema_ids([b"\0\0\0\0\7", None, b"", b"\0\0", b"x\0\0\0\7"]) == {7}
