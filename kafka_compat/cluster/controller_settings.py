"""The controller's settings, derived from its broker's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kafka_compat.cluster.local_orders import LocalOrders
    from kafka_compat.config import BrokerConfig
    from kafka_compat.config.inter_broker_protocol import InterBrokerProtocol
    from kafka_compat.coordination.controller.outcomes import ControllerSettings
    from kafka_compat.security.broker_security import BrokerSecurity


class ControllerTermSettings(NamedTuple):
    """The settings of a controller term, and functions for access to brokers."""

    machine: ControllerSettings
    listener: str
    """The name of the inter-broker listener."""
    unclean_default: bool
    request_timeout_ms: int
    rebalance_interval_s: int | None
    """Value of leader.imbalance.check.interval.seconds, or None if auto.leader.rebalance.enable is false."""
    protocol: InterBrokerProtocol
    """The versions of requests to other brokers, and of nodes."""
    local: Callable[[], LocalOrders]
    """A function that returns the handler of the controller's requests to its own broker."""
    security: Callable[[], BrokerSecurity]
    """A function that returns the TLS and SASL settings for connections to other brokers."""


def term_settings(
    config: BrokerConfig, local: Callable[[], LocalOrders], security: Callable[[], BrokerSecurity]
) -> ControllerTermSettings:
    """Return the settings for a new term, from the current configuration."""
    from kafka_compat.coordination.controller.outcomes import ControllerSettings

    rebalance_s = config.int("leader.imbalance.check.interval.seconds")
    return ControllerTermSettings(
        machine=ControllerSettings(
            delete_topic_enable=config.bool("delete.topic.enable"),
            leader_imbalance_per_broker_percentage=config.int("leader.imbalance.per.broker.percentage"),
            recovers_leaders=config.inter_broker_protocol.recovers_leaders,
        ),
        listener=config.inter_broker_listener,
        unclean_default=config.bool("unclean.leader.election.enable"),
        request_timeout_ms=config.int("controller.socket.timeout.ms"),
        rebalance_interval_s=rebalance_s if config.bool("auto.leader.rebalance.enable") else None,
        protocol=config.inter_broker_protocol,
        local=local,
        security=security,
    )
