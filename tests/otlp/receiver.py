"""A receiver of OTLP over HTTP, which parses requests with OpenTelemetry's own classes."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

from tests.metrics.scraping import Samples

FIRST = "kafka_brokers"
"""The first metric family of every push."""


class Received(NamedTuple):
    """One received request."""

    path: str
    headers: Mapping[str, str]
    message: ExportMetricsServiceRequest


class Push(NamedTuple):
    """All requests of one push."""

    resource: dict[str, str]
    kinds: dict[str, str]
    """The type of each metric family, as named by Prometheus."""
    samples: Samples
    times_ns: set[int]
    started_ns: set[int]


class Receiver:
    """A receiver at 127.0.0.1 that keeps its port across restarts. Use it as a context manager."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1/metrics"
        self.requests: list[Received] = []
        self.answer = ExportMetricsServiceResponse()
        self.status = 200
        self.may_answer = threading.Event()
        """While it is not set, clients get no response."""
        self.may_answer.set()
        self._news = threading.Condition()
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Encoding"] == "gzip"
                message = ExportMetricsServiceRequest.FromString(gzip.decompress(body))
                receiver.take(Received(self.path, dict(self.headers), message))
                receiver.may_answer.wait()
                self.send_response(receiver.status)
                self.end_headers()
                self.wfile.write(receiver.answer.SerializeToString())

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore the error: the client has disconnected."""

        self._server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.may_answer.set()
        self.stop()

    def take(self, received: Received) -> None:
        with self._news:
            self.requests.append(received)
            self._news.notify_all()

    def wait(self, what: str, is_so: Callable[[list[Received]], bool]) -> None:
        """Wait until the received requests satisfy `is_so`."""
        with self._news:
            assert self._news.wait_for(lambda: is_so(self.requests), 30), what

    def next_push(self) -> Push:
        """Return the next complete push that begins after this call."""
        begun = len(self.requests)

        def beginnings(requests: list[Received]) -> list[int]:
            found = [at for at, each in enumerate(requests) if at >= begun and FIRST in _names(each.message)]
            return found[:2]

        self.wait("no complete push received", lambda all_: len(beginnings(all_)) == 2)
        first, end = beginnings(self.requests)
        return read([each.message for each in self.requests[first:end]])


def _names(message: ExportMetricsServiceRequest) -> set[str]:
    (resource,) = message.resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name for metric in scope.metrics}


def read(messages: list[ExportMetricsServiceRequest]) -> Push:
    found = Push({}, {}, {}, set(), set())
    for message in messages:
        (resource,) = message.resource_metrics
        (scope,) = resource.scope_metrics
        assert scope.scope.name == "kafka_compat"
        found.resource.update(_plain(resource.resource.attributes))
        for metric in scope.metrics:
            kind = metric.WhichOneof("data")
            if kind == "sum":
                assert metric.sum.is_monotonic
                assert metric.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
                found.started_ns.update(point.start_time_unix_nano for point in metric.sum.data_points)
            else:
                assert kind == "gauge"
            told = "counter" if kind == "sum" else "gauge"
            assert found.kinds.setdefault(metric.name, told) == told
            points = metric.sum.data_points if kind == "sum" else metric.gauge.data_points
            assert points
            for point in points:
                key = metric.name, frozenset(_plain(point.attributes).items())
                assert key not in found.samples, key
                found.samples[key] = point.as_double
                found.times_ns.add(point.time_unix_nano)
    return found


def _plain(attributes: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in attributes:  # type: ignore[attr-defined]
        assert isinstance(each, KeyValue) and each.value.WhichOneof("value") == "string_value"
        assert each.key not in found
        found[each.key] = each.value.string_value
    return found
