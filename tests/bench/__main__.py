"""`scripts/bench`: runs pairs of measurements and prints their ratios."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import kfake_broker, report, sides, whole_test
from tests.bench.clients import NO_BROKER
from tests.bench.progress import Progress
from tests.bench.report import Leg, Pairs
from tests.bench.sides import Side
from tests.bench.workloads import TLS_NAMES, WORKLOADS, Workload, java_produce, tls_workloads
from tests.security.authority import Authority
from tests.support.go_programs import GoMissing
from tests.support.servers import PROJECT, ZooKeeper

_VALIDATION_SETTING = "kafka.compat.record.validation.enable"
_LEG_SECONDS = 4.0
_SHORTEST_LEG_SECONDS = 3.0
_WARM_UP_RECORDS = 1_000_000
_IDLE_WAIT_SECONDS = 3.0
_LOCK = Path(tempfile.gettempdir()) / "kafka-compat-bench.lock"
_START = "start"
_CLUSTER_START = "cluster-start"
"""Names of the startup and idle memory measurements, for --only."""
START_TITLES = {
    False: "startup to first ApiVersions response",
    True: "startup until three brokers have joined",
}
"""Titles, by whether the sides are clusters."""
_NAMES = (
    *(_START, _CLUSTER_START),
    *whole_test.CLIENTS,
    *(workload.name for workload in WORKLOADS),
    *TLS_NAMES,
)
"""Names of all measurements, for --only."""

SideMaker = Callable[[Path], Side]


CLUSTERS = "three brokers, replication factor 3"


@dataclass(frozen=True, slots=True)
class _Run:
    """Workloads for one pair of sides. `makers` is None for clusters, whose ZooKeeper must be started
    first.
    """

    title: str
    makers: tuple[SideMaker, SideMaker] | None
    workloads: Sequence[Workload]
    with_start: bool
    whole_tests: Sequence[str] = ()
    """Keys of whole_test.CLIENTS."""


class Benchmark:
    """A comparison of two brokers over several workloads."""

    def __init__(
        self,
        makers: tuple[SideMaker, SideMaker],
        directory: Path,
        workloads: Sequence[Workload],
        *,
        with_start: bool,
        whole_tests: Sequence[str],
        clusters: bool,
        pairs: int,
        partitions: int | None,
        quick: bool,
    ) -> None:
        """`partitions` is the number of partitions of each topic; None: the workload's default."""
        self._makers = makers
        self._directory = directory
        self._workloads = workloads
        self._with_start = with_start
        self._whole_tests = whole_tests
        self._clusters = clusters
        self._pairs = pairs
        self._partitions = partitions
        self._scale = 0.1 if quick else 1.0
        self._topics = 0
        starts = 2 * (pairs + 1) * (with_start + len(whole_tests))
        filled = sum(2 for workload in workloads if workload.reads_existing)
        legs = len(workloads) * (1 + 2 * pairs)
        legs += sum(pairs for workload in workloads if workload.has_floor)
        self.progress = Progress(starts + (4 + legs + filled if workloads else 0))
        self.results: dict[str, Pairs] = {}

    def run(self) -> None:
        """Run all measurements, and add the pairs to `results`."""
        if self._with_start:
            self._measure_starts()
        for client in self._whole_tests:
            self._measure_whole_tests(client)
        if not self._workloads:
            return
        ours, other = (
            maker(self._directory / name) for maker, name in zip(self._makers, ("ours", "other"), strict=True)
        )
        try:
            for side in (ours, other):
                self.progress.step(f"start {side.label}")
                side.start()
            for side in (ours, other):
                self.progress.step(f"warm up {side.label}")
                self._warm_up(side)
            for workload in self._workloads:
                self._measure(workload, ours, other)
            memory = (
                {"memory": float(ours.resident_bytes_loaded)},
                {"memory": float(other.resident_bytes_loaded)},
            )
            self.results["memory loaded"] = Pairs()
            self.results["memory loaded"].add(*memory)
        finally:
            ours.stop()
            other.stop()

    def _measure_starts(self) -> None:
        """Measure the time to the first response, and memory after some idle seconds. Each start uses an
        empty directory.

        The first pair only fills the disk cache and Python's bytecode cache, and is discarded.
        """
        start, memory = Pairs(), Pairs()
        for pair in range(self._pairs + 1):
            figures: dict[int, tuple[float, float]] = {}
            for position in _order(pair):
                directory = self._directory / f"start-{pair}-{position}"
                side = self._makers[position](directory)
                self.progress.step(f"start and idle memory, pair {pair} of {self._pairs}: {side.label}")
                try:
                    elapsed_s = sides.start_and_time(side)
                    sides.idle(_IDLE_WAIT_SECONDS * self._scale)
                    figures[position] = (elapsed_s, float(side.resident_bytes()))
                finally:
                    side.stop()
                    sides.remove(directory)
            if pair > 0:
                start.add({"seconds": figures[0][0]}, {"seconds": figures[1][0]})
                memory.add({"memory": figures[0][1]}, {"memory": figures[1][1]})
        self.results[START_TITLES[self._clusters]] = start
        self.results["memory idle"] = memory

    def _measure_whole_tests(self, client: str) -> None:
        """Measure whole tests, each with a new broker and a new client. The first pair is discarded, as in
        `_measure_starts`.
        """
        measured = Pairs()
        for pair in range(self._pairs + 1):
            figures: dict[int, dict[str, float]] = {}
            for position in _order(pair):
                directory = self._directory / f"{client}-{pair}-{position}"
                side = self._makers[position](directory)
                self.progress.step(f"{client}, pair {pair} of {self._pairs}: {side.label}")
                try:
                    figures[position] = whole_test.measure(side, client)
                finally:
                    side.stop()
                    sides.remove(directory)
            if pair > 0:
                measured.add(figures[0], figures[1])
        self.results[client] = measured

    def _warm_up(self, side: Side) -> None:
        topic = self._new_topic(side, self._workloads[0])
        java_produce(side.address, topic, int(_WARM_UP_RECORDS * self._scale), 100)
        side.delete_topic(topic)

    def _measure(self, workload: Workload, ours: Side, other: Side) -> None:
        records = self._calibrate(workload, ours, other)
        filled: dict[str, str] = {}
        if workload.reads_existing:
            for side in (ours, other):
                self.progress.step(f"{workload.name}: fill a topic of {side.label}")
                filled[side.label] = self._new_topic(side, workload)
                java_produce(side.address, filled[side.label], records, workload.size_bytes)
        pairs = self.results[workload.name] = Pairs()
        floor = Pairs()
        if workload.has_floor:
            self.results[f"{workload.name}, no broker"] = floor
        for pair in range(self._pairs):
            legs: dict[int, Leg] = {}
            for position in _order(pair):
                side = (ours, other)[position]
                self.progress.step(f"{workload.name}, pair {pair + 1} of {self._pairs}: {side.label}")
                legs[position] = self._leg(workload, side, records, filled.get(side.label))
            pairs.add(legs[0].figures(), legs[1].figures())
            if workload.has_floor:
                self.progress.step(f"{workload.name}, pair {pair + 1} of {self._pairs}: no broker")
                least = workload.run(NO_BROKER, "floor", records)
                floor.add(Leg(least, 0.0).figures(), legs[1].figures())
        for side in (ours, other):
            if side.label in filled:
                side.delete_topic(filled[side.label])

    def _calibrate(self, workload: Workload, ours: Side, other: Side) -> int:
        """Return a number of records that takes the slower broker about 4 s and the faster one at least
        3 s.
        """
        self.progress.step(f"{workload.name}: find the size of a leg")
        if self._scale < 1:
            return int(workload.first_guess * self._scale)
        if workload.most <= workload.first_guess:
            return workload.most
        rates: list[float] = []
        for side in (ours, other):
            topic = self._new_topic(side, workload)
            if workload.reads_existing:
                java_produce(side.address, topic, workload.first_guess, workload.size_bytes)
            rates.append(workload.run(side.client_address, topic, workload.first_guess).throughput or 0.0)
            side.delete_topic(topic)
        wanted = max(min(rates) * _LEG_SECONDS, max(rates) * _SHORTEST_LEG_SECONDS)
        return min(workload.most, int(wanted))

    def _leg(self, workload: Workload, side: Side, records: int, filled: str | None) -> Leg:
        topic = filled or self._new_topic(side, workload)
        sides.prewarm_memory()
        cpu_before, user_before = side.cpu_seconds(), side.user_cpu_seconds()
        measurement = workload.run(side.client_address, topic, records)
        cpu_seconds, user_seconds = side.cpu_seconds() - cpu_before, side.user_cpu_seconds() - user_before
        side.note_memory()
        if filled is None:
            side.delete_topic(topic)
        return Leg(measurement, cpu_seconds, user_seconds)

    def _new_topic(self, side: Side, workload: Workload) -> str:
        self._topics += 1
        name = f"bench-{self._topics}"
        side.create_topic(name, self._partitions or workload.partitions)
        return name


def _order(pair: int) -> tuple[int, int]:
    """Return the order of both sides in this pair: A B, B A, A B, …, so that a drift of the machine affects
    both.
    """
    return (0, 1) if pair % 2 == 0 else (1, 0)


@contextmanager
def _makers(
    run: _Run, directory: Path, before: Path | None, compiled: bool
) -> Iterator[tuple[SideMaker, SideMaker]]:
    """Yield the makers of a run. For clusters, start one ZooKeeper that both sides share."""
    if run.makers is not None:
        yield run.makers
        return
    zookeeper = ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    try:
        yield (
            lambda folder: sides.our_cluster(folder, zookeeper, compiled=compiled),
            lambda folder: (
                sides.our_cluster(
                    folder, zookeeper, "before", before, compiled=compiled and before != PROJECT
                )
                if before is not None
                else sides.genuine_cluster(folder, zookeeper)
            ),
        )
    finally:
        zookeeper.stop()


@contextmanager
def _only_benchmark_on_this_machine() -> Iterator[None]:
    with open(_LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another benchmark runs on this machine; waiting for its end.", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Compare this broker with Apache Kafka 3.9.1 on this machine, by ratios.",
    )
    parser.add_argument("--pairs", type=int, default=5, help="pairs of legs per workload (5)")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        choices=_NAMES,
        help=", ".join(_NAMES),
    )
    parser.add_argument(
        "--quick", action="store_true", help="two short pairs, to check that the benchmark runs"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--partitions", type=int, help="partitions of each topic (1; 6 with three brokers)")
    parser.add_argument(
        "--genuine-mode",
        choices=["kraft", "zookeeper"],
        default="kraft",
        help="Apache Kafka as one KRaft process (default), or with ZooKeeper, including its CPU and memory",
    )
    parser.add_argument(
        "--without-validation",
        action="store_true",
        help="also measure producers without record validation in this broker",
    )
    parser.add_argument(
        "--before",
        type=lambda path: Path(path).resolve(),
        metavar="CHECKOUT",
        help="compare with another checkout of this broker (with its own .venv) instead of Kafka",
    )
    parser.add_argument(
        "--peer",
        choices=["kfake"],
        help="also compare with kfake, franz-go's in-memory broker, in the same run (measurements of one "
        "broker without TLS; needs Go)",
    )
    parser.add_argument(
        "--compiled",
        action="store_true",
        help="measure the broker compiled by scripts/compile; with --before, both of them (with --before ., "
        "compare with the sources)",
    )
    parser.add_argument("--directory", type=Path, help="directory for data (default: a temporary directory)")
    return parser.parse_args(argv)


def _tls_run(directory: Path, wanted: set[str], arguments: argparse.Namespace) -> _Run:
    """The workloads over TLS, and both brokers with a TLS listener."""
    authority = Authority(directory / "authority")
    makers = sides.tls_sides(authority, arguments.genuine_mode, compiled=arguments.compiled)
    workloads = [one for one in tls_workloads(directory, authority.file) if one.name in wanted]
    return _Run("over TLS", makers, workloads, False)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark according to the command line."""
    arguments = _arguments(argv)
    if arguments.peer is not None:
        try:
            kfake_broker.program()
        except GoMissing as error:
            sys.exit(f"scripts/bench --peer {arguments.peer}: {error}")
    wanted = set(arguments.only or _NAMES)
    whole_tests = [client for client in whole_test.CLIENTS if client in wanted]
    single = [workload for workload in WORKLOADS if workload.name in wanted and not workload.cluster]
    replicated = [workload for workload in WORKLOADS if workload.name in wanted and workload.cluster]
    pairs = 2 if arguments.quick else arguments.pairs
    for checkout in filter(None, (PROJECT, arguments.before)):
        sides.compile_sources(checkout)

    def other(directory: Path) -> Side:
        if arguments.before is not None:
            is_compiled = arguments.compiled and arguments.before != PROJECT
            return sides.before(directory, arguments.before, compiled=is_compiled)
        return sides.genuine(directory, arguments.genuine_mode)

    def without_validation(directory: Path) -> Side:
        return sides.ours(directory, {_VALIDATION_SETTING: "false"}, compiled=arguments.compiled)

    def ours(directory: Path) -> Side:
        return sides.ours(directory, compiled=arguments.compiled)

    runs = [_Run("records validated", (ours, other), single, _START in wanted, whole_tests)]
    if arguments.peer is not None:
        runs.append(_Run("compared with kfake", (ours, sides.kfake), single, _START in wanted, whole_tests))
    if arguments.without_validation:
        producers = [workload for workload in single if "produce" in workload.name]
        runs.append(_Run("records not validated", (without_validation, other), producers, False))
    runs.append(_Run(CLUSTERS, None, replicated, _CLUSTER_START in wanted))
    results: dict[str, dict[str, Pairs]] = {}
    with (
        _only_benchmark_on_this_machine(),
        tempfile.TemporaryDirectory(prefix="kafka-compat-bench-", dir=arguments.directory) as directory,
    ):
        if wanted.intersection(TLS_NAMES) and arguments.before is None:
            runs.append(_tls_run(Path(directory), wanted, arguments))
        runs = [run for run in runs if run.workloads or run.with_start or run.whole_tests]
        for number, run in enumerate(runs):
            with _makers(run, Path(directory), arguments.before, arguments.compiled) as makers:
                benchmark = Benchmark(
                    makers,
                    Path(directory) / str(number),
                    run.workloads,
                    with_start=run.with_start,
                    whole_tests=run.whole_tests,
                    clusters=run.makers is None,
                    pairs=pairs,
                    partitions=arguments.partitions,
                    quick=arguments.quick,
                )
                try:
                    benchmark.run()
                finally:
                    benchmark.progress.close()
            results[run.title] = benchmark.results
    partitions = f", {arguments.partitions} partition(s)" if arguments.partitions else ""
    compared = f"Apache Kafka 3.9.1 ({arguments.genuine_mode}, clusters: ZooKeeper; 1 GB heap)"
    if arguments.before is not None:
        compared = f"this broker in {arguments.before}"
    if arguments.peer is not None:
        compared += f", and {arguments.peer}"
    conditions = (
        f"{compared} on the same {os.cpu_count()} cores, {pairs} pairs in the order A B B A{partitions}"
    )
    if arguments.json:
        print(
            json.dumps(
                {"conditions": conditions, **{t: report.as_json(r) for t, r in results.items()}}, indent=1
            )
        )
        return
    print(conditions)
    print("Each cell: the median of the pairs' ratios ours / the other, and their range.")
    print("More is better for throughput, less for everything else.")
    tables = {
        "Workloads": report.METRICS,
        "Process": {"seconds": "time", "memory": "memory"},
        "Time of a whole test": whole_test.STEPS,
    }
    for title, result in results.items():
        for kind, columns in tables.items():
            if any(pairs.values.keys() & columns.keys() for pairs in result.values()):
                print("\n" + report.table(result, columns, f"{kind}, {title}"))


if __name__ == "__main__":
    main()
