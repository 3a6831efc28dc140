"""Clients that push what grows, what is nothing, and under ever new ids take bounded room."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.compression import compress
from kafka_compat.storage.kinds import CompressionType
from kafka_compat.telemetry.instances import ClientInstances
from kafka_compat.telemetry.payload import Pushed, Sample
from kafka_compat.telemetry.pushed import PushedMetrics
from kafka_compat.telemetry.subscriptions import Client
from kafka_compat.testing import KafkaBroker
from tests.conformance.wire import Connection

_CODECS = [each for each in CompressionType if each is not CompressionType.NONE]
_MIB = 1 << 20


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with KafkaBroker() as running:
        yield running.bootstrap_servers


def _push(address: str, data: bytes, codec: CompressionType) -> int:
    """A new client's push; its error."""
    with Connection(address) as connection:
        instance = {"client_instance_id": uuid.uuid4()}
        known = connection.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, instance)
        push = {
            **instance,
            "subscription_id": known["subscription_id"],
            "terminating": False,
            "compression_type": int(codec),
            "metrics": data,
        }
        code: int = connection.ask(ApiKey.PUSH_TELEMETRY, 0, push)["error_code"]
        return code


@pytest.mark.parametrize("codec", _CODECS, ids=[each.name for each in _CODECS])
def test_a_bomb(address: str, codec: CompressionType) -> None:
    """Small as it comes, and more than four times telemetry.max.bytes when it is decompressed."""
    bomb = compress(codec, bytes(8 * _MIB))
    assert len(bomb) < _MIB
    assert _push(address, bomb, codec) == ErrorCode.TELEMETRY_TOO_LARGE
    # What stays below that is read, and is no OTLP.
    assert _push(address, compress(codec, bytes(3 * _MIB)), codec) == ErrorCode.INVALID_RECORD


def test_garbage(address: str) -> None:
    chance = random.Random(714)
    codes = {
        _push(address, b"\xff" + chance.randbytes(chance.randrange(2000)), codec)
        for codec in CompressionType
        for _ in range(20)
    }
    assert codes == {ErrorCode.INVALID_RECORD}


def test_ever_new_ids() -> None:
    instances = ClientInstances(uuid.uuid4, _MIB, instances_max=1000)
    pushed = PushedMetrics(500)
    samples = [Sample(f"client_{number}", "", 1.0, grows=True, is_delta=True) for number in range(3)]
    client = Client("c", "s", "1", "127.0.0.1", "1")
    for number in range(2, 10_002):
        instance_id = uuid.UUID(int=number)
        instances.ask(instance_id, client, number)
        pushed.take(instance_id, f'client_id="{number}"', "", Pushed(samples, 0, ""), 60_000, number)
    assert len(instances) == 1000
    # Those that came last are there.
    assert pushed.series == 3 * len(pushed.clients()) == 498
    assert pushed.clients()[-1].identity == 'client_id="10001"'
