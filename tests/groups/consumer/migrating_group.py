"""A group whose members move between the classic and the consumer protocol one after another, under load.

`MigratingGroup` runs MigratingGroup.java, in which a producer writes records to all partitions of the topic
at a steady rate, and each member commits after each poll. `History` contains its events, which are lines
"TIME_US EVENT ...":

mark NAME                             a phase begins
stored PARTITION NUMBER OFFSET        a record was acknowledged; NUMBER counts the records of the partition
read MEMBER PARTITION OFFSET:NUMBER...  a poll returned these records
committed MEMBER PARTITION:OFFSET...  a commit was acknowledged
rejected MEMBER ERROR                 a commit failed because the group rebalances, which applications expect
assigned, revoked, lost MEMBER PARTITION...
failed WHO WHAT                       an error that no application expects
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple, Self

from tests.clients.programs import java_command
from tests.support.kafka_jars import NEWEST_VERSION

TOPIC = "moving"
CLASSIC = "classic"
CONSUMER = "consumer"
HEARTBEAT_MS = 100
"""The heartbeat interval of members of both protocols. Kafka's defaults are 3 s (classic) and 5 s (consumer):
members would wait for their next heartbeat most of the time.
"""
SESSION_MS = 6000
"""The session timeout of members of both protocols. Clients do not repeat a request to leave the group, so a
member stays in the group for this time if its coordinator was just being restarted.
"""
SETTINGS: Mapping[str, str] = {
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
}
_SETTLE_S = 60
_SOURCE = Path(__file__).with_name("MigratingGroup.java")


class MigratingGroup:
    """The members of one group and their producer, in one JVM."""

    def __init__(
        self,
        bootstrap_servers: str,
        directory: Path,
        *,
        members: int,
        partitions: int,
        pause_ms: int = 20,
        is_static: bool = False,
        heartbeat_ms: int = HEARTBEAT_MS,
    ) -> None:
        """`pause_ms` is the time between two records of a partition. `heartbeat_ms` is the heartbeat interval
        of classic members; that of other members is a setting of the broker.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.members = range(members)
        self._events = directory / "events"
        self._log = open(directory / "members.log", "wb")  # noqa: SIM115 - closed by `close`
        numbers = (partitions, members, pause_ms, heartbeat_ms, SESSION_MS)
        self._child = subprocess.Popen(
            [
                *java_command("MigratingGroup", NEWEST_VERSION, (str(_SOURCE),)),
                *(bootstrap_servers, TOPIC, *map(str, numbers)),
                *("static" if is_static else "dynamic", str(self._events)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            assert stream is not None
            stream.close()
        self._log.close()

    def start_all(self, protocol: str) -> None:
        """Start the producer and all members, and wait until the group is balanced."""
        self._do("produce")
        for member in self.members:
            self._do(f"start {member} {protocol}")
        self.settle()

    def move_to(self, protocol: str) -> None:
        """Restart the members one after another with this protocol. After each, wait until the group is
        balanced.
        """
        self._do(f"mark {protocol}")
        for member in self.members:
            self._do(f"stop {member}")
            self._do(f"start {member} {protocol}")
            self.settle()

    def settle(self) -> None:
        """Wait until all members have the same number of partitions."""
        self._do(f"settle {_SETTLE_S * 1000}")

    def finish(self) -> History:
        """Stop the producer, wait until all its records are committed, and stop the members."""
        self._do("mark end")
        self._do(f"drain {_SETTLE_S * 1000}")
        self._do("finish")
        with open(self._events) as events:
            return History.of(events)

    def _do(self, command: str) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        print(command, file=self._child.stdin, flush=True)
        answer = self._child.stdout.readline().strip()
        assert answer == "ok", f"The command `{command}` failed: {answer}. See {self._log.name}"


class Phase(NamedTuple):
    """The time in which members move to the protocol `name`."""

    name: str
    start_us: int
    end_us: int


@dataclass
class History:
    """What a group has read and committed, with times in µs since some moment."""

    reads: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(time, partition, first offset, last offset)"""
    commits: list[tuple[int, int, int]] = field(default_factory=list)
    """(time, partition, offset)"""
    ends: dict[int, int] = field(default_factory=dict)
    """The offset after the last record, by partition."""
    phases: list[Phase] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    """Records that were read again after a commit, missed or altered, and errors."""
    rejected_commits: int = 0
    read_again: int = 0
    """Records that were read again before they were committed."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> Self:
        """Return the history with these events, which are in the order of their times, and check it."""
        history = cls()
        checks = _Checks(history)
        for line in lines:
            time_us, what, *words = line.split()
            checks.event(int(time_us), what, words)
        checks.end()
        return history

    def pauses_ms(self, phase: Phase) -> dict[int, float]:
        """Return the longest time between two reads of each partition, of which the first is in the phase."""
        before: dict[int, int] = {}
        longest: dict[int, float] = dict.fromkeys(sorted(self.ends), 0.0)
        for time_us, partition, *_ in self.reads:
            before_us = before.get(partition)
            if before_us is not None and phase.start_us <= before_us < phase.end_us:
                longest[partition] = max(longest[partition], (time_us - before_us) / 1000)
            before[partition] = time_us
        return longest

    def summary(self) -> str:
        """Return the numbers of records, commits and pauses of each phase."""
        phases = []
        for phase in self.phases:
            pauses = [*self.pauses_ms(phase).values()]
            took_s = (phase.end_us - phase.start_us) / 1e6
            phases.append(
                f"{phase.name} {took_s:.1f} s, pause {median(pauses):.0f}, worst {max(pauses):.0f} ms"
            )
        return (
            f"{sum(self.ends.values())} records, {len(self.commits)} commits, {self.rejected_commits} "
            f"rejected, {self.read_again} read again before a commit; {'; '.join(phases)}"
        )


class _Checks:
    """Adds events to a history, and finds records read again after a commit, and records missed."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._numbers: dict[tuple[int, int], int] = {}
        self._read: dict[int, set[int]] = defaultdict(set)
        self._read_up_to: dict[int, int] = defaultdict(int)
        """The offset before which everything has been read."""
        self._committed: dict[int, int] = defaultdict(int)
        self._phase: tuple[str, int] | None = None

    def event(self, time_us: int, what: str, words: list[str]) -> None:
        history = self._history
        if what == "stored":
            partition, number, offset = map(int, words)
            self._numbers[partition, offset] = number
            history.ends[partition] = max(history.ends.get(partition, 0), offset + 1)
        elif what == "read":
            self._read_records(time_us, *words)
        elif what == "committed":
            for partition, offset in (map(int, word.split(":")) for word in words[1:]):
                self._commit(time_us, partition, offset)
        elif what == "rejected":
            history.rejected_commits += 1
        elif what == "mark":
            self._begin(words[0], time_us)
        elif what == "failed":
            history.findings.append(" ".join([what, *words]))

    def _begin(self, name: str, time_us: int) -> None:
        if self._phase is not None:
            self._history.phases.append(Phase(*self._phase, time_us))
        self._phase = (name, time_us)

    def _read_records(self, time_us: int, member: str, partition_text: str, *records: str) -> None:
        history, partition = self._history, int(partition_text)
        offsets = []
        for offset, number in (map(int, record.split(":")) for record in records):
            offsets.append(offset)
            if offset < self._committed[partition]:
                history.findings.append(
                    f"{partition}-{offset} was read again by member {member} after a commit of "
                    f"{self._committed[partition]}"
                )
            history.read_again += offset in self._read[partition]
            self._read[partition].add(offset)
            # A record may be read before its producer has received the acknowledgement.
            if self._numbers.setdefault((partition, offset), number) != number:
                history.findings.append(f"{partition}-{offset} is not record {number}")
        history.reads.append((time_us, partition, offsets[0], offsets[-1]))

    def _commit(self, time_us: int, partition: int, offset: int) -> None:
        up_to = self._read_up_to[partition]
        while up_to in self._read[partition]:
            up_to += 1
        self._read_up_to[partition] = up_to
        if up_to < offset:
            self._history.findings.append(f"{partition}-{up_to} was missed before a commit of {offset}")
        if offset < self._committed[partition]:
            self._history.findings.append(
                f"the committed offset of {partition} went back from {self._committed[partition]} to {offset}"
            )
        self._committed[partition] = max(offset, self._committed[partition])
        self._history.commits.append((time_us, partition, offset))

    def end(self) -> None:
        for partition, end in self._history.ends.items():
            missing = set(range(end)) - self._read[partition]
            self._history.findings += (f"{partition}-{offset} was missed" for offset in sorted(missing)[:5])


def create_topic(bootstrap_servers: str, partitions: int, replicas: int = 1) -> None:
    """Create the topic of the group."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, partitions, replicas)])[TOPIC].result(60)


def migrate_and_return(
    bootstrap_servers: str, directory: Path, *, members: int, partitions: int, is_static: bool = False
) -> History:
    """Move a group of classic members to the consumer protocol and back, and return its history."""
    with MigratingGroup(
        bootstrap_servers, directory, members=members, partitions=partitions, is_static=is_static
    ) as group:
        group.start_all(CLASSIC)
        group.move_to(CONSUMER)
        group.move_to(CLASSIC)
        return group.finish()
