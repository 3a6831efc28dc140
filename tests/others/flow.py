"""A flow of numbered records through a program of another project, while it and its broker are killed.

The program reads `lines`, whose values are the numbers 0, 1, 2, …, and writes a record to `counts` for each.
The value is the number or, if the program counts, the number and how many records of the same key it has
read: "17" or "17:3".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.others.program import WAIT_S, Program
from tests.others.servers import kill_and_start
from tests.support.process import wait_until
from tests.support.servers import Server
from tests.transactions.programs import new_consumer

PARTITIONS = 2
KEYS = 10
RECORDS = 1_800


def create_topics(address: str, *topics: NewTopic) -> None:
    """Create topics, and wait until they exist."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    for created in admin.create_topics(list(topics)).values():
        created.result(60)


def produce(address: str, topic: str, numbers: Sequence[int]) -> None:
    """Write numbers as values, whose keys are their last digits."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 2})
    for number in numbers:
        producer.produce(topic, str(number), str(number % KEYS))
    assert producer.flush(60) == 0


def read_messages(address: str, topic: str, partitions: int = PARTITIONS) -> list[Message]:
    """Return the records in a topic, with read_committed."""
    consumer = new_consumer(address, "reader")
    found: list[Message] = []
    ended: set[int] = set()
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        while len(ended) < partitions:
            for message in consumer.consume(500, 1.0):
                if message.error() is not None:
                    ended.add(message.partition() or 0)
                else:
                    found.append(message)
    finally:
        consumer.close()
    return found


def read(address: str, topic: str, partitions: int = PARTITIONS) -> list[tuple[str, str]]:
    """Return the keys and values in a topic, with read_committed."""
    return [
        ((each.key() or b"").decode(), (each.value() or b"").decode())
        for each in read_messages(address, topic, partitions)
    ]


def number_of(value: str) -> int:
    """Return the number in a value."""
    return int(value.partition(":")[0])


@dataclass
class Flow:
    """A flow through two topics of a broker."""

    broker: Server
    name: str
    """Prefix of the topics."""
    _written: int = field(default=0, init=False)

    @property
    def lines(self) -> str:
        return f"{self.name}-lines"

    @property
    def counts(self) -> str:
        return f"{self.name}-counts"

    def create_topics(self, *others: NewTopic) -> None:
        """Create both topics, and others that the program needs."""
        own = [NewTopic(name, PARTITIONS, 1) for name in (self.lines, self.counts)]
        create_topics(self.broker.address, *own, *others)

    def write(self, share: int = 3) -> None:
        """Write one of `share` equal parts of the records."""
        end = self._written + RECORDS // share
        self._put(range(self._written, end))
        self._written = end

    def _put(self, numbers: Sequence[int]) -> None:
        """Write numbers to where the program reads them."""
        produce(self.broker.address, self.lines, numbers)

    def await_numbers(self, share: float, program: Program) -> None:
        """Wait until the program has written records for a share of all numbers written."""
        wanted = self._written * share

        def enough() -> bool:
            assert program.running, "the program ended"
            return len(self._numbers()) >= wanted

        wait_until(enough, WAIT_S, f"{wanted:.0f} numbers in {self.counts}", 1.0)

    def with_kills(self, start: Callable[[], Program], *, kill_program: bool = True) -> None:
        """Write everything while the program works, the broker is killed and, with `kill_program`, the
        program. Wait until there is a record for every number.
        """
        self.write()
        program = start()
        try:
            self.await_numbers(0.3, program)
            self.write()
            kill_and_start(self.broker)
            self.await_numbers(0.8, program)
            if kill_program:
                program.kill()
                self.write()
                program = start()
            else:
                self.write()
            self.await_numbers(1.0, program)
            program.stop()
        finally:
            program.kill()

    def check_at_least_once(self) -> None:
        """Check that there is a record for every number."""
        assert set(self._numbers()) == set(range(self._written))

    def check_once(self) -> None:
        """Check that there is exactly one record for every number."""
        repeated = {number: count for number, count in self._numbers().items() if count > 1}
        assert repeated == {}
        self.check_at_least_once()

    def check_few_repeated(self) -> None:
        """Check that at most half of the numbers have more than one record: the program did not start from
        the beginning after it was killed.
        """
        assert sum(count > 1 for count in self._numbers().values()) <= self._written // 2

    def check_counts(self) -> None:
        """Check that the counts of each key are 1, 2, 3, …"""
        found: dict[str, list[int]] = defaultdict(list)
        for key, value in read(self.broker.address, self.counts):
            found[key].append(int(value.partition(":")[2]))
        expected = list(range(1, self._written // KEYS + 1))
        wrong = {key: counts for key, counts in found.items() if counts != expected}
        assert wrong == {} and len(found) == KEYS

    def _numbers(self) -> Counter[int]:
        return Counter(number_of(value) for _, value in read(self.broker.address, self.counts))
