"""The settings of transactions, and how they follow from the broker's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Broker settings that transactions obey, under Kafka's names and defaults."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_version: int = 0
    """The level of the feature transaction.version."""


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    """What server.properties says about transactions."""
    return TransactionSettings(
        transaction_max_timeout_ms=config.int("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=config.int("transactional.id.expiration.ms"),
        transaction_abort_timed_out_transaction_cleanup_interval_ms=config.int(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
        transaction_remove_expired_transaction_cleanup_interval_ms=config.int(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
        transaction_version=config.int("kafka.compat.transaction.version"),
    )
