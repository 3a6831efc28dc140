"""Encoding of metric families as OTLP, with arbitrary labels, values and request sizes."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from kafka_compat.metrics.family import COUNTER, GAUGE, NO_LABELS, UNTYPED, Family, Labels
from kafka_compat.metrics.prometheus_text import next_piece, text_of
from kafka_compat.otlp.encoding import Request, points_of, refused
from tests.metrics.scraping import Samples, samples_of
from tests.otlp.receiver import read
from tests.support.steps import result_of

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=12)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([GAUGE, COUNTER, UNTYPED]),
            st.dictionaries(_TEXT, st.floats(allow_nan=False), max_size=8),
        ),
        max_size=5,
    ),
    st.integers(1, 8),
)
def test_pushed_values_match_those_that_the_prometheus_parser_reads(
    families: list[tuple[str, dict[str, float]]], count: int
) -> None:
    values = [
        # Prometheus's parser requires this suffix for counters.
        Family(
            f"kafka_{number}_total",
            kind,
            f"Help of {number}: it's {{this}}",
            [(Labels.of({"a": label, "partition": "0"}), value) for label, value in samples.items()],
        )
        for number, (kind, samples) in enumerate(families)
    ]
    with patch("kafka_compat.otlp.encoding.POINTS_MAX", count):
        pushes = [read([message]) for message in requests(values)]
    found: Samples = {}
    for push in pushes:
        assert push.times_ns <= {9} and push.started_ns <= {5} and push.resource == {"service.name": "x"}
        assert not found.keys() & push.samples.keys() and len(push.samples) <= count
        found |= push.samples
    assert found == samples_of(result_of(next_piece(text_of(values))).decode())


def requests(families: list[Family]) -> Iterator[ExportMetricsServiceRequest]:
    """Return all requests of a push."""
    points = points_of(families)
    while True:
        request = Request({"service.name": "x"}, 5, 9)
        is_full = result_of(request.fill(points))
        if request.points:
            body: bytes = result_of(request.body())
            yield ExportMetricsServiceRequest.FromString(gzip.decompress(body))
        if not is_full:
            return


def test_a_nan_value_is_encoded_as_nan() -> None:
    (message,) = requests([Family("kafka_x", GAUGE, "Help", [(NO_LABELS, math.nan)])])
    ((_, value),) = read([message]).samples.items()
    assert math.isnan(value)


def test_rejected_data_points_are_counted() -> None:
    answer = ExportMetricsServiceResponse()
    assert refused(answer.SerializeToString()) == refused(b"{}") == (0, "")
    answer.partial_success.rejected_data_points, answer.partial_success.error_message = 4, "too old"
    assert refused(answer.SerializeToString()) == (4, "too old")
