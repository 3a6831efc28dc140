"""Share groups behave as on Apache Kafka 4.4: the same histories lead to the same responses, states,
assignments and records.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import zip_longest

import pytest

from tests.conformance.wire import Connection
from tests.groups.share.histories import (
    SETTINGS,
    Ours,
    Theirs,
    comparable_description,
    comparable_records,
    learn,
    steps,
)
from tests.groups.sides import comparable
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka

SEEDS = range(500 if campaign.enabled() else 6)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    running = GenuineKafka(directory, SETTINGS, version=NEWEST_VERSION, mode="kraft")
    running.start(180)
    yield running
    running.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_of_a_share_group_is_the_same_as_on_apache_kafka(kafka: GenuineKafka, seed: int) -> None:
    with Connection(kafka.address) as connection:
        History(connection, seed).play()


class History:
    """One group on both brokers."""

    def __init__(self, connection: Connection, seed: int, run: str = "") -> None:
        """`run` distinguishes runs with the same broker."""
        self._seed = seed
        self._choose = random.Random(seed)
        size_max = 60 if seed % 5 == 0 else 7
        self._names = [f"topic-{seed}{run}-{name}" for name in "abc"[: self._choose.randint(1, 3)]]
        topics = {
            name: self._choose.randint(1, size_max) for name in self._names if self._choose.random() < 0.8
        }
        self._theirs = Theirs(connection, f"group-{seed}{run}")
        self._theirs.wait_ready()
        self._ids = self._theirs.create(topics) if topics else {}
        self._sizes = topics
        self._ours = Ours(f"group-{seed}{run}", topics, self._ids)
        self._told: list[str] = []

    def play(self) -> None:
        for what, member, request in steps(self._seed, self._names):
            if self._choose.random() < 0.07:
                self._change_topic(self._choose.choice(self._names))
            if self._choose.random() < 0.1:
                self._change_offsets()
            expected = self._theirs.heartbeat(request)
            self._told.append(f"{what} {request} -> {comparable(expected)}")
            assert comparable(self._ours.heartbeat(request)) == comparable(expected), self._story
            self._theirs.settle(self._ours.states())
            learn(member, what, expected)
            described = comparable_description(self._theirs.describe())
            assert comparable_description(self._ours.describe()) == described, self._story
        self._compare_records()

    def _compare_records(self) -> None:
        """Compare the records in `__consumer_offsets`, in their order, apart from times."""
        ours = comparable_records(self._ours.records())
        theirs = comparable_records(self._theirs.records())
        for number, (found, expected) in enumerate(zip_longest(ours, theirs)):
            assert found == expected, f"{self._story}\nrecord {number}: {found}\nnot {expected}"

    @property
    def _story(self) -> str:
        return "\n".join(self._told)

    def _change_topic(self, name: str) -> None:
        size = self._sizes.get(name, 0)
        if not size or self._choose.random() < 0.7:
            self._sizes[name] = size + self._choose.randint(1, 3)
            if size:
                self._theirs.grow(name, self._ids[name], self._sizes[name])
            else:
                self._ids |= self._theirs.create({name: self._sizes[name]})
            self._ours.put(name, self._ids[name], self._sizes[name])
        else:
            del self._sizes[name]
            self._theirs.delete(name)
            self._ours.delete(name)
        self._told.append(f"{name} now has {self._sizes.get(name, 0)} partitions")

    def _change_offsets(self) -> None:
        """Alter or delete offsets, or delete the group. All fail while the group has members."""
        names = [*self._choose.sample(self._names, self._choose.randint(1, len(self._names)))]
        what = self._choose.choice(("alter", "alter", "delete offsets", "delete"))
        if what == "alter":
            offsets = {name: {self._choose.randint(0, 5): self._choose.randint(0, 9)} for name in names}
            expected = self._theirs.alter(offsets)
            self._told.append(f"alter {offsets} -> {expected}")
            assert self._ours.alter(offsets) == expected, self._story
        elif what == "delete offsets":
            expected = self._theirs.delete_offsets(names)
            self._told.append(f"delete offsets {names} -> {expected}")
            assert self._ours.delete_offsets(names) == expected, self._story
        else:
            expected = self._theirs.delete_group()
            self._told.append(f"delete the group -> {expected}")
            assert self._ours.delete_group() == expected, self._story
        self._theirs.settle(self._ours.states())
