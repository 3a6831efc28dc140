"""What clients may take of one broker, by its settings: connections, memory, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.config import BrokerConfig
from kafka_compat.lazy import Lazy
from kafka_compat.network.limits import UNLIMITED, Limits, bound
from kafka_compat.network.server import Server

if TYPE_CHECKING:
    from kafka_compat.quotas.connection_rates import ConnectionRates


def limits_of(config: BrokerConfig) -> Limits:
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
        connections_per_listener=_by_listener(config, "max.connections"),
        inter_broker_listener=config.inter_broker_listener,
    )


def _by_listener(config: BrokerConfig, name: str) -> dict[str, int]:
    return {listener.name: config.for_listener(listener.name).int(name) for listener in config.listeners}


def limit_connections(config: BrokerConfig, server: Server, rates: Lazy[ConnectionRates]) -> None:
    """Obey the settings of now."""
    name = "max.connection.creation.rate"
    rate, by_listener = config.int(name), _by_listener(config, name)
    if rates.made is not None or min(rate, *by_listener.values()) < UNLIMITED:
        rates.get().limit(rate, by_listener)
    server.set_limits(limits_of(config))


def connection_rates(config: BrokerConfig) -> ConnectionRates:
    from kafka_compat.quotas.connection_rates import ConnectionRates
    from kafka_compat.quotas.rates import quota_windows

    return ConnectionRates(quota_windows(config.int))
