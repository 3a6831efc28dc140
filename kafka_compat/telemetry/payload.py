"""Decode a pushed payload into samples with Prometheus names (KIP-714). May run in any thread. No I/O.

The payload is OTLP's MetricsData, parsed by the official classes of the opentelemetry-proto package. Names
follow Prometheus's translation UnderscoreEscapingWithoutSuffixes, with `_total` for counters, so that the
name of a metric does not depend on whether a client's library states its unit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.storage.errors import StorageError, TakesLong
from kafka_compat.storage.records.compression import decompress

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

_KAFKAS: Final = "org_apache_kafka_"
_OTHERS: Final = "client_"
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]+")
_NAME_MAX: Final = 200
_VALUE_MAX: Final = 256
_LABELS_MAX: Final = 16
_TEXT_MAX: Final = 1000
"""Maximum total length of the labels of a series, in characters."""
_AROUND: Final = 4
"""Number of characters that each label adds to its name and value: `="",`."""
_FIELDS_MAX: Final = 250_000
"""Maximum number of Protobuf fields. A series with three labels has about twenty fields."""
_DELTA: Final = 1
"""AGGREGATION_TEMPORALITY_DELTA in OTLP."""

IDENTITY: Final = ("client_id", "client_instance_id")
"""Labels that the broker adds to every sample."""
ABOUT: Final = (*IDENTITY, "client_software_name", "client_software_version", "client_source_address")
"""Labels of the client-identity sample."""


Pairs = tuple[tuple[str, str], ...]
"""Label names and values."""


class PushRefused(Exception):
    """Raised if a payload cannot be read. `is_too_large` means that it has too many bytes or fields."""

    def __init__(self, reason: str, *, is_too_large: bool = False) -> None:
        super().__init__(reason)
        self.is_too_large = is_too_large


class Sample(NamedTuple):
    """The current value of one time series or, with `is_delta`, its increase since the last push.

    `grows` marks a counter.
    """

    name: str
    labels: Pairs
    value: float
    grows: bool
    is_delta: bool


class Pushed(NamedTuple):
    """A decoded push. `left_out` is the number of omitted series: series beyond `series_max`, series with
    very long labels, histograms, and non-monotonic deltas.

    `about` contains the resource attributes of the client, as labels.
    """

    samples: list[Sample]
    left_out: int
    about: Pairs


def read_push(metrics: bytes, compression_type: int, max_bytes: int, series_max: int) -> Pushed:
    """Decode a push. Raises PushRefused if it is invalid, or exceeds `max_bytes` after decompression."""
    data = _parsed(_decompressed(metrics, compression_type, max_bytes))
    samples: list[Sample] = []
    left_out = 0
    about: dict[str, str] = {}
    for resource in data.resource_metrics:
        about.update(_labels(resource.resource.attributes, ABOUT))
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for sample in _samples(metric):
                    if sample is None or len(samples) >= series_max or _length(sample.labels) > _TEXT_MAX:
                        left_out += 1
                    else:
                        samples.append(sample)
    return Pushed(samples, left_out, bounded(about, _TEXT_MAX))


def _decompressed(metrics: bytes, compression_type: int, max_bytes: int) -> bytes:
    try:
        return decompress(compression_type, metrics, quick_bytes=max_bytes)
    except TakesLong:
        problem = f"{len(metrics)} bytes decompress to more than {max_bytes}"
        raise PushRefused(problem, is_too_large=True) from None
    except StorageError as error:
        raise PushRefused(str(error)) from error


def _parsed(data: bytes) -> Any:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    if fields_up_to(_FIELDS_MAX, data, MetricsData.DESCRIPTOR) > _FIELDS_MAX:
        raise PushRefused(f"it has more than {_FIELDS_MAX} fields", is_too_large=True)
    try:
        return MetricsData.FromString(data)
    except (DecodeError, RecursionError) as error:
        raise PushRefused(f"not an OTLP MetricsData message: {error}") from error


def _samples(metric: Metric) -> Iterator[Sample | None]:
    """Yield the samples of a metric, and None for unsupported samples."""
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    data = getattr(metric, kind)
    grows = kind == "sum" and data.is_monotonic
    is_delta = kind == "sum" and data.aggregation_temporality == _DELTA
    if kind not in ("gauge", "sum") or (is_delta and not grows):
        yield from (None for _ in data.data_points)
        return
    name = family_name(metric.name, grows=grows)
    for point in data.data_points:
        which = point.WhichOneof("value")
        if which is None:
            # Skip a sample without a value. OTLP marks the end of a series with such a sample.
            continue
        value = float(getattr(point, which))
        yield Sample(name, bounded(dict(_labels(point.attributes, IDENTITY))), value, grows, is_delta)


def family_name(name: str, *, grows: bool) -> str:
    """Return the Prometheus name of a metric. Names other than Kafka's get the prefix `client_`, so that
    clients cannot add samples to the broker's families.
    """
    found = _NOT_IN_NAMES.sub("_", name[:_NAME_MAX]).strip("_")
    if not found.startswith(_KAFKAS):
        found = _OTHERS + found
    return found + "_total" if grows and not found.endswith("_total") else found


def _labels(attributes: Iterable[Any], without: Iterable[str]) -> Iterator[tuple[str, str]]:
    for count, attribute in enumerate(attributes):
        if count >= _LABELS_MAX:
            return
        name = _NOT_IN_NAMES.sub("_", attribute.key[:_NAME_MAX])
        if not name or name[0].isdigit():
            name = "key_" + name
        # Add a prefix to the name, because Prometheus reserves names that begin with two underscores.
        if name.startswith("__"):
            name = "key" + name
        kind = attribute.value.WhichOneof("value")
        if kind in ("string_value", "int_value", "double_value", "bool_value") and name not in without:
            value = getattr(attribute.value, kind)
            yield name, str(value).lower() if kind == "bool_value" else str(value)


def bounded(labels: Mapping[str, str], text_max: int | None = None) -> Pairs:
    """Return the labels, sorted by name. Long values are truncated. Labels beyond a total of `text_max`
    characters are omitted.
    """
    found: Pairs = ()
    for name, value in sorted(labels.items()):
        with_it = (*found, (sys.intern(name), value[:_VALUE_MAX]))
        if text_max is None or _length(with_it) < text_max:
            found = with_it
    return found


def _length(labels: Pairs) -> int:
    return sum(len(name) + len(value) + _AROUND for name, value in labels)


_VARINT, _EIGHT_BYTES, _LENGTH, _GROUP, _GROUP_END, _FOUR_BYTES = range(6)
_SCALAR_BYTES: Final = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4, _GROUP: 0, _GROUP_END: 0}


def fields_up_to(most: int, data: bytes, kind: Descriptor) -> int:
    """Count the fields in a message of this kind, including nested messages, up to `most + 1`.

    The official parser blocks the interpreter during its call: four MiB of empty messages, two bytes each,
    take 60 to 200 ms and 150 MiB. A limit on the number of fields bounds both. Fields are scanned in the
    parser's order, so that the parser stops at the same invalid bytes as this scan.
    """
    around: list[tuple[int, dict[int, Descriptor]]] = []
    position, end, inside = 0, len(data), _messages_in(kind)
    count = 0
    try:
        while count <= most:
            while position >= end:
                if not around:
                    return count
                end, inside = around.pop()
            count += 1
            tag, position = _varint(data, position)
            wire_type = tag & 7
            if tag <= 7:
                # Stop: the bytes are invalid, because no field has the number 0.
                break
            if wire_type == _LENGTH:
                size, position = _varint(data, position)
                if position + size > end:
                    break
                child = inside.get(tag >> 3)
                if child is None:
                    position += size
                else:
                    around.append((end, inside))
                    end, inside = position + size, _messages_in(child)
            elif wire_type == _VARINT:
                _, position = _varint(data, position)
            else:
                position += _SCALAR_BYTES[wire_type]
    except (IndexError, KeyError):
        # Stop counting, because the bytes are invalid here.
        pass
    return count


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Decode a varint, and return it with the position after it."""
    value = data[position]
    position += 1
    if value < 128:
        return value, position
    value &= 127
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise IndexError("the varint is too long")


@cache
def _messages_in(kind: Descriptor) -> dict[int, Descriptor]:
    return {field.number: field.message_type for field in kind.fields if field.message_type is not None}
