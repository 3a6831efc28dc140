"""Random operations of Kafka's tools that have the same result on every cluster. No I/O.

Replicas are always named explicitly, and each operation is valid, so that the state after it is determined by
the operations alone.
"""

from __future__ import annotations

import random
from typing import NamedTuple

BROKERS = (1, 2, 3)
TOPICS_MAX = 6
PARTITIONS_MAX = 4


class Operation(NamedTuple):
    """An operation: the tool with its arguments, or "controller" with the ID of the broker to elect. `plan`
    has the replicas, or the offset, for the tool's JSON file, by (topic, partition).
    """

    tool: str
    arguments: tuple[str, ...] = ()
    plan: dict[tuple[str, int], list[int]] = {}
    stdin: str = ""


class Operations:
    """A sequence of random operations, and what exists after them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self.topics: dict[str, list[list[int]]] = {}
        """The replicas of each partition of each topic."""
        self.controller = 1

    def next(self) -> Operation:
        """Return the next operation."""
        kinds = [self._create]
        if self.topics:
            kinds += [
                self._configure_topic,
                self._write,
                self._reassign,
                self._elect_leaders,
                self._commit,
                self._delete_records,
            ]
        kinds += [self._configure_broker, self._set_quota, self._set_acl, self._move_controller]
        if any(len(partitions) < PARTITIONS_MAX for partitions in self.topics.values()):
            kinds.append(self._add_partition)
        if len(self.topics) > 2:
            kinds.append(self._delete)
        if len(self.topics) >= TOPICS_MAX:
            kinds = [kind for kind in kinds if kind != self._create]
        return self._random.choice(kinds)()

    # --- kinds

    def _create(self) -> Operation:
        self._number += 1
        name = f"t{self._number}"
        self.topics[name] = [self._replicas() for _ in range(self._random.randint(1, 3))]
        arguments = ("--create", "--topic", name, "--replica-assignment", _assignment(self.topics[name]))
        return Operation("kafka-topics", arguments)

    def _delete(self) -> Operation:
        topic = self._topic()
        del self.topics[topic]
        return Operation("kafka-topics", ("--delete", "--topic", topic))

    def _add_partition(self) -> Operation:
        small = sorted(name for name, some in self.topics.items() if len(some) < PARTITIONS_MAX)
        topic = self._random.choice(small)
        # A partition has as many replicas as the others, or the tool refuses it.
        replicas = self._random.sample(BROKERS, len(self.topics[topic][0]))
        self.topics[topic].append(replicas)
        count = str(len(self.topics[topic]))
        assignment = ("--partitions", count, "--replica-assignment", _assignment(self.topics[topic]))
        return Operation("kafka-topics", ("--alter", "--topic", topic, *assignment))

    def _reassign(self) -> Operation:
        topic = self._topic()
        index = self._random.randrange(len(self.topics[topic]))
        count = len(self.topics[topic][0])
        self.topics[topic][index] = self._random.sample(BROKERS, count)
        return Operation(
            "kafka-reassign-partitions", ("--execute",), plan={(topic, index): self.topics[topic][index]}
        )

    def _elect_leaders(self) -> Operation:
        return Operation("kafka-leader-election", ("--election-type", "preferred", "--all-topic-partitions"))

    def _configure_topic(self) -> Operation:
        name = self._random.choice(("retention.ms", "max.message.bytes", "min.cleanable.dirty.ratio"))
        value = "0.25" if name.startswith("min") else str(self._random.randint(3_000_000, 9_000_000))
        change = self._random.choice(
            (("--add-config", f"{name}={value}"), ("--add-config", f"{name}={value}"))
        )
        return Operation("kafka-configs", ("--alter", "--topic", self._topic(), *change))

    def _configure_broker(self) -> Operation:
        value = f"log.cleaner.threads={self._random.randint(1, 2)}"
        if self._random.random() < 0.5:
            whom: tuple[str, ...] = ("--broker", str(self._random.choice(BROKERS)))
            value = f"log.retention.ms={self._random.randint(3_600_000, 9_600_000)}"
        else:
            whom = ("--broker-defaults",)
        return Operation("kafka-configs", ("--alter", *whom, "--add-config", value))

    def _set_quota(self) -> Operation:
        name = self._random.choice(("producer_byte_rate", "consumer_byte_rate"))
        value = f"{name}={self._random.randint(1_000_000, 9_000_000)}"
        kind, entity = self._random.choice((("--user", "ann"), ("--client", "app"), ("--user", "bob")))
        return Operation("kafka-configs", ("--alter", kind, entity, "--add-config", value))

    def _set_acl(self) -> Operation:
        verb = self._random.choice(("--add", "--add", "--remove"))
        who = ("--allow-principal", f"User:{self._random.choice(('ann', 'bob', 'cem'))}")
        what = (
            "--operation",
            self._random.choice(("Read", "Write", "Describe")),
            "--topic",
            f"t{self._random.randint(1, 3)}",
        )
        force = ("--force",) if verb == "--remove" else ()
        return Operation("kafka-acls", (verb, *who, *what, *force))

    def _write(self) -> Operation:
        lines = "".join(f"{number}\n" for number in range(self._random.randint(1, 5)))
        # The key selects the partition, as in every client of Kafka.
        return Operation(
            "kafka-console-producer",
            ("--topic", self._topic(), "--property", "parse.key=true", "--property", "key.separator=:"),
            stdin="".join(f"{line}:{line}\n" for line in lines.split()),
        )

    def _commit(self) -> Operation:
        topic = self._topic()
        place = f"{topic}:{self._random.randrange(len(self.topics[topic]))}"
        group = self._random.choice(("g1", "g2"))
        where = ("--group", group, "--topic", place, "--reset-offsets", "--to-latest", "--execute")
        return Operation("kafka-consumer-groups", where)

    def _delete_records(self) -> Operation:
        topic = self._topic()
        return Operation("kafka-delete-records", plan={(topic, 0): [-1]})

    def _move_controller(self) -> Operation:
        self.controller = self._random.choice([each for each in BROKERS if each != self.controller])
        return Operation("controller", (str(self.controller),))

    # --- choices

    def _topic(self) -> str:
        return self._random.choice(sorted(self.topics))

    def _replicas(self) -> list[int]:
        return self._random.sample(BROKERS, 2)


def _assignment(partitions: list[list[int]]) -> str:
    return ",".join(":".join(map(str, replicas)) for replicas in partitions)
