"""Clients that push decompression bombs, empty messages, or data under ever new ids: the memory used is
bounded, and other clients are not delayed.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.storage.records.compression import compress
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.telemetry.instances import ClientInstances
from kafka_compat.telemetry.payload import Pushed, Sample
from kafka_compat.telemetry.pushed import PushedMetrics
from kafka_compat.telemetry.subscriptions import Client
from kafka_compat.testing import KafkaBroker
from tests.conformance.wire import Connection
from tests.metrics.scraping import Scrape
from tests.support import campaign
from tests.support.bystander import Bystander
from tests.support.process import resident_bytes
from tests.telemetry.payloads import EMPTY
from tests.telemetry.pushing import gauges, push

_CODECS = [each for each in CompressionType if each is not CompressionType.NONE]
MIB = 1 << 20
# Normal runs share the machine with other tests.
LATE_MS_MAX = campaign.rounds(250, 50)
GROWN_MAX = 48 * MIB
IDS = campaign.rounds(3_000, 10_000)


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker({"kafka.compat.client.metrics.series.max": 2000}) as running:
        yield running


@pytest.fixture
def address(broker: KafkaBroker) -> str:
    return broker.bootstrap_servers


def _push(address: str, data: bytes, codec: CompressionType = CompressionType.NONE) -> int:
    """Push data as a new client, and return the error code."""
    with Connection(address) as connection:
        return push(connection, data, codec)


@pytest.mark.parametrize("codec", _CODECS, ids=[each.name for each in _CODECS])
def test_a_decompression_bomb_is_rejected_as_too_large(address: str, codec: CompressionType) -> None:
    """The compressed data is small, but decompresses to more than four times telemetry.max.bytes."""
    bomb = compress(codec, bytes(8 * MIB))
    assert len(bomb) < MIB
    assert _push(address, bomb, codec) == ErrorCode.TELEMETRY_TOO_LARGE
    # Smaller data is decompressed and parsed, and is not valid OTLP.
    assert _push(address, compress(codec, bytes(3 * MIB)), codec) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("where", EMPTY)
def test_millions_of_empty_messages_do_not_delay_other_clients(broker: KafkaBroker, where: str) -> None:
    """Two MiB of empty messages are compressed to some hundred bytes."""
    bomb = compress(CompressionType.ZSTD, EMPTY[where])
    assert len(bomb) < 1000
    before = resident_bytes(broker.pid)
    with Bystander(broker.port, broker.pid) as bystander:
        for _ in range(3):
            assert (
                _push(broker.bootstrap_servers, bomb, CompressionType.ZSTD) == ErrorCode.TELEMETRY_TOO_LARGE
            )
    print(f"{where}: other clients waited up to {bystander.worst_ms:.1f} ms")
    assert bystander.worst_ms < LATE_MS_MAX
    assert resident_bytes(broker.pid) - before < GROWN_MAX


def test_a_large_push_does_not_delay_other_clients(broker: KafkaBroker) -> None:
    """The push has four MiB after decompression, and more series than are kept for a client."""
    data = gauges({f"org.apache.kafka.producer.{number:06}.{'x' * 500}": 1.0 for number in range(7_500)})
    assert 3.8 * MIB < len(data) < 4 * MIB
    small = compress(CompressionType.GZIP, data)
    with Bystander(broker.port, broker.pid) as bystander:
        for _ in range(5):
            assert _push(broker.bootstrap_servers, small, CompressionType.GZIP) == ErrorCode.NONE
    print(f"other clients waited up to {bystander.worst_ms:.1f} ms")
    assert bystander.worst_ms < LATE_MS_MAX


def test_many_client_ids_over_the_wire_use_bounded_memory(broker: KafkaBroker) -> None:
    """Each client pushes a few series. The memory used and the delays for other clients are bounded."""
    names = [f"client_x{number}" for number in range(3)]
    data = gauges({name.removeprefix("client_"): 1.0 for name in names})
    before = resident_bytes(broker.pid)
    with Bystander(broker.port, broker.pid) as bystander, Connection(broker.bootstrap_servers) as connection:
        for number in range(IDS):
            assert push(connection, data, instance_id=uuid.UUID(int=(1 << 100) + number)) == ErrorCode.NONE
    grown = resident_bytes(broker.pid) - before
    print(f"{IDS} ids: clients waited up to {bystander.worst_ms:.1f} ms; {grown / MIB:.1f} MiB more")
    shown = Scrape(broker.control.url)
    assert shown.value("kafka_client_series") == 1998
    assert sum(name in names for name, _ in shown.samples) == 1998
    assert grown < GROWN_MAX
    assert bystander.worst_ms < LATE_MS_MAX


def test_random_bytes_are_rejected_as_invalid(address: str) -> None:
    chance = random.Random(714)
    codes = {
        _push(address, b"\xff" + chance.randbytes(chance.randrange(2000)), codec)
        for codec in CompressionType
        for _ in range(20)
    }
    assert codes == {ErrorCode.INVALID_RECORD}


def test_many_client_ids_use_bounded_memory() -> None:
    instances = ClientInstances(uuid.uuid4, MIB, instances_max=1000)
    pushed = PushedMetrics(500)
    samples = [Sample(f"client_{number}", (), 1.0, grows=True, is_delta=True) for number in range(3)]
    client = Client("c", "s", "1", "127.0.0.1", "1")
    for number in range(2, 10_002):
        instance_id = uuid.UUID(int=number)
        instances.ask(instance_id, client, number)
        identity = (("client_id", str(number)),)
        pushed.take(instance_id, identity, (), Pushed(samples, 0, ()), 60_000, number)
    assert len(instances) == 1000
    # The most recent clients are kept.
    assert pushed.series == 3 * len(pushed.clients()) == 498
    assert pushed.clients()[-1].identity == (("client_id", "10001"),)
