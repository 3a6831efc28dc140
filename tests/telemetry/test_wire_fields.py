"""The count of fields in encoded OTLP, compared with the official classes."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafka_compat.telemetry.payload import fields_up_to

KIND = MetricsData.DESCRIPTOR
_NUMBERS = st.floats(allow_nan=False, exclude_min=True, min_value=0)


def _count(message: Any) -> int:
    """Return the number of set fields, including those of nested messages."""
    found = 0
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        found += len(values)
        if field.message_type is not None:
            found += sum(map(_count, values))
    return found


@st.composite
def metrics(draw: st.DrawFn) -> MetricsData:
    told = MetricsData()
    for _ in range(draw(st.integers(0, 3))):
        resource = told.resource_metrics.add()
        resource.resource.attributes.add(key=draw(st.text(max_size=300))).value.int_value = draw(
            st.integers(-(2**63), 2**63 - 1)
        )
        scope = resource.scope_metrics.add()
        for _ in range(draw(st.integers(0, 3))):
            metric = scope.metrics.add(name=draw(st.text(max_size=3)))
            for value in draw(st.lists(_NUMBERS, max_size=3)):
                point = metric.sum.data_points.add(as_double=value, time_unix_nano=7)
                point.attributes.add(key="k").value.kvlist_value.values.add(key="deep")
    return told


@given(metrics())
def test_field_counts_match_the_official_classes(told: MetricsData) -> None:
    data, count = told.SerializeToString(), _count(told)
    assert fields_up_to(1 << 20, data, KIND) == count
    for most in {0, count - 1, count // 2} - {-1}:
        assert fields_up_to(most, data, KIND) == min(count, most + 1)


@given(st.binary(max_size=200))
def test_random_bytes_never_have_more_fields_than_bytes(data: bytes) -> None:
    count = fields_up_to(1 << 20, data, KIND)
    assert count <= len(data)
    try:
        told = MetricsData.FromString(data)
    except DecodeError:
        return
    # If a field that is not repeated occurs several times, only the last one counts in the classes.
    assert _count(told) <= count


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05\x0a", b"\xff" * 30, b"\x0b" * 30, b"\x0f"])
def test_truncated_messages_never_have_more_fields_than_bytes(data: bytes) -> None:
    assert fields_up_to(1 << 20, data, KIND) <= len(data)
