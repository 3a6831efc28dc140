"""What a broker counts where somebody hears of its metrics: where it has an HTTP listener, or pushes them.
Others load and do nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.metadata.feed import MetadataFeed
    from kafka_compat.replication.counts import Counts


def is_wanted(config: BrokerConfig) -> bool:
    """Whether somebody hears of its metrics."""
    return bool(config.str("kafka.compat.http.listener") or config.str("kafka.compat.otlp.endpoint"))


def partition_counts(config: BrokerConfig, feed: MetadataFeed) -> Counts | None:
    """For its partitions and fetches."""
    if not is_wanted(config):
        return None
    from kafka_compat.replication.counts import Counts

    counts = Counts()
    feed.subscribe(counts.on_metadata)
    return counts
