"""Parsing of pushed metrics: accepted metrics, their names, and limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafka_compat.metrics.family import GAUGE, Family, Labels
from kafka_compat.metrics.prometheus_text import text_of
from kafka_compat.storage.records.compression import compress
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.telemetry.payload import Pushed, PushRefused, Sample, family_name, read_push
from tests.metrics.scraping import samples_of
from tests.telemetry.payloads import EMPTY, MIB

DELTA, CUMULATIVE = 1, 2


class Told:
    """MetricsData under construction."""

    def __init__(self) -> None:
        self.data = MetricsData()
        self.resource = self.data.resource_metrics.add()
        self._metrics = self.resource.scope_metrics.add().metrics

    def gauge(self, name: str, **labels: Any) -> None:
        point = self._metrics.add(name=name).gauge.data_points.add(as_double=1.5)
        for key, value in labels.items():
            _set(point.attributes.add(key=key).value, value)

    def sum(self, name: str, temporality: int, *, grows: bool = True) -> None:
        metric = self._metrics.add(name=name)
        metric.sum.is_monotonic, metric.sum.aggregation_temporality = grows, temporality
        metric.sum.data_points.add(as_int=7)

    def histogram(self, name: str, points: int) -> None:
        for _ in range(points):
            self._metrics.add(name=name).histogram.data_points.add(count=1)

    def read(self, series_max: int = 100) -> Pushed:
        return read_push(self.data.SerializeToString(), 0, MIB, series_max)


def _set(holder: Any, value: Any) -> None:
    kinds = {
        bool: "bool_value",
        int: "int_value",
        float: "double_value",
        bytes: "bytes_value",
        str: "string_value",
    }
    setattr(holder, kinds[type(value)], value)


def test_each_kind_of_metric_is_converted_to_samples() -> None:
    told = Told()
    told.gauge("org.apache.kafka.a")
    told.sum("org.apache.kafka.b", DELTA)
    told.sum("org.apache.kafka.c.total", CUMULATIVE)
    told.sum("org.apache.kafka.d", CUMULATIVE, grows=False)
    told.sum("org.apache.kafka.e", DELTA, grows=False)
    told.histogram("org.apache.kafka.f", points=3)
    # OTLP marks the end of a series with this flag.
    told.data.resource_metrics[0].scope_metrics[0].metrics.add(name="g").gauge.data_points.add(flags=1)
    pushed = told.read()
    assert pushed.samples == [
        Sample("org_apache_kafka_a", (), 1.5, grows=False, is_delta=False),
        Sample("org_apache_kafka_b_total", (), 7.0, grows=True, is_delta=True),
        Sample("org_apache_kafka_c_total", (), 7.0, grows=True, is_delta=False),
        Sample("org_apache_kafka_d", (), 7.0, grows=False, is_delta=False),
    ]
    assert pushed.left_out == 4


def test_attributes_are_converted_to_valid_labels() -> None:
    told = Told()
    odd: dict[str, Any] = {
        "a.b": 'x"\n\\',
        "1st": 2,
        "__name__": True,
        "f": 0.5,
        "bytes": b"-",
        "client_id": "me",
    }
    told.gauge("org.apache.kafka.a", **odd)
    _set(told.resource.resource.attributes.add(key="group_id").value, "readers")
    _set(told.resource.resource.attributes.add(key="client_software_name").value, "somebody else")
    pushed = told.read()
    ((_, labels, _, _, _),) = pushed.samples
    assert labels == (("a_b", 'x"\n\\'), ("f", "0.5"), ("key_1st", "2"), ("key__name__", "true"))
    assert pushed.about == (("group_id", "readers"),)


def test_series_and_labels_beyond_the_limits_are_dropped() -> None:
    told = Told()
    for number in range(30):
        told.gauge(f"org.apache.kafka.x{number}")
    pushed = told.read(series_max=10)
    assert (len(pushed.samples), pushed.left_out) == (10, 20)
    told = Told()
    told.gauge("org.apache.kafka.long", **{f"label{number}": "v" * 300 for number in range(16)})
    told.gauge("org.apache.kafka.cut", label="v" * 300)
    pushed = told.read()
    ((name, labels, _, _, _),) = pushed.samples
    assert (name, labels, pushed.left_out) == ("org_apache_kafka_cut", (("label", "v" * 256),), 1)


@pytest.mark.parametrize(
    "name, grows, expected",
    [
        ("org.apache.kafka.producer.record-send.total", True, "org_apache_kafka_producer_record_send_total"),
        ("org.apache.kafka.x", True, "org_apache_kafka_x_total"),
        ("kafka.server.requests", False, "client_kafka_server_requests"),
        ("up", False, "client_up"),
        ("é{}\n", False, "client_"),
    ],
)
def test_metric_names_are_converted_to_family_names(name: str, grows: bool, expected: str) -> None:
    assert family_name(name, grows=grows) == expected


@given(
    st.text(),
    st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=5),
    st.floats(allow_nan=False),
)
def test_prometheus_can_parse_the_metrics_of_any_client(
    name: str, labels: dict[str, str], value: float
) -> None:
    told = MetricsData()
    point = told.resource_metrics.add().scope_metrics.add().metrics.add(name=name).gauge.data_points.add()
    point.as_double = value
    for key, text in labels.items():
        point.attributes.add(key=key).value.string_value = text
    (sample,) = read_push(told.SerializeToString(), 0, MIB, 10).samples
    family = Family(sample.name, GAUGE, "", [(Labels(sample.labels), sample.value)])
    assert list(samples_of("".join(text_of([family]))).values()) == [value]


@pytest.mark.parametrize("where", EMPTY)
def test_payloads_with_millions_of_empty_messages_are_rejected_unread(where: str) -> None:
    with pytest.raises(PushRefused, match="fields") as refused:
        read_push(EMPTY[where], 0, 4 * MIB, 5_000)
    assert refused.value.is_too_large


def test_payloads_that_are_too_large_when_decompressed_are_rejected() -> None:
    bomb = compress(CompressionType.ZSTD, bytes(2 * MIB))
    with pytest.raises(PushRefused, match="decompress to more than") as refused:
        read_push(bomb, CompressionType.ZSTD, MIB, 10)
    assert refused.value.is_too_large


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05", b"\x0b" * 200])
def test_payloads_that_are_not_otlp_are_rejected(data: bytes) -> None:
    with pytest.raises(PushRefused, match=r"not an OTLP MetricsData message") as refused:
        read_push(data, 0, MIB, 10)
    assert not refused.value.is_too_large
