"""Receivers that are down, reject pushes or do not respond: log messages, and no delays for clients."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from kafka_compat.testing import KafkaBroker
from tests.otlp.receiver import Receiver
from tests.support.bystander import Bystander
from tests.support.ports import free_port
from tests.support.process import wait_until

STOP_S_MAX = 4.0
"""Below ten seconds, the time that a push waits for a receiver."""
LATE_MS_MAX = 250
_CANNOT, _AGAIN = "Could not push metrics to", "Resumed pushing metrics to"


@pytest.fixture
def receiver() -> Receiver:
    return Receiver(free_port())


@pytest.fixture
def broker(receiver: Receiver) -> Iterator[KafkaBroker]:
    settings = {"kafka.compat.otlp.endpoint": receiver.url, "kafka.compat.otlp.interval.ms": "100"}
    with KafkaBroker(settings, verbose=True) as running:
        yield running


def test_each_outage_of_the_receiver_is_logged_once(receiver: Receiver, broker: KafkaBroker) -> None:
    with Bystander(broker.port, broker.pid) as bystander:
        for count in (1, 2):
            wait_until(lambda count=count: broker.log.count(_CANNOT) == count, 30, "a warning")  # type: ignore[misc]
            with receiver:
                receiver.next_push()
                wait_until(lambda count=count: broker.log.count(_AGAIN) == count, 30, "a success")  # type: ignore[misc]
        wait_until(lambda: broker.log.count(_CANNOT) == 3, 30, "a warning")
    assert bystander.worst_ms < LATE_MS_MAX
    (first, *_) = [line for line in broker.log.splitlines() if _CANNOT in line]
    assert "WARNING" in first and receiver.url in first and "Connection refused" in first
    assert "Traceback" not in broker.log


def test_rejections_by_the_receiver_are_logged_once(receiver: Receiver, broker: KafkaBroker) -> None:
    receiver.status = 401
    with receiver:
        receiver.wait("a few tries", lambda requests: len(requests) > 2)
        assert broker.log.count(_CANNOT) == broker.log.count("HTTP 401") == 1
        receiver.answer = ExportMetricsServiceResponse()
        receiver.answer.partial_success.rejected_data_points = 3
        receiver.answer.partial_success.error_message = "too old"
        receiver.status = 200
        wait_until(lambda: "rejected" in broker.log, 30, "the second warning")
        receiver.next_push()
        said = [line for line in broker.log.splitlines() if "rejected" in line]
    assert len(said) == 1 and "3 of the pushed metrics" in said[0] and said[0].endswith("too old")


def test_a_broker_stops_while_the_receiver_does_not_respond(receiver: Receiver, broker: KafkaBroker) -> None:
    receiver.may_answer.clear()
    with receiver:
        receiver.wait("a push", lambda requests: bool(requests))
        begun_s = time.monotonic()
        broker.stop()
        assert time.monotonic() - begun_s < STOP_S_MAX
    assert len(receiver.requests) == 1
    assert "Broker 1 stopped" in broker.log and "Traceback" not in broker.log
