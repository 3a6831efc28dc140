"""Read the topics to which the members of a classic group subscribe from the members' metadata."""

from collections.abc import Iterable
from struct import error as StructError
from struct import unpack_from
from typing import Final

_TOPICS_MAX: Final = 50_000
"""Maximum number of names in the different subscriptions of a group that are read."""


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics to which any member subscribes, or None if a subscription cannot be parsed.

    Offsets for subscribed topics must neither expire (KIP-211) nor be deleted (KIP-496). The broker reads no
    other part of the consumer protocol: every version of ConsumerProtocolSubscription begins with the version
    and an array of topic names. If there are too many names to read between two requests, the subscription is
    unknown. Equal arrays, which the members of most groups have, are read once.
    """
    topics: set[str] = set()
    count = 0
    known = b""
    try:
        for subscription in subscriptions:
            if known and subscription.startswith(known):
                continue
            count += max(_topic_count(subscription), 0)
            if count > _TOPICS_MAX:
                return None
            end = _read_topics(subscription, topics)
            known = subscription[:end]
    except (StructError, UnicodeDecodeError, ValueError):
        return None
    return frozenset(topics)


def _topic_count(subscription: bytes) -> int:
    (count,) = unpack_from(">i", subscription, 2)
    return int(count)


def _read_topics(subscription: bytes, topics: set[str]) -> int:
    """Add the topics of a subscription, and return the position after them."""
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
    return position
