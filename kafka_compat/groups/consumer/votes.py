"""The assignors that the members of a group prefer.

If several assignors have the most votes, Kafka takes the first one of a hash table, whose order depends on
which member votes. Votes are counted in tables with the same orders, so that groups with equal histories use
the same assignor.
"""

from collections import Counter

from kafka_compat.groups.consumer.java_order import HashTable, TimelineOrder, sized_capacity, string_hash


class AssignorVotes:
    """The votes of a group's stored members."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._order = TimelineOrder()

    def change(self, former: str | None, new: str | None) -> None:
        """Replace a member's vote. None is no vote."""
        if former is not None:
            self._counts[former] -= 1
            if not self._counts[former]:
                del self._counts[former]
                self._order.remove(former)
        if new is not None:
            self._counts[new] += 1
            self._order.put(new)

    @property
    def preferred(self) -> str | None:
        """The assignor with the most votes, or None."""
        return max(self._order.ordered_keys(), key=self._counts.__getitem__, default=None)

    def preferred_after(self, former: str | None, new: str | None) -> str | None:
        """Return the assignor with the most votes if a member replaces its vote."""
        counts = self._counts.copy()
        names = self._order.ordered_keys()
        table = HashTable(sized_capacity(len(names)))
        for index, name in enumerate(names):
            table.put(index, string_hash(name))
        if former is not None:
            counts[former] -= 1
            if not counts[former]:
                table.remove(names.index(former))
                names[names.index(former)] = ""
        if new is not None:
            if not counts[new]:
                names.append(new)
                table.compute_if_absent(len(names) - 1, string_hash(new))
            counts[new] += 1
        ordered = [names[index] for index in table.ordered_keys()]
        return max(ordered, key=counts.__getitem__, default=None)
