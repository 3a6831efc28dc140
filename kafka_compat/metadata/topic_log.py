"""What the log tells of topics that come, grow and go, once for each, by the broker that did it; and of the
partitions that a broker leads, in one line for many.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

log = logging.getLogger(__name__)

_NAMED_MAX = 10


def made(topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
    """A topic was made, with these partitions."""
    log.info("Topic %s is made: %s", topic, _partitions(replicas))


def extended(topic: str, before: int, added: Mapping[int, Sequence[int]]) -> None:
    """A topic that had `before` partitions has got these."""
    log.info("Topic %s has %d partitions now, %d more", topic, before + len(added), len(added))


def deleted(topic: str) -> None:
    """Nothing is left of a topic."""
    log.info("Topic %s is deleted", topic)


def leads_from_now_on(broker_id: int, partitions: Sequence[tuple[str, int]]) -> None:
    """A broker has begun to lead these partitions."""
    if partitions:
        log.info("Broker %d leads from now on %s", broker_id, _named(partitions))


def leads_no_more(broker_id: int, partitions: Sequence[tuple[str, int]]) -> None:
    """It leads these no more: others do, or nobody."""
    if partitions:
        log.info("Broker %d leads no more %s", broker_id, _named(partitions))


def _named(partitions: Sequence[tuple[str, int]]) -> str:
    """Partitions in a line: `3 partitions: a-0, a-1, b-0`, and no more names than a line holds."""
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
