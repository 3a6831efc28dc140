"""Changes of the metadata that several tests make."""

from __future__ import annotations

from kafka_compat.metadata.cache import MetadataCache


def remove_topic(cache: MetadataCache, name: str) -> None:
    """Remove a topic, if it exists, and publish the removal."""
    change = cache.change()
    change.remove_topic(name)
    change.publish()
