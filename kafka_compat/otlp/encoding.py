"""Encode metric families as OTLP requests. No I/O.

A family keeps its name, help and labels. A counter becomes a cumulative, monotonic sum with its start time;
gauges and untyped metrics become gauges, as OpenTelemetry's specification requires for Prometheus metrics.
Numbers are always doubles, as in Prometheus, so that the type of a series does not depend on its values.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.family import COUNTER, Family, Sample

_SCOPE: Final = "kafka_compat"
_QUICK_COMPRESSION: Final = 1
_AT_ONCE: Final = 100
"""Number of points between two yields, which take about 300 µs."""
POINTS_MAX: Final = 5_000
"""Maximum number of points in a request (300 kB uncompressed), because receivers limit request sizes."""

Point = tuple["Family", "Sample"]


def points_of(families: Iterable[Family]) -> Iterator[Point]:
    """Return an iterator over all samples, each with its family."""
    return ((family, sample) for family in families for sample in family.samples)


class Request:
    """An ExportMetricsServiceRequest under construction."""

    def __init__(self, resource: Mapping[str, str], started_ns: int, now_ns: int) -> None:
        """`resource` contains the attributes of this process. Counters start at `started_ns` (Unix time)."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        self.points = 0
        self._started_ns = started_ns
        self._now_ns = now_ns
        self._message = ExportMetricsServiceRequest()
        reported = self._message.resource_metrics.add()
        for key, value in resource.items():
            reported.resource.attributes.add(key=key).value.string_value = value
        self._scope = reported.scope_metrics.add()
        self._scope.scope.name = _SCOPE

    def fill(self, points: Iterator[Point]) -> Steps[bool]:
        """Add points until the request is full. Return False if it is not full, because no points remain."""
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
        """Add a family's metric to this request, and return its list of points."""
        from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

        metric = self._scope.metrics.add(name=family.name, description=family.help)
        if family.kind != COUNTER:
            return metric.gauge.data_points
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        return metric.sum.data_points

    def body(self) -> Steps[bytes]:
        """Encode the request, and return it compressed with gzip."""
        data = self._message.SerializeToString()
        compressed: bytes = yield partial(gzip.compress, data, _QUICK_COMPRESSION, mtime=0)
        return compressed


def refused(answer: bytes) -> tuple[int, str]:
    """Return the number of points that the receiver rejected although it accepted the request, and the
    reason. Return (0, "") if it rejected no points, or if the response cannot be parsed.
    """
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

    try:
        partial = ExportMetricsServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return 0, ""
    return partial.rejected_data_points, partial.error_message
