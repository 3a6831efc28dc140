"""TransactionSettings from the broker's configuration."""

from __future__ import annotations

from kafka_compat.config import BrokerConfig
from kafka_compat.transactions.transaction_states import TransactionSettings


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
