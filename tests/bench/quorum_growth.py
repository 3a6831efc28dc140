"""Failover of the controller with 100,000 partitions, and a new voter.

python -m tests.bench.quorum_growth [--partitions 100000] [--replicated 1000] [--brokers 7] [--pairs 1]
[--json]

This broker and Apache Kafka 4.4.0 (the heap of its start script) are compared in pairs of runs, in the order
A B, B A, … The nodes 1, 2 and 3 have both roles; the others are brokers, so that the partitions of one
process do not need more files than it may open (Apache Kafka needs one per replica). --partitions have one
replica each, and --replicated partitions have three. Timeouts are Kafka's defaults, and a snapshot is
taken after ten bytes of records per partition. Measurements:

- failover: kill -9 of the leader of the quorum, and then of the broker that Metadata names as the controller;
  each is started again. `create` is the time until a client has created a topic, `led` the time until no
  partition of a sample has the killed node as its leader in the metadata of another broker and all
  replicated partitions have leaders, and `stall` the longest latency of a small request to any other broker
  in that time, without the time in which the broker waited for a processor. Each is the longer one of both
  kills.
- voter: a voter that is not the leader is killed, and its metadata log is deleted before its start. `caught
  up` is the time from its start until the leader reports that it has the whole log. The node must have
  fetched a snapshot.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from tests.bench import growth_client, in_pairs, quorum_sides
from tests.bench.progress import Progress
from tests.bench.quorum_client import ClusterClient, until
from tests.bench.quorum_sides import COMBINED, QuorumSide
from tests.faults.stalls import StallWatch

PARTITIONS_PER_TOPIC = 10
TOPICS_PER_REQUEST = 500
REPLICATED = "replicated"
SAMPLE = 50
"""Number of topics whose leaders are observed during a failover: the metadata of all would take CPU time."""
LOOK_S = 0.5
WITHIN_S = 900.0
CALM_S = 2.0
COLUMNS = {
    "create_s": "create",
    "led_s": "led",
    "caught_up_s": "caught up",
    "stall_ms": "stall",
}
SNAPSHOT_BYTES_PER_PARTITION = 10
"""Bytes of new records after which a snapshot is taken, for each partition."""
MARKERS = ("meta.properties", "kafka-compat-metadata", "partition.metadata")
"""Files of a metadata log that do not contain metadata. They show what kind of node uses the directory."""
STEPS = 5
_FILES_PER_BROKER = 2000
"""Files that a broker of Apache Kafka has open without partitions, at most."""


class Growth:
    """One run with one side."""

    def __init__(self, side: QuorumSide, partitions: int, replicated: int) -> None:
        self._side = side
        self._partitions = partitions
        self._replicated = replicated
        self._client = ClusterClient({broker_id: node.port for broker_id, node in side.brokers.items()})
        self._watches: dict[int, StallWatch] = {}
        self._made = 0
        self._topics = [f"topic-{number:06}" for number in range(partitions // PARTITIONS_PER_TOPIC)]

    def close(self) -> None:
        for watch in self._watches.values():
            watch.stop()
        self._client.close()
        self._side.kill()

    def run(self, progress: Progress) -> in_pairs.Figures:
        label = self._side.label
        progress.step(f"{label}: start")
        self._side.start()
        progress.step(f"{label}: creation of {self._partitions} partitions")
        self._create()
        figures: list[dict[str, float]] = []
        for what, target in (("quorum leader", self._client.quorum_leader), ("controller", self._controller)):
            node_id = target()
            progress.step(f"{label}: kill -9 of node {node_id} ({what})")
            found = self._fail_over(node_id, len(figures))
            progress.note(f"{label}: {what}: {found}")
            figures.append(found)
            self._rejoin(node_id)
        progress.step(f"{label}: a new voter")
        voter = self._join(min(set(self._side.voters) - {self._client.quorum_leader()}))
        progress.note(f"{label}: new voter: {voter}")
        failover = {name: max(each[name] for each in figures) for name in figures[0]}
        return {"failover": failover, "voter": voter}

    def _rejoin(self, node_id: int) -> None:
        """Start a node that was killed, and wait until it has caught up."""
        self._side.nodes[node_id].start(WITHIN_S)
        self._client.avoided.discard(node_id)
        until(self._is_complete, "all replicas in sync", WITHIN_S)
        if node_id in self._side.voters:
            until(lambda: self._lag(node_id) <= 0, "the node as a voter", WITHIN_S)

    def _controller(self) -> int:
        return self._side.controller_id(self._client)

    def _create(self) -> None:
        """Create all topics, and wait until every partition has a leader."""
        names = self._topics
        for first in range(0, len(names), TOPICS_PER_REQUEST):
            some = names[first : first + TOPICS_PER_REQUEST]
            wire = growth_client.Wire(self._side.brokers[self._controller()].port)
            growth_client.create_topics(wire, some, PARTITIONS_PER_TOPIC)
            wire.close()
        self._client.create_topic(REPLICATED, self._replicated, 3)
        self._made = len(names) * PARTITIONS_PER_TOPIC + self._replicated
        until(self._is_complete, "leaders of all partitions", WITHIN_S)

    def _is_complete(self) -> bool:
        """Return whether brokers know each other, and each partition has a leader and all its replicas."""
        if not self._side.complete():
            return False
        time.sleep(LOOK_S)  # the metadata of all partitions takes CPU time
        found = self._client.metadata()
        if found is None:
            return False
        partitions = [each for topic in found.topics for each in topic.partitions]
        return len(partitions) >= self._made and all(
            each.leader_id >= 0 and len(each.isr_nodes) == len(each.replica_nodes) for each in partitions
        )

    def _fail_over(self, node_id: int, number: int) -> dict[str, float]:
        self._watch(except_for=node_id)
        began_ms = time.time_ns() // 1_000_000
        began_s = time.perf_counter()
        self._client.avoided.add(node_id)
        self._side.nodes[node_id].kill()
        self._client.create_topic(f"after-{number}", replicas=1)
        create_s = time.perf_counter() - began_s
        until(lambda: self._is_led_without(node_id), "other leaders", WITHIN_S)
        led_s = time.perf_counter() - began_s
        time.sleep(CALM_S)  # a stall at the end would show within this time
        self._made += 1
        return {"create_s": create_s, "led_s": led_s, "stall_ms": self._longest_stall_ms(began_ms)}

    def _is_led_without(self, node_id: int) -> bool:
        """Return whether all partitions that can have a leader have one, according to another broker."""
        replicated = self._client.metadata(REPLICATED)
        if replicated is None or any(
            each.leader_id in (node_id, -1) for topic in replicated.topics for each in topic.partitions
        ):
            return False
        found = self._client.metadata(*self._topics[:: max(len(self._topics) // SAMPLE, 1)])
        return found is not None and not any(
            each.leader_id == node_id for topic in found.topics for each in topic.partitions
        )

    def _join(self, node_id: int) -> dict[str, float]:
        """Kill a node, and start it without its metadata log. Return the time until it has caught up."""
        self._watch(except_for=node_id)
        node = self._side.nodes[node_id]
        self._client.avoided.add(node_id)
        node.kill()
        directory = node.directory / "metadata" / "__cluster_metadata-0"
        for file in directory.iterdir():
            if file.name not in MARKERS:
                file.unlink()
        node.prepare()
        began_ms = time.time_ns() // 1_000_000
        began_s = time.perf_counter()
        node.launch()
        until(lambda: self._lag(node_id, since_ms=began_ms) <= 0, "the new voter", WITHIN_S)
        caught_up_s = time.perf_counter() - began_s
        if not any(not each.name.startswith(f"{0:020}") for each in directory.glob("*.checkpoint")):
            raise RuntimeError(f"the new voter fetched no snapshot: {sorted(directory.iterdir())}")
        node.wait_ready(WITHIN_S)
        self._client.avoided.discard(node_id)
        until(self._is_complete, "all replicas in sync", WITHIN_S)
        return {"caught_up_s": caught_up_s, "stall_ms": self._longest_stall_ms(began_ms)}

    def _lag(self, node_id: int, since_ms: int = 0) -> int:
        """Return the number of committed records that a voter lacks, less those of the last second. A voter
        that has not fetched since `since_ms` lacks all.
        """
        found = self._client.quorum()
        if found is None:
            return 1
        for each in found.current_voters:
            if each.replica_id == node_id and each.last_fetch_timestamp >= since_ms:
                return found.high_watermark - each.log_end_offset - 10
        return 1

    # --- stalls

    def _watch(self, except_for: int) -> None:
        for watch in self._watches.values():
            watch.stop()
        folder = next(iter(self._side.nodes.values())).directory.parent
        self._watches = {
            broker_id: StallWatch(node.port, node.pid, folder / f"stalls-{broker_id}")
            for broker_id, node in self._side.brokers.items()
            if broker_id != except_for
        }

    def _longest_stall_ms(self, since_ms: int) -> float:
        return max(
            (
                each.latency_ms
                for watch in self._watches.values()
                for each in watch.latencies()
                if each.time_ms >= since_ms
            ),
            default=0.0,
        )


def check_limits(partitions: int, brokers: int) -> None:
    """Raise SystemExit if the brokers of Apache Kafka could not open the files of all partitions."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = partitions // brokers + _FILES_PER_BROKER
    if needed > allowed:
        raise SystemExit(
            f"{partitions} partitions on {brokers} brokers need about {needed} open files per broker, but "
            f"`ulimit -n` allows {allowed}: choose more --brokers, or raise the limit"
        )


def run(side: QuorumSide, arguments: argparse.Namespace, progress: Progress) -> in_pairs.Figures:
    """Start a side, and return its figures."""
    with closing(Growth(side, arguments.partitions, arguments.replicated)) as growth:
        return growth.run(progress)


def main(argv: Sequence[str] | None = None) -> None:
    parser = in_pairs.new_parser("quorum_growth", __doc__)
    parser.add_argument("--partitions", type=int, default=100_000, help="partitions with one replica")
    parser.add_argument("--replicated", type=int, default=1_000, help="partitions with three replicas")
    parser.add_argument("--brokers", type=int, default=7, help="number of brokers (at least 3)")
    parser.set_defaults(pairs=1)
    arguments = parser.parse_args(argv)
    check_limits(arguments.partitions + 3 * arguments.replicated, arguments.brokers)
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": str(
            SNAPSHOT_BYTES_PER_PARTITION * arguments.partitions
        ),
        "log.index.size.max.bytes": "65536",
    }
    layout = replace(COMBINED, brokers=range(4, arguments.brokers + 1), overrides=settings)
    in_pairs.compare_sides(
        arguments,
        quorum_sides.makers(arguments, layout),
        lambda side, progress: run(side, arguments, progress),
        steps=STEPS,
        columns=COLUMNS,
        title=f"{arguments.partitions} partitions on {arguments.brokers} brokers",
    )


if __name__ == "__main__":
    main()
