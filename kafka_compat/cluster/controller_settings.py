"""What a broker's settings say of it as controller."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_compat.coordination.controller.outcomes import ControllerSettings
from kafka_compat.security.broker_security import NONE, BrokerSecurity


@dataclass(frozen=True)
class ControllerTermSettings:
    """What a controller obeys, beside what its machine does."""

    machine: ControllerSettings
    listener: str
    """The listener that brokers use among themselves."""
    unclean_default: bool
    request_timeout_ms: int
    rebalance_interval_s: int | None
    """leader.imbalance.check.interval.seconds; None without auto.leader.rebalance.enable."""
    security: BrokerSecurity = NONE
