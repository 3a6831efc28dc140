"""What a broker counts where somebody hears of its metrics: where it has an HTTP listener, or pushes them.
Others load and do nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.metadata.feed import MetadataFeed
    from kafka_compat.network.connection import Connection
    from kafka_compat.network.dispatch import Dispatcher
    from kafka_compat.network.request_counts import RequestCounts
    from kafka_compat.quotas.enforcement import Enforcement
    from kafka_compat.replication.counts import Counts


def _is_wanted(config: BrokerConfig) -> bool:
    return bool(config.str("kafka.compat.http.listener") or config.str("kafka.compat.otlp.endpoint"))


def partition_counts(config: BrokerConfig, feed: MetadataFeed) -> Counts | None:
    """For its partitions and fetches."""
    if not _is_wanted(config):
        return None
    from kafka_compat.replication.counts import Counts

    counts = Counts()
    feed.subscribe(counts.on_metadata)
    return counts


def request_counts(config: BrokerConfig) -> RequestCounts | None:
    """For its dispatcher."""
    if not _is_wanted(config):
        return None
    from kafka_compat.network.request_counts import RequestCounts

    return RequestCounts()


def enforcement(config: BrokerConfig) -> type[Enforcement]:
    """What its quotas are enforced by."""
    if _is_wanted(config):
        from kafka_compat.quotas.counted_enforcement import CountedEnforcement

        return CountedEnforcement
    from kafka_compat.quotas.enforcement import Enforcement

    return Enforcement


def dispatch(
    dispatcher: Dispatcher, requests: RequestCounts | None
) -> Callable[[Connection, memoryview], bool]:
    """What serves a frame."""
    if requests is None:
        return dispatcher.dispatch
    requests.stand_before(dispatcher)
    return requests.dispatch
