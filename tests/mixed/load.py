"""A load that runs while brokers are killed and exchanged, and checks of its results.

- Idempotent producers with acks=all write to six partitions, and record acknowledgements.
- A group member reads these records and commits its offsets.
- A copier moves numbers from `source` to `target` in transactions, every seventh of which is aborted. A
further idempotent producer writes the numbers while the load runs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.durability.load import read_everything
from tests.faults.evidence import check, longest_gap_s
from tests.faults.groups import Member, join
from tests.faults.producers import Acknowledgement, Producer, now_ms
from tests.mixed.cluster import MixedCluster
from tests.support.client_security import for_librdkafka
from tests.support.process import wait_until
from tests.transactions.copier import GROUP
from tests.transactions.copiers import Copier
from tests.transactions.programs import await_markers, committed_offset, read_all

LEDGER = "ledger"
PARTITIONS = 6
TOPICS = {LEDGER: PARTITIONS, "source": 1, "target": 1}
_AT_WORK_S = 90.0
_END_S = 180.0
_COPY_S = 600.0


class _Numbers(threading.Thread):
    """Writes 0 to `total - 1` to `source`, slowly until `finish` is called."""

    def __init__(self, bootstrap_servers: str, total: int, pause_s: float) -> None:
        super().__init__(name="numbers", daemon=True)
        self.failed: list[str] = []
        self._servers = bootstrap_servers
        self._total = total
        self._pause_s = pause_s
        self._hurry = threading.Event()

    def run(self) -> None:
        from confluent_kafka import Producer as Client

        client = Client(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 2,
                "log_level": 2,
                **for_librdkafka(),
            }
        )

        def delivered(error: object, _: object) -> None:
            if error is not None:
                self.failed.append(str(error))

        for number in range(self._total):
            client.produce("source", str(number).encode(), partition=0, on_delivery=delivered)
            client.poll(0)
            self._hurry.wait(self._pause_s)
        client.flush(_END_S)

    def finish(self) -> None:
        """Write the remaining numbers without pauses."""
        self._hurry.set()
        self.join(_END_S)
        assert not self.is_alive(), "the numbers were not written"
        assert not self.failed, self.failed[:5]


@dataclass
class Evidence:
    """The acknowledgements, and the problems found."""

    began_ms: int
    ended_ms: int
    acknowledged: dict[str, list[Acknowledgement]] = field(default_factory=dict)
    copied: int = 0
    aborted: int = 0
    copiers: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        gaps = (
            f"{client}: {len(items)} acknowledged, longest gap "
            f"{longest_gap_s(items, self.began_ms, self.ended_ms):.1f} s"
            for client, items in self.acknowledged.items()
        )
        return (
            f"{(self.ended_ms - self.began_ms) / 1000:.0f} s; {'; '.join(gaps)}; {self.copied} copied in "
            f"transactions, {self.aborted} aborted, {self.copiers} starts of the copier; "
            f"{len(self.problems)} problems"
        )


class Load:
    """The load described in the module's docstring. Use `running` to create it."""

    def __init__(
        self,
        cluster: MixedCluster,
        clients: Sequence[str],
        copier: str,
        total: int,
        seconds: float,
        directory: Path,
    ) -> None:
        self._cluster = cluster
        self._total = total
        servers = cluster.bootstrap_servers
        self.producers = [
            Producer(
                client,
                servers,
                LEDGER,
                PARTITIONS,
                pause_ms=10,
                request_timeout_ms=5000,
                directory=directory,
            )
            for client in clients
        ]
        self._members: dict[str, Member] = {
            client: join(client, servers, LEDGER, directory) for client in clients
        }
        self._numbers = _Numbers(servers, total, seconds / total)
        self._copier_log = directory / "copier.log"
        self._copier = Copier(copier, servers, total, self._copier_log)
        self._numbers.start()
        self._copier.start()
        self._began_ms = now_ms()

    def wait_at_work(self) -> None:
        """Wait until every client has a new acknowledgement for every partition, and restart the copier if it
        exited.
        """
        since_ms = now_ms()
        for producer in self.producers:
            wait_until(
                partial(producer.acknowledged_since, since_ms),
                _AT_WORK_S,
                f"{producer.client} at work",
                0.1,
            )
        self._copied()

    def finish(self) -> Evidence:
        """Stop the load, and check its results."""
        for producer in self.producers:
            producer.stop()
        self._numbers.finish()
        evidence = Evidence(self._began_ms, now_ms(), copiers=self._copier.lives)
        wait_until(self._copied, _COPY_S, "completion of the copier", 0.5)
        evidence.copiers = self._copier.lives
        servers = self._cluster.bootstrap_servers
        log = read_everything(servers, LEDGER, PARTITIONS)
        for producer in self.producers:
            evidence.acknowledged[producer.client], given_up = producer.outcomes()
            if given_up:
                evidence.problems.append(f"{producer.client} gave up {given_up}")
        findings = check(log, evidence.acknowledged)
        if not findings.nothing:
            evidence.problems.append(str(findings))
        ends = dict(Counter(index for index, _ in log))
        for client, member in self._members.items():
            evidence.problems += _unread(client, member, ends)
        await_markers(servers, "target")
        copied = read_all(servers, "target")
        if copied != [str(number) for number in range(self._total)]:
            counts = Counter(copied)
            twice = [number for number, count in counts.items() if count > 1]
            missing = [number for number in range(self._total) if str(number) not in counts]
            evidence.problems.append(f"copied: {missing[:5]} are missing, {twice[:5]} duplicated")
        evidence.copied = len(copied)
        evidence.aborted = len(read_all(servers, "target", "read_uncommitted")) - len(copied)
        return evidence

    def _copied(self) -> bool:
        """Return whether the copier has copied everything. If it exited before, start it again."""
        if not self._copier.keep_alive():
            return False
        if committed_offset(self._cluster.bootstrap_servers, GROUP, "source") >= self._total:
            return True
        self._copier.start()
        return False

    def close(self) -> None:
        """Kill all clients that are still running."""
        for producer in self.producers:
            producer.kill()
        self._copier.kill()
        for member in self._members.values():
            member.stop()


def _unread(client: str, member: Member, ends: dict[int, int]) -> list[str]:
    """Wait until a member has read and committed everything, and return what is missing."""
    deadline = time.monotonic() + _END_S
    while member.committed != ends and time.monotonic() < deadline and not member.errors:
        time.sleep(0.2)  # polling interval
    problems = [f"the group of {client}: {error}" for error in member.errors]
    if member.committed != ends:
        problems.append(f"the group of {client} committed {member.committed}, the ends are {ends}")
    problems += [
        f"the group of {client} has not read all of partition {index}"
        for index, end in ends.items()
        if member.consumed[index] != set(range(end))
    ]
    return problems


@contextmanager
def running(
    cluster: MixedCluster,
    directory: Path,
    *,
    clients: Sequence[str],
    copier: str,
    total: int,
    seconds: float,
) -> Iterator[Load]:
    """Run the load. `clients` write and read, `copier` is the kind of the copier, and it receives `total`
    numbers over about `seconds`.
    """
    for topic, partitions in TOPICS.items():
        cluster.create_topic(topic, partitions)
    with ExitStack() as stack:
        load = Load(cluster, clients, copier, total, seconds, directory)
        stack.callback(load.close)
        load.wait_at_work()
        yield load
