"""A client's push of metrics on the wire."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection


def gauges(values: Mapping[str, float]) -> bytes:
    """Return MetricsData with these gauges, by name."""
    told = MetricsData()
    scope = told.resource_metrics.add().scope_metrics.add()
    for name, value in values.items():
        scope.metrics.add(name=name).gauge.data_points.add(as_double=value)
    data: bytes = told.SerializeToString()
    return data


def push(connection: Connection, data: bytes, codec: int = 0, instance_id: uuid.UUID | None = None) -> int:
    """Push data as a new client, and return the error code."""
    instance = {"client_instance_id": instance_id or uuid.uuid4()}
    known = connection.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, instance)
    request = {
        **instance,
        "subscription_id": known["subscription_id"],
        "terminating": False,
        "compression_type": codec,
        "metrics": data,
    }
    code: int = connection.ask(ApiKey.PUSH_TELEMETRY, 0, request)["error_code"]
    return code
