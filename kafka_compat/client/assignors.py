"""Who consumes what: the assignors of Kafka's classic protocol that this client has; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kafka_compat.client.partitions import TopicPartition

Assignment = dict[str, list[TopicPartition]]


def assign_ranges(members: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Assignment:
    """`range`: of each topic a stretch for each member. `members` are their topics by member id, `counts` the
    partitions of topics.
    """
    found: Assignment = {member: [] for member in members}
    for topic in sorted({topic for topics in members.values() for topic in topics}):
        takers = sorted(member for member, topics in members.items() if topic in topics)
        each, more = divmod(counts.get(topic, 0), len(takers))
        start = 0
        for index, member in enumerate(takers):
            end = start + each + (index < more)
            found[member] += [(topic, number) for number in range(start, end)]
            start = end
    return found


def assign_in_turn(members: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Assignment:
    """`roundrobin`: the partitions of all topics, dealt out."""
    found: Assignment = {member: [] for member in members}
    order = sorted(members)
    turn = 0
    for topic in sorted({topic for topics in members.values() for topic in topics}):
        for number in range(counts.get(topic, 0)):
            while topic not in members[order[turn % len(order)]]:
                turn += 1
            found[order[turn % len(order)]].append((topic, number))
            turn += 1
    return found


ASSIGNORS: Final = {"range": assign_ranges, "roundrobin": assign_in_turn}
"""By the names that members of a group know them by."""
