"""Responses to subscription requests and pushes, compared with Apache Kafka in KRaft mode with a receiver."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain
from tests.support.servers import KafkaCompatBroker
from tests.telemetry.receiving_kafka import ReceivingKafka

ASK, PUSH = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    genuine = ReceivingKafka(tmp_path_factory.mktemp("genuine"), "4.1.0")
    listener = {"kafka.compat.http.listener": "http://127.0.0.1:0"}
    ours = KafkaCompatBroker(tmp_path_factory.mktemp("ours"), listener)
    genuine.start()
    ours.start()
    found = Pair(ours.address, genuine.address)
    yield found
    found.close()
    ours.stop()
    genuine.stop()


def _push(
    instance: uuid.UUID, subscription: int, *, last: bool = False, codec: int = 0, data: bytes = b""
) -> Plain:
    return {
        "client_instance_id": instance,
        "subscription_id": subscription,
        "terminating": last,
        "compression_type": codec,
        "metrics": data,
    }


def _known(pair: Pair) -> tuple[uuid.UUID, int]:
    instance = uuid.uuid4()
    answer = pair.same(ASK, {"client_instance_id": instance})
    assert answer["error_code"] == 0
    return instance, answer["subscription_id"]


def test_early_and_late_requests_get_kafkas_errors(pair: Pair) -> None:
    instance, subscription = _known(pair)
    told = [pair.same(ASK, {"client_instance_id": instance})]
    for more, last in ((0, False), (0, False), (1, False), (0, True), (0, False), (0, False), (0, True)):
        told.append(pair.same(PUSH, _push(instance, subscription + more, last=last)))
    assert [each["error_code"] for each in told] == [89, 0, 89, 89, 0, 42, 89, 0]


@pytest.mark.parametrize(
    "more, codec, data, code, then",
    [
        (1, 0, b"", 117, 0),
        (0, 9, b"x", 76, 0),
        (0, 0, b"x" * ((1 << 20) + 1), 118, 89),
        *((0, codec, b"\xff\xff\xff", 87, 89) for codec in range(5)),
    ],
    ids=[f"{number}" for number in range(8)],
)
def test_invalid_pushes_get_kafkas_errors(
    pair: Pair, more: int, codec: int, data: bytes, code: int, then: int
) -> None:
    instance, subscription = _known(pair)
    assert pair.same(PUSH, _push(instance, subscription + more, codec=codec, data=data))["error_code"] == code
    assert pair.same(ASK, {"client_instance_id": instance})["error_code"] == then
    assert pair.same(PUSH, _push(instance, subscription))["error_code"] == 89


def test_requests_with_invalid_client_instance_ids_get_kafkas_errors(pair: Pair) -> None:
    for number in (0, 1):
        assert pair.same(PUSH, _push(uuid.UUID(int=number), 0))["error_code"] == 42
