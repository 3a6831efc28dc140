"""A broker's delegation tokens, out of its settings."""

from __future__ import annotations

from collections.abc import Callable

from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.security.tokens.delegation_token import Terms
from kafka_compat.security.tokens.keeper import Keeper
from kafka_compat.tasks import Tasks


async def make(
    config: BrokerConfig, secret_key: str, store: MetadataStore, tasks: Tasks, now_ms: Callable[[], int]
) -> Keeper:
    """With all tokens read. MetadataStoreError."""
    terms = Terms(
        config.int("delegation.token.max.lifetime.ms"), config.int("delegation.token.expiry.time.ms")
    )
    keeper = Keeper(store, secret_key, terms, tasks, now_ms)
    await keeper.start()
    return keeper
