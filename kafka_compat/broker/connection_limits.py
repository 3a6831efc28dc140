"""Limits for the connections of a server, as configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_compat.network.admission import Limits, bound

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig, Listener
    from kafka_compat.quotas.connection_rates import ConnectionRates


def limits(config: BrokerConfig, controllers: Sequence[Listener] | None = None) -> Limits:
    """Return the limits for a broker's server or, with `controllers`, for that of controller listeners."""
    return Limits(
        request_max_bytes=config.int("socket.request.max.bytes"),
        idle_max_ms=config.int("connections.max.idle.ms"),
        connections_max=config.int("max.connections"),
        connections_per_ip_max=config.int("max.connections.per.ip"),
        frame_deadline_ms=config.int("kafka.compat.frame.timeout.ms"),
        send_buffer_bytes=config.int("socket.send.buffer.bytes"),
        receive_buffer_bytes=config.int("socket.receive.buffer.bytes"),
        connections_per_ip_overrides=config.connections_per_ip_overrides,
        request_memory_bytes=bound(config.int("queued.max.request.bytes")),
        answer_memory_bytes=bound(config.int("kafka.compat.queued.max.response.bytes")),
        connections_per_listener=by_listener(config, "max.connections", controllers),
        inter_broker_listener=config.inter_broker_listener if controllers is None else "",
    )


def by_listener(
    config: BrokerConfig, name: str, listeners: Sequence[Listener] | None = None
) -> dict[str, int]:
    """Return a setting's value for each listener, by default for those in config.listeners."""
    chosen = config.listeners if listeners is None else listeners
    return {listener.name: config.for_listener(listener.name).int(name) for listener in chosen}


def connection_rates(config: BrokerConfig) -> ConnectionRates:
    """Return the measured rates of new connections, with the windows of the quotas' settings."""
    from kafka_compat.quotas.connection_rates import ConnectionRates
    from kafka_compat.quotas.rates import quota_windows

    return ConnectionRates(quota_windows(config.int))
