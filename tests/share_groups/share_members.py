"""Java share consumers in processes of their own, and what happened to each record.

`ShareMembers` runs ShareMembers.java. Its events are lines:

delivered MEMBER PARTITION OFFSET NUMBER COUNT TYPE   a member got a record, and acknowledges it
completed MEMBER PARTITION OFFSET...                  the broker has stored acknowledgements
refused MEMBER PARTITION OFFSET... ERROR              the broker has rejected acknowledgements
failed MEMBER WHAT                                    an error
end                                                   all members have left

The value of a record is its number. In explicit mode, records whose number ends with 3 are always released,
with 5 released once, with 7 rejected, and with 9 renewed once; other records are accepted.
"""

from __future__ import annotations

import subprocess
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kafka_compat.protocol.api_keys import ApiKey
from tests.clients.programs import java_command
from tests.conformance.wire import Connection
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until

ACCEPT, RELEASE, REJECT, RENEW = "accept", "release", "reject", "renew"
IMPLICIT, EXPLICIT = "implicit", "explicit"
_SOURCE = Path(__file__).with_name("ShareMembers.java")


@dataclass
class Deliveries:
    """The deliveries of the records of one topic to a group. Records are (partition, offset)."""

    limit: int
    """The delivery count limit of the group."""
    counts: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    """The delivery counts with which each record was delivered, in order."""
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    accepted: Counter[tuple[int, int]] = field(default_factory=Counter)
    rejected: Counter[tuple[int, int]] = field(default_factory=Counter)
    released: set[tuple[int, int]] = field(default_factory=set)
    """Records whose last delivery at the limit was released."""
    refused: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    last_delivery_may_be_lost: set[tuple[int, int]] = field(default_factory=set)
    """Records with an acknowledgement whose result is unknown: the member or a broker was killed."""
    findings: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def finished(self) -> set[int]:
        """Return the numbers of the records that are not delivered again."""
        with self.lock:
            done = {*self.accepted, *self.rejected, *self.released}
            return {self.numbers[each] for each in done}


class ShareMembers:
    """Members of a share group in one JVM, which can be killed."""

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        group: str,
        log: Path,
        deliveries: Deliveries,
        *,
        members: int = 2,
        mode: str = EXPLICIT,
        acquire_mode: str = "batch_optimized",
        max_poll_records: int = 500,
        version: str = NEWEST_VERSION,
    ) -> None:
        self._deliveries = deliveries
        self._log = open(log, "ab")  # noqa: SIM115 - closed by `_end`
        self._pending: dict[tuple[int, int, int], tuple[str, int]] = {}
        """The type and delivery count of acknowledgements without a result, by member and record."""
        self.has_ended = False
        self._child = subprocess.Popen(
            [
                *java_command("ShareMembers", version, (str(_SOURCE),)),
                *(bootstrap_servers, topic, group, str(members), mode, acquire_mode, str(max_poll_records)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.poll() is None:
            self.kill()

    def stop(self, timeout_s: float = 60) -> None:
        """Let the members leave."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(timeout_s)
        self._end()

    def kill(self) -> None:
        """Kill the process with kill -9."""
        self._child.kill()
        self._child.wait()
        self._end()

    def _end(self) -> None:
        self._reader.join(30)
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()
        self._log.close()
        with self._deliveries.lock:
            self._deliveries.last_delivery_may_be_lost |= {each[1:] for each in self._pending}

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if not line.endswith("\n"):
                break  # The process was killed while it wrote the line.
            with self._deliveries.lock:
                self._event(line.split())

    def _event(self, words: list[str]) -> None:
        deliveries = self._deliveries
        what = words[0]
        if what == "delivered":
            member, partition, offset, number, count = map(int, words[1:6])
            record = partition, offset
            if self._pending.get((member, *record), ("", 0))[0] != RENEW:
                # After a renewal, the client returns the record again.
                deliveries.counts[record].append(count)
            if deliveries.numbers.setdefault(record, number) != number:
                deliveries.findings.append(f"{record} is not record {number}")
            if count > deliveries.limit:
                deliveries.findings.append(f"{record} was delivered {count} times")
            self._pending[member, partition, offset] = words[6], count
        elif what == "completed":
            member, partition, *offsets = map(int, words[1:])
            for offset in offsets:
                self._completed((member, partition, offset))
        elif what == "refused":
            deliveries.refused.append(" ".join(words))
            member, partition, *offsets = map(int, words[1:-1])
            for offset in offsets:
                self._pending.pop((member, partition, offset), None)
                deliveries.last_delivery_may_be_lost.add((partition, offset))
        elif what == "failed":
            deliveries.failures.append(" ".join(words))
        elif what == "end":
            self.has_ended = True

    def _completed(self, key: tuple[int, int, int]) -> None:
        kind, count = self._pending.get(key, ("", 0))
        record = key[1:]
        deliveries = self._deliveries
        if kind != RENEW:
            self._pending.pop(key, None)
        if kind == ACCEPT:
            deliveries.accepted[record] += 1
        elif kind == REJECT:
            deliveries.rejected[record] += 1
        elif kind == RELEASE and count >= deliveries.limit:
            deliveries.released.add(record)
        if deliveries.accepted[record] + deliveries.rejected[record] > 1:
            deliveries.findings.append(f"{record} was acknowledged twice")


def produce(bootstrap_servers: str, topic: str, count: int, partitions: int, first: int = 0) -> None:
    """Write records with these numbers, and wait until all are acknowledged."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5, "batch.num.messages": 50})
    errors: list[str] = []
    for number in range(first, first + count):
        producer.produce(
            topic,
            str(number).encode(),
            partition=number % partitions,
            on_delivery=lambda error, _: errors.append(str(error)) if error else None,
        )
        producer.poll(0)
    assert producer.flush(120) == 0
    assert not errors, errors[:5]


def configure_group(bootstrap_servers: str, group: str, values: dict[str, str]) -> None:
    """Set settings of the group."""
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in values.items()]
    resource = {"resource_type": 32, "resource_name": group, "configs": configs}
    with Connection(bootstrap_servers, 60) as connection:
        answer = connection.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
        assert not answer["responses"][0]["error_code"], answer
        asked = {"resource_type": 32, "resource_name": group, "configuration_keys": list(values)}

        def is_set() -> bool:
            found = connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [asked]})["results"][0]
            return {each["name"]: each["value"] for each in found["configs"]} == values

        wait_until(is_set, 60, "the settings of the group", 0.05)


def create_topic(bootstrap_servers: str, topic: str, partitions: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
