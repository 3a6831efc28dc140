"""The subscribed topic names of a member, in the iteration order of Kafka's sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.java_order import copy_capacity, string_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence, Set


_EXACT_MAX: Final = 5_000
"""Number of names up to which names of missing topics are placed, too. Without them, the order differs from
Kafka's only if many names share a bin.
"""


def subscribed_names(
    names: Sequence[str],
    matched_names: Sequence[str],
    existing: Callable[[Collection[str]], Set[str]] = frozenset,
) -> list[str]:
    """Return the names of a member's topics: `names`, to which it subscribes by name, and `matched_names`,
    which its regular expression matches.

    Both must be in the order in which Kafka adds them to a HashSet. The order is alphabetical, as in the
    records of `__consumer_offsets`, but the names of a member that is joining, or is changing its
    subscription, have the order of the request. If there are very many names, only those that
    `existing` selects are returned.
    """
    by_name = _set_order(names, existing)
    by_pattern = _set_order(matched_names, existing)
    is_named_mostly = len(names) > len(matched_names)
    larger, smaller = (by_name, by_pattern) if is_named_mostly else (by_pattern, by_name)
    contained = set(larger)
    return larger + [name for name in smaller if name not in contained]


def _set_order(names: Sequence[str], existing: Callable[[Collection[str]], Set[str]]) -> list[str]:
    capacity = copy_capacity(len(names))
    if len(names) > _EXACT_MAX:
        selected = existing(names)
        names = [name for name in names if name in selected]
    return string_order(list(dict.fromkeys(names)), capacity)
