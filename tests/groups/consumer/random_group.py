"""A group that changes at random, as a GroupSpec and as a question for Kafka's own assignors."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from kafka_compat.groups.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    GroupSpec,
    MemberSpec,
    TargetAssignment,
)
from kafka_compat.groups.consumer.java_order import TimelineOrder
from kafka_compat.groups.consumer.subscriptions import subscribed_names
from kafka_compat.long_work import Steps
from kafka_compat.storage.directories.checkpoints import encode_topic_id

RACKS = ("a", "b", None)


def finished(steps: Steps[TargetAssignment]) -> TargetAssignment:
    """Run all steps of an assignor, and return the target assignment."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: TargetAssignment = stop.value
            return result


class Member:
    def __init__(self, instance_id: str | None, names: list[str], regex: str) -> None:
        self.instance_id = instance_id
        self.names = names
        self.regex = regex
        """A key of `RandomGroup.matches`, or empty."""
        self.target: Assignment | None = None
        """None until the first target assignment with the member."""


class RandomGroup:
    """Members come, go and change their subscriptions; topics are created, deleted and grown."""

    def __init__(self, seed: int, max_members: int = 40, max_topics: int = 10) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self._max_members = self.random.choice((1, 3, 10, max_members))
        self._max_topics = self.random.choice((1, 3, max_topics))
        self._has_equal_subscriptions = self.random.random() < 0.5
        self._max_partitions = self.random.choice((3, 20, 100, 500))
        self._colliding = self.random.random() < 0.2
        self.topics: dict[str, tuple[UUID, int]] = {}
        self.members: dict[str, Member] = {}
        self.matches: dict[str, list[str]] = {}
        """The names that regular expressions match, as Kafka stores them: sorted."""
        self.joining: str | None = None
        """The member that is not yet in the group's map while its first target is computed."""
        self._history: list[str] = []
        self._count = 0
        for _ in range(self.random.randint(0, self._max_topics)):
            self._create_topic()
        if not self._has_equal_subscriptions and self.random.random() < 0.5:
            self.matches = {"a": [], "b": self._some_names(), "c": self._some_names()}
        for _ in range(self.random.randint(0, self._max_members)):
            self._join()
        self._admit()

    @classmethod
    def large(cls, seed: int) -> RandomGroup:
        """Return a group whose members, up to 130, have many partitions of few topics."""
        group = cls(seed, 130, 4)
        group._max_members = group.random.choice((64, 96, 130))
        group._max_partitions = 2000
        group._create_topic()
        group._create_topic()
        for _ in range(group.random.randint(group._max_members - 6, group._max_members)):
            group._join()
        return group

    def change(self) -> None:
        """Change the group at random."""
        self._admit()
        for _ in range(self.random.choice((1, 1, 2, 5))):
            change = self.random.choice(
                (
                    self._join,
                    self._join,
                    self._leave,
                    self._create_topic,
                    self._delete_topic,
                    self._grow_topic,
                    self._resubscribe,
                )
            )
            self._admit()
            change()

    def store(self, target: TargetAssignment) -> None:
        """Make the target assignment the current one."""
        for member_id, assignment in target.items():
            self.members[member_id].target = assignment

    @property
    def is_homogeneous(self) -> bool:
        members = self.members.values()
        return len({frozenset(member.names) for member in members}) < 2 and not any(
            self.matches.get(member.regex) for member in members
        )

    def partition_counts(self) -> dict[UUID, int]:
        return dict(self.topics.values())

    def spec(self) -> GroupSpec:
        order = TimelineOrder()
        for event in self._history:
            if event[0] == "+":
                order.put(event[1:])
            else:
                order.remove(event[1:])
        member_ids = order.ordered_keys() + ([self.joining] if self.joining is not None else [])
        specs: dict[str, MemberSpec] = {}
        subscriptions: dict[tuple[str, ...], tuple[UUID, ...]] = {}
        """Members with equal subscriptions share a tuple."""
        for member_id in member_ids:
            member = self.members[member_id]
            names = tuple(subscribed_names(member.names, self.matches.get(member.regex, [])))
            if names not in subscriptions:
                subscriptions[names] = tuple(self.topics[name][0] for name in names if name in self.topics)
            specs[member_id] = MemberSpec(
                member.instance_id,
                None,
                subscriptions[names],
                len(names),
                {} if member.target is None else member.target,
            )
        return GroupSpec(specs, self.is_homogeneous)

    def question(self, assignor: str) -> dict[str, Any]:
        return {
            "kind": "assign",
            "assignor": assignor,
            "homogeneous": self.is_homogeneous,
            "history": self._history,
            "joining": self.joining,
            "racks": RACKS,
            "topics": self.described_topics(),
            "matches": self.matches,
            "members": [
                {
                    "id": member_id,
                    "instance": member.instance_id,
                    "rack": None,
                    "names": member.names,
                    "regex": member.regex,
                    "target": None if member.target is None else as_record(member.target),
                }
                for member_id, member in self.members.items()
            ],
        }

    def described_topics(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "id": encode_topic_id(topic_id), "partitions": [[0]] * count}
            for name, (topic_id, count) in self.topics.items()
        ]

    def answer(self, assignor: Assignor) -> tuple[dict[str, Any], TargetAssignment]:
        """Return what Kafka's assignor must answer to the question if it does the same as this one."""
        spec = self.spec()
        target = finished(assignor.assign(spec, self.partition_counts()))
        records = [
            [member_id, as_record(assignment)]
            for member_id, assignment in target.items()
            if self.members[member_id].target is None or assignment is not spec.members[member_id].assignment
        ]
        return {"records": records, "members": list(spec.members)}, target

    def _join(self) -> None:
        self._admit()
        if len(self.members) >= self._max_members:
            return
        self._count += 1
        member_id = self._new_id()
        if member_id in self.members:
            return
        is_static = self.random.random() < 0.2
        instance_id = f"instance-{self._count * 7919 % 10007}-é" if is_static else None
        regex = self.random.choice(list(self.matches)) if self.matches and self.random.random() < 0.5 else ""
        self.members[member_id] = Member(instance_id, self._subscription(), regex)
        self.joining = member_id

    def _new_id(self) -> str:
        if self._colliding:
            # Strings of these pairs have the same hash code.
            return "".join(self.random.choice(("Aa", "BB")) for _ in range(6))
        return encode_topic_id(UUID(int=self.random.getrandbits(128)))

    def _admit(self) -> None:
        if self.joining is not None:
            self._history.append(f"+{self.joining}")
            self.joining = None

    def _leave(self) -> None:
        if self.members:
            member_id = self.random.choice(list(self.members))
            del self.members[member_id]
            self._history.append(f"-{member_id}")

    def _subscription(self) -> list[str]:
        if self._has_equal_subscriptions and self.members:
            return next(iter(self.members.values())).names
        names = [*self.topics, "missing", "absent"]
        return self.random.sample(names, self.random.randint(0, len(names)))

    def _some_names(self) -> list[str]:
        return sorted(self.random.sample(list(self.topics), self.random.randint(0, len(self.topics))))

    def _resubscribe(self) -> None:
        if self._has_equal_subscriptions:
            names = [*self.topics, "missing"]
            names = self.random.sample(names, self.random.randint(0, len(names)))
            for member in self.members.values():
                member.names = names
        elif self.members:
            self.random.choice(list(self.members.values())).names = self._subscription()

    def _create_topic(self) -> None:
        if len(self.topics) < self._max_topics:
            self._count += 1
            name = f"topic-{self._count}"
            number = self.random.getrandbits(128)
            if self._colliding:
                # Topic IDs with the same two halves have the hash code 0.
                number = (number & 0xFFFFFFFFFFFFFFFF) * (1 << 64 | 1)
            self.topics[name] = (UUID(int=number), self.random.randint(1, self._max_partitions))

    def _delete_topic(self) -> None:
        if self.topics:
            del self.topics[self.random.choice(list(self.topics))]

    def _grow_topic(self) -> None:
        if self.topics:
            name = self.random.choice(list(self.topics))
            topic_id, count = self.topics[name]
            self.topics[name] = (topic_id, count + self.random.randint(1, self._max_partitions))


def as_record(assignment: Assignment) -> list[Any]:
    """Return the fields of the assignment's record in `__consumer_offsets`."""
    return [[encode_topic_id(topic_id), list(partitions)] for topic_id, partitions in assignment.items()]
