"""Log lines for created, extended and deleted topics and leader changes: one line for many partitions."""

import logging
from collections.abc import Mapping, Sequence

log = logging.getLogger(__name__)

_NAMED_MAX = 10


def created(topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
    log.info("Created topic %s (%s)", topic, _partitions(replicas))


def grown(topic: str, before: int, added: Mapping[int, Sequence[int]]) -> None:
    """Log the partitions added to a topic that had `before` partitions."""
    log.info("Added %s to topic %s (now %d)", _counted(len(added), "partition"), topic, before + len(added))


def deleted(topic: str) -> None:
    log.info("Deleted topic %s", topic)


def became_leader(broker_id: int, partitions: Sequence[tuple[str, int]]) -> None:
    """Log the partitions of which `broker_id` became leader."""
    if partitions:
        log.info("Broker %d became leader of %s", broker_id, _named(partitions))


def lost_leadership(broker_id: int, partitions: Sequence[tuple[str, int]]) -> None:
    """Log the partitions of which `broker_id` is no longer leader."""
    if partitions:
        log.info("Broker %d is no longer leader of %s", broker_id, _named(partitions))


def _named(partitions: Sequence[tuple[str, int]]) -> str:
    """Format partitions as `3 partitions: a-0, a-1, b-0`, with a limited number of names."""
    count = len(partitions)
    names = [f"{topic}-{index}" for topic, index in sorted(partitions)[:_NAMED_MAX]]
    others = f" and {count - _NAMED_MAX} others" if count > _NAMED_MAX else ""
    return f"{_counted(count, 'partition')}: {', '.join(names)}{others}"


def _partitions(replicas: Mapping[int, Sequence[int]]) -> str:
    fewest, most = min(map(len, replicas.values())), max(map(len, replicas.values()))
    copies = _counted(most, "replica") + " each" if fewest == most else f"{fewest} to {most} replicas each"
    return f"{_counted(len(replicas), 'partition')}, {copies}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
