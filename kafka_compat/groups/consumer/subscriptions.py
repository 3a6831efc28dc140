"""The subscribed topic names of a member, in the iteration order of Kafka's sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.java_order import copy_capacity, string_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_EXACT_MAX: Final = 5_000
"""Number of names up to which names of missing topics are placed, too. Without them, the order differs from
Kafka's only if many names share a bin.
"""


def subscribed_names(
    names: Sequence[str], matched_names: Sequence[str], exists: Callable[[str], bool] = lambda name: True
) -> list[str]:
    """Return the names of a member's topics: `names`, to which it subscribes by name, and `matched_names`,
    which its regular expression matches.

    Both must be in the order in which Kafka adds them to a HashSet. The order is alphabetical, as in the
    records of `__consumer_offsets`, but the names of a member that is joining, or is changing its
    subscription, have the order of the request. If there are very many names, only those that exist are
    returned.
    """
    by_name = _set_order(names, exists)
    by_pattern = _set_order(matched_names, exists)
    is_named_mostly = len(names) > len(matched_names)
    larger, smaller = (by_name, by_pattern) if is_named_mostly else (by_pattern, by_name)
    contained = set(larger)
    return larger + [name for name in smaller if name not in contained]


def _set_order(names: Sequence[str], exists: Callable[[str], bool]) -> list[str]:
    capacity = copy_capacity(len(names))
    if len(names) > _EXACT_MAX:
        names = [name for name in names if exists(name)]
    return string_order(list(dict.fromkeys(names)), capacity)
