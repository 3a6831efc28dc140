"""Election strategies, which select the replica that becomes leader of a partition. No I/O.

- The leader is the first live in-sync replica in the order of the assignment.
- The preferred leader is the first replica of the assignment. It is elected if it is alive and in sync.
- A live replica that is not in sync is elected only if unclean election is allowed. Records may then be lost.
- In a controlled shutdown, the departing broker is not elected.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Elected(NamedTuple):
    """A leader and its initial in-sync replicas. `unclean` is true if the leader was not in the ISR."""

    leader: int
    isr: tuple[int, ...]
    unclean: bool = False


def elect_leader(
    replicas: Sequence[int], isr: Sequence[int], alive: Collection[int], *, unclean_allowed: bool = False
) -> Elected | None:
    """Elect a leader for a partition without a leader. Return None if no replica is eligible."""
    in_sync = tuple(broker for broker in isr if broker in alive)
    for broker in replicas:
        if broker in in_sync:
            return Elected(broker, in_sync)
    if unclean_allowed:
        for broker in replicas:
            if broker in alive:
                return Elected(broker, (broker,), unclean=True)
    return None


def elect_preferred(replicas: Sequence[int], isr: Sequence[int], alive: Collection[int]) -> Elected | None:
    """Elect the preferred leader, or return None if it is not alive and in sync. The ISR is unchanged."""
    if replicas and replicas[0] in alive and replicas[0] in isr:
        return Elected(replicas[0], tuple(isr))
    return None


def elect_on_shutdown(
    replicas: Sequence[int], isr: Sequence[int], alive: Collection[int], leaving: Collection[int]
) -> Elected | None:
    """Elect a leader other than the departing broker. Return None if no other replica is in sync."""
    in_sync = tuple(broker for broker in isr if broker not in leaving)
    for broker in replicas:
        if broker in alive and broker in in_sync:
            return Elected(broker, in_sync)
    return None


def elect_for_reassignment(
    new_replicas: Sequence[int], isr: Sequence[int], alive: Collection[int]
) -> Elected | None:
    """Elect a leader among the target replicas of a reassignment. Return None if none of them is in sync."""
    for broker in new_replicas:
        if broker in alive and broker in isr:
            return Elected(broker, tuple(isr))
    return None
