"""The subscribed topic names of a member, in the iteration order of Kafka's sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.groups.consumer.java_order import copy_capacity, string_order

if TYPE_CHECKING:
    from collections.abc import Sequence


def subscribed_names(names: Sequence[str], matched_names: Sequence[str]) -> list[str]:
    """Return the names of a member's topics: `names`, to which it subscribes by name, and `matched_names`,
    which its regular expression matches.

    Both must be in the order in which Kafka adds them to a HashSet. The order is alphabetical, as in the
    records of `__consumer_offsets`, but the names of a member that is joining, or is changing its
    subscription, have the order of the request.
    """
    by_name = _set_order(names)
    by_pattern = _set_order(matched_names)
    larger, smaller = (by_name, by_pattern) if len(by_name) > len(by_pattern) else (by_pattern, by_name)
    contained = set(larger)
    return larger + [name for name in smaller if name not in contained]


def _set_order(names: Sequence[str]) -> list[str]:
    return string_order(list(dict.fromkeys(names)), copy_capacity(len(names)))
