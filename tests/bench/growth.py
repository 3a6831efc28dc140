"""Cost of many partitions, connections and groups: a broker with many of them, compared with an empty broker.

python -m tests.bench.growth [--partitions 100000] [--connections 10000] [--groups 10000] [--json]

Everything is created through client requests: CreateTopics for 5,000 partitions each, connections that have
sent ApiVersions, and groups with a member and a committed offset. The measurements are, in this order:
creation of the partitions, a clean restart, memory of partitions, connections and groups, idle CPU time,
single small requests to both brokers in turn, Metadata for all topics, and a restart after kill -9 with
records in some partitions. `--only` selects some of: start, memory, idle, requests, kill. `--genuine`
measures Apache Kafka 3.9.1 instead.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.bench import growth_client as client
from tests.bench.growth_client import Wire
from tests.bench.progress import Progress
from tests.bench.sides import answers
from tests.support.servers import PROJECT, GenuineKafka, KafkaCompatBroker

PARTITIONS_PER_TOPIC = 10
TOPICS_PER_REQUEST = 500
PROBE_TOPIC = "probe"
PROBE_GROUP = "probe"
HUGE_TOPIC = "huge"
HUGE_PARTITIONS = 100
SEGMENT_BYTES = 1 << 30
SAMPLE = 200
"""Number of partitions that are checked after each start, and written to before the kill."""
ROUNDS = 10
SETTLE_S = 8.0
"""Wait after a start or a load, before memory and idle CPU time are measured."""
START_WITHIN_S = 900.0
PARTS = ("start", "memory", "idle", "requests", "kill")
SETTINGS = {"auto.create.topics.enable": "false", "max.connections.per.ip": "2147483647"}

Server = KafkaCompatBroker | GenuineKafka


class Growth:
    """An empty and a loaded broker of the same kind."""

    def __init__(self, empty: Server, grown: Server, crowded: Server, arguments: argparse.Namespace) -> None:
        """`crowded` is a broker used only to measure the memory of connections and groups."""
        self.figures: dict[str, float] = {}
        self._empty = empty
        self._grown = grown
        self._crowded = crowded
        self._partitions: int = arguments.partitions
        self._connections: int = arguments.connections
        self._groups: int = arguments.groups
        self._idle_s: float = arguments.idle
        self._repeats: int = arguments.repeats
        self._members: dict[Server, tuple[str, int]] = {}
        self._made = 0
        self._huge_segments: int = round(arguments.log_bytes / SEGMENT_BYTES / HUGE_PARTITIONS)
        self._parts: Sequence[str] = arguments.only
        self._topics = [f"topic-{number:06}" for number in range(self._partitions // PARTITIONS_PER_TOPIC)]
        self._progress = Progress(10)

    def run(self) -> None:
        """Run the selected measurements, and store the results in `figures`."""
        step = self._progress.step
        figures = self.figures
        try:
            step("an empty broker")
            self._start(self._empty)
            self._make_probe(self._empty)
            step(f"creation of {self._partitions} partitions")
            self._start(self._grown)
            figures["create_s"] = self._timed(self._make_topics)
            self._make_probe(self._grown)
            sample = self._sample()
            with self._wire(self._grown) as wire:
                client.write_all(wire, sample)
            step("clean restart")
            figures["stop_s"] = self._timed(lambda: self._grown.stop(START_WITHIN_S))
            self._inflate()
            figures["start_s"], figures["start_all_s"] = self._start(self._grown)
            self._check_ends(sample, 1)
            self._check_ends(self._huge(), 1 + self._huge_segments)
            if "memory" in self._parts:
                step("memory")
                # Both brokers are measured when idle after a restart.
                self._empty.stop()
                self._start(self._empty)
                time.sleep(SETTLE_S)  # the broker comes to rest
                figures["empty_bytes"] = base = float(self._empty.resident_bytes())
                now = self._grown.resident_bytes()
                figures["bytes_per_partition"] = (now - base) / max(self._partitions, 1)
                self._measure_crowd()
            step(f"{self._groups} groups")
            for server in (self._empty, self._grown):
                self._join_probe(server)
            self._make_groups(self._grown)
            step(f"{self._connections} connections")
            with self._crowd(self._grown, self._connections):
                time.sleep(SETTLE_S)  # the broker comes to rest
                figures["grown_bytes"] = float(self._grown.resident_bytes())
                if "idle" in self._parts:
                    step(f"idle for {self._idle_s:.0f} s")
                    self._measure_idle()
                if "requests" in self._parts:
                    step("small requests")
                    self._measure_requests()
                step("Metadata for all topics")
                self._measure_metadata()
            if "kill" in self._parts:
                step("kill -9 and restart")
                with self._wire(self._grown) as wire:
                    client.write_all(wire, sample)
                self._grown.kill()
                figures["killed_start_s"], figures["killed_start_all_s"] = self._start(self._grown)
                self._check_ends(sample, 2)
                self._check_ends(self._huge(), 1 + self._huge_segments)
        except Exception:
            print(f"results so far: {figures}", file=sys.stderr)
            raise
        finally:
            self._progress.close()
            self._empty.stop()
            if self._grown.running:
                # All measurements are done, so a clean shutdown is unnecessary.
                self._grown.kill()

    @staticmethod
    def _timed(action: Callable[[], object]) -> float:
        began_s = time.perf_counter()
        action()
        return time.perf_counter() - began_s

    def _start(self, server: Server) -> tuple[float, float]:
        """Start a broker. Return the seconds until the first ApiVersions response, and until every partition
        has a leader.
        """
        server.prepare()
        began_s = time.perf_counter()
        server.launch()
        while not answers(server.port):
            if time.perf_counter() > began_s + START_WITHIN_S or not server.running:
                raise RuntimeError(f"the broker did not become ready:\n{server.process.tail()}")
            time.sleep(0.005)  # interval of polling
        first_s = time.perf_counter() - began_s
        server.process.wait_ready(START_WITHIN_S)
        with self._wire(server) as wire:
            while True:
                known, without_leader, _ = client.leaderless(wire)
                if not without_leader and (server is not self._grown or known >= self._made):
                    return first_s, time.perf_counter() - began_s
                if time.perf_counter() > began_s + START_WITHIN_S:
                    raise RuntimeError(f"{without_leader} of {known} partitions have no leader")
                time.sleep(0.05)  # interval of polling

    @contextlib.contextmanager
    def _wire(self, server: Server) -> Iterator[Wire]:
        wire = Wire(server.port)
        try:
            yield wire
        finally:
            wire.close()

    def _make_topics(self) -> None:
        with self._wire(self._grown) as wire:
            for first in range(0, len(self._topics), TOPICS_PER_REQUEST):
                some = self._topics[first : first + TOPICS_PER_REQUEST]
                client.create_topics(wire, some, PARTITIONS_PER_TOPIC)
            if self._huge_segments:
                client.create_topics(wire, [HUGE_TOPIC], HUGE_PARTITIONS)
                client.write_all(wire, self._huge())
        self._made = self._partitions

    def _huge(self) -> list[tuple[str, int]]:
        return [(HUGE_TOPIC, number) for number in range(HUGE_PARTITIONS if self._huge_segments else 0)]

    def _inflate(self) -> None:
        """Insert closed segments of 1 GiB before the active segment of each huge partition.

        Each segment has a valid batch, followed by a hole in the file. The segments are never read: they only
        have to be found at startup and checked by retention.
        """
        end = self._huge_segments + 1
        for topic, number in self._huge():
            folder = self._grown.log_dir / f"{topic}-{number}"
            batch = (folder / f"{0:020}.log").read_bytes()
            for base in range(end):
                log = folder / f"{base:020}.log"
                # The CRC of a batch does not cover the base offset.
                log.write_bytes(base.to_bytes(8, "big") + batch[8:])
                if base < self._huge_segments:
                    os.truncate(log, SEGMENT_BYTES)
                (folder / f"{base:020}.index").write_bytes(b"")
                (folder / f"{base:020}.timeindex").write_bytes(b"")
            (folder / f"{1:020}.snapshot").rename(folder / f"{end:020}.snapshot")
        if self._huge_segments:
            checkpoint = self._grown.log_dir / "recovery-point-offset-checkpoint"
            lines = checkpoint.read_text().splitlines()
            moved = [f"{line[:-1]}{end}" if line.startswith(f"{HUGE_TOPIC} ") else line for line in lines]
            checkpoint.write_text("\n".join(moved) + "\n")

    def _make_probe(self, server: Server) -> None:
        with self._wire(server) as wire:
            client.create_topics(wire, [PROBE_TOPIC], 1)
            client.await_coordinators(wire)

    def _sample(self) -> list[tuple[str, int]]:
        step = max(self._partitions // SAMPLE, 1)
        return [
            (self._topics[number // PARTITIONS_PER_TOPIC], number % PARTITIONS_PER_TOPIC)
            for number in range(0, self._partitions, step)
        ]

    def _check_ends(self, sample: Sequence[tuple[str, int]], expected: int) -> None:
        with self._wire(self._grown) as wire:
            found = client.ends(wire, sample)
        if found != [expected] * len(sample):
            raise RuntimeError(f"expected end offset {expected}, found {sorted(set(found))}")

    def _join_probe(self, server: Server) -> None:
        with self._wire(server) as wire:
            client.await_coordinators(wire)
            self._members[server] = client.join(wire, [PROBE_GROUP])[0]

    def _make_groups(self, server: Server) -> None:
        groups = [f"group-{number:06}" for number in range(self._groups)]
        topics = self._topics if server is self._grown and self._topics else [PROBE_TOPIC]
        with self._wire(server) as wire:
            members = client.join(wire, groups)
            client.commit_all(wire, groups, members, topics)

    def _measure_crowd(self) -> None:
        """Measure the memory of connections and groups on a new broker, which has no freed memory to
        reuse.
        """
        server = self._crowded
        try:
            self._start(server)
            self._make_probe(server)
            time.sleep(SETTLE_S)  # the broker comes to rest
            before = server.resident_bytes()
            with self._crowd(server, self._connections):
                time.sleep(SETTLE_S)  # the broker comes to rest
                by_bytes = server.resident_bytes() - before
                self.figures["bytes_per_connection"] = by_bytes / max(self._connections, 1)
            server.stop()
            self._start(server)
            with self._wire(server) as wire:
                client.await_coordinators(wire)
            time.sleep(SETTLE_S)  # the broker comes to rest
            before = server.resident_bytes()
            self._make_groups(server)
            time.sleep(SETTLE_S)  # the broker comes to rest
            self.figures["bytes_per_group"] = (server.resident_bytes() - before) / max(self._groups, 1)
        finally:
            server.stop()

    @contextlib.contextmanager
    def _crowd(self, server: Server, count: int) -> Iterator[None]:
        line = [sys.executable, "-m", "tests.bench.growth_client", str(server.port), str(count)]
        process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT, text=True
        )
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "held\n":
                raise RuntimeError(f"could not open {count} connections:\n{server.process.tail()}")
            yield
        finally:
            process.communicate(timeout=60)

    def _measure_idle(self) -> None:
        before = {server: _cpu_s(server) for server in (self._empty, self._grown)}
        time.sleep(self._idle_s)  # the period over which idle CPU time is measured
        self.figures["idle_empty"] = (_cpu_s(self._empty) - before[self._empty]) / self._idle_s
        self.figures["idle"] = (_cpu_s(self._grown) - before[self._grown]) / self._idle_s

    def _measure_requests(self) -> None:
        """Send single requests to both brokers in turn."""
        for name in ("api_versions", "metadata", "produce", "fetch", "offset_commit", "heartbeat"):
            times: dict[Server, list[float]] = {self._empty: [], self._grown: []}
            cpu_s = dict.fromkeys(times, 0.0)
            for number in range(ROUNDS + 1):
                for server in (self._empty, self._grown) if number % 2 else (self._grown, self._empty):
                    found, spent_s = self._ask(server, name)
                    if number:
                        times[server] += found
                        cpu_s[server] += spent_s
            for server, label in ((self._empty, "empty"), (self._grown, "grown")):
                ordered = sorted(times[server])
                self.figures[f"{name}_{label}_p50_ms"] = ordered[len(ordered) // 2] * 1000
                self.figures[f"{name}_{label}_p99_ms"] = ordered[len(ordered) * 99 // 100] * 1000
                self.figures[f"{name}_{label}_cpu_ms"] = cpu_s[server] / len(ordered) * 1000

    def _ask(self, server: Server, name: str) -> tuple[list[float], float]:
        member = self._members[server]
        request = {
            "api_versions": client.api_versions(),
            "metadata": client.metadata(PROBE_TOPIC),
            "produce": client.produce(PROBE_TOPIC),
            "fetch": client.fetch(PROBE_TOPIC),
            "offset_commit": client.offset_commit(PROBE_GROUP, PROBE_TOPIC, *member),
            "heartbeat": client.heartbeat(PROBE_GROUP, *member),
        }[name]
        with self._wire(server) as wire:
            wire.ask(request)
            before_s = _cpu_s(server)
            times = []
            for _ in range(self._repeats):
                sent_s = time.perf_counter()
                wire.ask(request)
                times.append(time.perf_counter() - sent_s)
            return times, _cpu_s(server) - before_s

    def _measure_metadata(self) -> None:
        with self._wire(self._grown) as wire:
            client.leaderless(wire)
            began_s = time.perf_counter()
            answer = wire.ask(client.metadata(None))
            self.figures["metadata_all_s"] = time.perf_counter() - began_s
            self.figures["metadata_all_bytes"] = float(len(answer))


def _cpu_s(server: Server) -> float:
    """Return the CPU time of all live threads, with nanosecond resolution."""
    spent_ns = 0
    for task in Path(f"/proc/{server.pid}/task").iterdir():
        with contextlib.suppress(OSError):
            spent_ns += int((task / "schedstat").read_text().split()[0])
    return spent_ns / 1e9


def ours(directory: Path) -> Server:
    return KafkaCompatBroker(directory, SETTINGS)


def genuine(directory: Path) -> Server:
    """Apache Kafka with the heap size of its start script."""
    return GenuineKafka(directory, SETTINGS, mode="kraft", heap="1G", quick_start=False)


def table(figures: dict[str, float]) -> str:
    """Format all figures, one per line, and the requests' ratios to the empty broker."""
    lines = [f"{name:32} {value:14.4f}" for name, value in figures.items()]
    for name, value in figures.items():
        if "_grown_" in name:
            of_empty = figures[name.replace("_grown_", "_empty_")]
            lines.append(f"{name.replace('_grown_', ' grown/empty '):32} {value / of_empty:14.2f}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument(
        "--log-bytes", type=float, default=0, help="additional bytes in sparse segments, such as 1e12"
    )
    parser.add_argument("--idle", type=float, default=30.0, help="seconds")
    parser.add_argument("--repeats", type=int, default=200, help="repetitions of each request in a round")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--genuine", action="store_true", help="Apache Kafka 3.9.1 instead")
    parser.add_argument("--directory", type=Path, help="parent of the data directories (default: /tmp)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="kafka-compat-growth-", dir=arguments.directory) as name:
        directory = Path(name)
        make = genuine if arguments.genuine else ours
        growth = Growth(
            make(directory / "empty"), make(directory / "grown"), make(directory / "crowded"), arguments
        )
        growth.run()
        # Print the results before the directories are deleted, which takes longer than most measurements.
        _tell(arguments, growth.figures)


def _tell(arguments: argparse.Namespace, figures: dict[str, float]) -> None:
    if arguments.json:
        sizes = {name: getattr(arguments, name) for name in ("partitions", "connections", "groups")}
        print(json.dumps({**sizes, **figures}, indent=1), flush=True)
    else:
        print(table(figures), flush=True)


if __name__ == "__main__":
    main()
