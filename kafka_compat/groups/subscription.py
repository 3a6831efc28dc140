"""The one part of the consumer protocol that the broker reads: the topics a member subscribes to.

Source: ConsumerProtocolSubscription, whose versions all begin with the version and an array of topic names.
It is needed only to keep the offsets of subscribed topics from expiring (KIP-211) or being deleted
(KIP-496).
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import error as StructError
from struct import unpack_from


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics that any of the members subscribes to; None when one of them is not a subscription."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            _read_topics(subscription, topics)
    except (StructError, UnicodeDecodeError, ValueError):
        return None
    return frozenset(topics)


def _read_topics(subscription: bytes, topics: set[str]) -> None:
    version, count = unpack_from(">hi", subscription)
    if version < 0 or count < 0:
        raise ValueError("not a consumer subscription")
    position = 6
    for _ in range(count):
        (length,) = unpack_from(">h", subscription, position)
        position += 2
        end = position + length
        if length < 0 or end > len(subscription):
            raise ValueError("a topic name runs past the end")
        topics.add(subscription[position:end].decode())
        position = end
