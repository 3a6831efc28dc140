"""Prometheus's text, as our brokers write it, to requests of OTLP. Pure, in steps.

A family keeps its name, help and labels. A counter becomes a sum that only grows, cumulative, with the time
since when it is counted; a gauge a gauge, and what has no type a gauge too, as OpenTelemetry's specification
wants of Prometheus's metrics. There are no others. Numbers are always doubles, as Prometheus's are: a series
does not change its type when a value happens to be whole.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.long_work import Steps

if TYPE_CHECKING:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import ScopeMetrics

_LABEL: Final = re.compile(r'([^={,]+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_SCOPE: Final = "kafka_compat"
_COUNTER: Final = "counter"
_QUICK_COMPRESSION: Final = 1
_AT_ONCE: Final = 100
"""Lines of a step: some 300 µs."""


class Encoder:
    """Of one push. Pieces come in their order, each of whole lines; a family may go on in the next ones."""

    def __init__(self, resource: Mapping[str, str], started_ns: int) -> None:
        """`resource` are the attributes of who tells; `started_ns` is since when counters count (Unix time,
        in ns).
        """
        self._resource = resource
        self._started_ns = started_ns
        self._name = self._help = self._kind = ""

    def encode(self, pieces: Iterable[bytes], now_ns: int) -> Steps[bytes]:
        """An ExportMetricsServiceRequest, compressed by gzip."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        request = ExportMetricsServiceRequest()
        told = request.resource_metrics.add()
        for key, value in self._resource.items():
            told.resource.attributes.add(key=key).value.string_value = value
        scope = told.scope_metrics.add()
        scope.scope.name = _SCOPE
        yield from self._add(b"".join(pieces).decode(), scope, now_ns)
        data = request.SerializeToString()
        compressed: bytes = yield partial(gzip.compress, data, _QUICK_COMPRESSION, mtime=0)
        return compressed

    def _add(self, text: str, scope: ScopeMetrics, now_ns: int) -> Steps[None]:
        points: Any = None
        started_ns = 0
        for count, line in enumerate(text.split("\n")):
            if count % _AT_ONCE == 0:
                yield None
            if line.startswith("#"):
                _, what, self._name, rest = line.split(" ", 3)
                if what == "HELP":
                    self._help = rest
                else:
                    self._kind, points = rest, None
            elif line:
                if points is None:
                    points = self._new(scope)
                    started_ns = self._started_ns if self._kind == _COUNTER else 0
                series, _, value = line.rpartition(" ")
                point = points.add(
                    start_time_unix_nano=started_ns, time_unix_nano=now_ns, as_double=float(value)
                )
                _, _, labels = series.partition("{")
                for name, text_value in _LABEL.findall(labels):
                    point.attributes.add(key=name).value.string_value = _unescaped(text_value)

    def _new(self, scope: ScopeMetrics) -> Any:
        """The points of the family that is read."""
        from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

        metric = scope.metrics.add(name=self._name, description=self._help)
        if self._kind != _COUNTER:
            return metric.gauge.data_points
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        return metric.sum.data_points


def _unescaped(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value)


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
