"""Encode metric families as OTLP requests. Pure.

A family keeps its name, help and labels. A counter becomes a cumulative, monotonic sum with its start time; a
gauge or an untyped metric becomes a gauge, as OpenTelemetry's specification requires for Prometheus metrics.
Numbers are always doubles, as in Prometheus: the type of a series does not change when a value happens to be
whole.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.family import COUNTER

if TYPE_CHECKING:
    from kafka_compat.metrics.family import Family, Sample

_SCOPE: Final = "kafka_compat"
_QUICK_COMPRESSION: Final = 1
_AT_ONCE: Final = 100
"""Points of a step: some 300 µs."""
POINTS_MAX: Final = 5_000
"""Of a request: 300 kB before they are compressed. Receivers bound what they take at once."""

Point = tuple["Family", "Sample"]


def points_of(families: Iterable[Family]) -> Iterator[Point]:
    """All samples, each with its family."""
    return ((family, sample) for family in families for sample in family.samples)


class Request:
    """One ExportMetricsServiceRequest."""

    def __init__(self, resource: Mapping[str, str], started_ns: int, now_ns: int) -> None:
        """`resource` are the attributes of this process; counters count since `started_ns`. Times are Unix
        times.
        """
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        self.points = 0
        """How many it has."""
        self._started_ns = started_ns
        self._now_ns = now_ns
        self._message = ExportMetricsServiceRequest()
        reported = self._message.resource_metrics.add()
        for key, value in resource.items():
            reported.resource.attributes.add(key=key).value.string_value = value
        self._scope = reported.scope_metrics.add()
        self._scope.scope.name = _SCOPE

    def fill(self, points: Iterator[Point]) -> Steps[bool]:
        """Add points; whether the request is full and others may be left."""
        last: Family | None = None
        data_points: Any = None
        started_ns = 0
        for some in batched(islice(points, POINTS_MAX - self.points), _AT_ONCE):
            for family, (labels, value) in some:
                if family is not last:
                    last, data_points = family, self._new(family)
                    started_ns = self._started_ns if family.kind == COUNTER else 0
                point = data_points.add(
                    start_time_unix_nano=started_ns, time_unix_nano=self._now_ns, as_double=value
                )
                for name, text in labels.pairs:
                    point.attributes.add(key=name).value.string_value = text
            self.points += len(some)
            yield None
        return self.points >= POINTS_MAX

    def _new(self, family: Family) -> Any:
        """The points of a family in this request."""
        from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

        metric = self._scope.metrics.add(name=family.name, description=family.help)
        if family.kind != COUNTER:
            return metric.gauge.data_points
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        return metric.sum.data_points

    def body(self) -> Steps[bytes]:
        """The request, compressed by gzip."""
        data = self._message.SerializeToString()
        compressed: bytes = yield partial(gzip.compress, data, _QUICK_COMPRESSION, mtime=0)
        return compressed


def refused(answer: bytes) -> tuple[int, str]:
    """How many points a receiver did not take of a request that it took, and why. (0, ""): all is well, as
    far as the answer can be read.
    """
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

    try:
        partial = ExportMetricsServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return 0, ""
    return partial.rejected_data_points, partial.error_message
