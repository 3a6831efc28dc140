"""Prometheus's text and its way to OTLP: whatever the labels and values are, wherever pieces end."""

from __future__ import annotations

import gzip
import math

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from kafka_compat.metrics.text import Family, escaped
from kafka_compat.otlp.encoding import Encoder, refused
from tests.metrics.scraping import Samples, samples_of
from tests.otlp.receiver import read
from tests.support.steps import result_of

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=12)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["gauge", "counter", "untyped"]),
            st.dictionaries(_TEXT, st.floats(allow_nan=False), max_size=8),
        ),
        max_size=5,
    ),
    st.integers(1, 8),
)
def test_it_is_what_prometheus_parser_reads(families: list[tuple[str, dict[str, float]]], count: int) -> None:
    lines: list[bytes] = []
    for number, (kind, values) in enumerate(families):
        # Prometheus's parser has counters end so.
        family = Family(f"kafka_{number}_total", f"Help of {number}: it's {{this}}", kind)
        for value, told in values.items():
            family.add(f'{{a="{escaped(value)}",partition="0"}}', told)
        lines += b"".join(family.pieces()).splitlines(keepends=True) if values else family.pieces()
    encoder = Encoder({"service.name": "x"}, 5)
    # As pieces end: anywhere between lines, in the middle of a family, too.
    cut = [lines[at : at + count] for at in range(0, len(lines), count)]
    found: Samples = {}
    for some in cut:
        message = ExportMetricsServiceRequest.FromString(gzip.decompress(result_of(encoder.encode(some, 9))))
        push = read([message])
        assert push.times_ns <= {9} and push.started_ns <= {5} and push.resource == {"service.name": "x"}
        assert not found.keys() & push.samples.keys()
        found |= push.samples
    assert found == samples_of(b"".join(lines).decode())


def test_what_is_no_number() -> None:
    family = Family("kafka_x", "Help")
    family.add("", math.nan)
    (message,) = [
        ExportMetricsServiceRequest.FromString(
            gzip.decompress(result_of(Encoder({}, 0).encode(family.pieces(), 1)))
        )
    ]
    ((_, value),) = read([message]).samples.items()
    assert math.isnan(value)


def test_what_was_refused() -> None:
    answer = ExportMetricsServiceResponse()
    assert refused(answer.SerializeToString()) == refused(b"{}") == (0, "")
    answer.partial_success.rejected_data_points, answer.partial_success.error_message = 4, "too old"
    assert refused(answer.SerializeToString()) == (4, "too old")
