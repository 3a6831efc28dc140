"""The longest gaps of clients while nodes of a metadata quorum are killed with kill -9.

python -m tests.bench.quorum_kills [--separate] [--kills 6] [--clients confluent java] [--pairs 3] [--json]

This broker and Apache Kafka 4.4.0 are compared in pairs of runs, in the order A B, B A, A B, … Both have the
same timeouts, which are Kafka's defaults, and three replicas of each partition. Without `--separate`, three
combined nodes are killed in turn: the leader of the quorum, the broker that was elected controller (with
Apache Kafka: that Metadata names as the controller), and another one. With it, three brokers have three
controllers of their own, and the leader of the quorum and this broker are killed in turn. A node is started
again when all clients have been served, and the next one is killed when all replicas are in sync.
Measurements:

- producers: the longest time between two acknowledgements of one partition for any idempotent producer with
  acks=all (tests/faults/producers.py). With combined nodes only.
- metadata: the longest time that the creation of a topic took. Topics are created one after the other over a
  plain socket.

`longest` is the highest value of all kills, and `median` their median.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

from tests.bench import in_pairs, quorum_sides
from tests.bench.progress import Progress
from tests.bench.quorum_client import ClusterClient, MetadataChanges, until
from tests.bench.quorum_sides import START_TIMEOUT_S, QuorumSide
from tests.faults.evidence import longest_gap_s
from tests.faults.producers import CLIENTS, LIBRDKAFKA, Producer, now_ms

COLUMNS = {"longest_s": "longest", "median_s": "median"}
TOPIC = "ledger"
PARTITIONS = 6
CALM_S = 1.0
_SLOWER = 4
"""kafka-python sends Metadata to the broker with the fewest requests in flight, so it pauses between records.
"""


class Kills:
    """One run with one side."""

    def __init__(self, side: QuorumSide, kills: int, clients: Sequence[str], directory: Path) -> None:
        self._side = side
        self._kills = kills
        self._names = clients
        self._directory = directory
        ports = {broker_id: node.port for broker_id, node in side.brokers.items()}
        self._client = ClusterClient(ports)
        self._changes = MetadataChanges(ports, "change")
        self._producers: list[Producer] = []

    def close(self) -> None:
        for producer in self._producers:
            producer.kill()
        self._client.close()
        self._side.kill()

    def run(self, progress: Progress) -> in_pairs.Figures:
        label = self._side.label
        progress.step(f"{label}: start")
        self._side.start()
        self._client.create_topic(TOPIC, PARTITIONS, 3)
        self._producers = list(map(self._producer, self._names))
        self._await_acknowledged()
        self._changes.start()
        self._changes.await_another()
        gaps_s: list[float] = []
        waits_s: list[float] = []
        for name, target in itertools.islice(itertools.cycle(self._targets()), self._kills):
            node_id = target()
            progress.step(f"{label}: kill -9 of node {node_id} ({name})")
            gap_s, wait_s = self._kill(node_id)
            progress.note(f"{label}: longest gap {gap_s:.2f} s, longest creation of a topic {wait_s:.2f} s")
            gaps_s.append(gap_s)
            waits_s.append(wait_s)
        self._changes.stop()
        figures = {"metadata": {"longest_s": max(waits_s), "median_s": median(waits_s)}}
        if self._producers:
            figures["producers"] = {"longest_s": max(gaps_s), "median_s": median(gaps_s)}
        return figures

    def _targets(self) -> list[tuple[str, Callable[[], int]]]:
        found = [("quorum leader", self._client.quorum_leader), ("controller", self._controller)]
        if not self._is_separate:
            found.append(("another node", self._other))
        return found

    @property
    def _is_separate(self) -> bool:
        return not set(self._side.voters) & set(self._side.brokers)

    def _controller(self) -> int:
        return self._side.controller_id(self._client)

    def _other(self) -> int:
        others = set(self._side.brokers) - {self._client.quorum_leader(), self._controller()}
        return min(others)

    def _kill(self, node_id: int) -> tuple[float, float]:
        """Kill a node, and start it again. Return the longest gap and the longest wait, in seconds."""
        node = self._side.nodes[node_id]
        began_s, began_ms = time.monotonic(), now_ms()
        self._client.avoided.add(node_id)
        node.kill()
        if self._producers:
            until(lambda: self._is_replaced(node_id), "new leaders")
        until(lambda: self._has_other_leader(node_id), "another leader of the quorum")
        self._changes.await_another()
        self._await_acknowledged()
        node.start(START_TIMEOUT_S)
        self._client.avoided.discard(node_id)
        until(lambda: self._is_complete(), "all replicas in sync")
        until(lambda: self._has_caught_up(node_id), "the node as a voter")
        self._await_acknowledged()
        ended_s, ended_ms = time.monotonic(), now_ms()
        time.sleep(CALM_S)  # a gap at the end would show within this time
        gaps = [longest_gap_s(each.outcomes()[0], began_ms, ended_ms) for each in self._producers]
        return max(gaps, default=0.0), self._changes.longest_s(began_s, ended_s)

    def _is_replaced(self, node_id: int) -> bool:
        found = self._client.metadata(TOPIC)
        return found is not None and all(
            each.leader_id not in (node_id, -1) for topic in found.topics for each in topic.partitions
        )

    def _has_other_leader(self, node_id: int) -> bool:
        found = self._client.quorum()
        return found is not None and found.leader_id != node_id

    def _has_caught_up(self, node_id: int) -> bool:
        found = self._client.quorum()
        if found is None:
            return False
        ends = {each.replica_id: each.log_end_offset for each in (*found.current_voters, *found.observers)}
        return ends.get(node_id, -1) >= found.high_watermark - 10

    def _is_complete(self) -> bool:
        if not self._side.complete():
            return False
        found = self._client.metadata(TOPIC)
        return found is not None and all(
            each.leader_id >= 0 and len(each.isr_nodes) == 3
            for topic in found.topics
            for each in topic.partitions
        )

    # --- producers

    def _producer(self, name: str) -> Producer:
        return Producer(
            name,
            self._side.address,
            TOPIC,
            PARTITIONS,
            pause_ms=10 * (_SLOWER if name == "kafka-python" else 1),
            request_timeout_ms=5000,
            directory=self._directory,
        )

    def _await_acknowledged(self) -> None:
        since_ms = now_ms()
        for producer in self._producers:
            until(partial(_is_acknowledged, producer, since_ms), f"acknowledgements for {producer.client}")


def _is_acknowledged(producer: Producer, since_ms: int) -> bool | None:
    return producer.acknowledged_since(since_ms) or None


def run(side: QuorumSide, arguments: argparse.Namespace, progress: Progress) -> in_pairs.Figures:
    """Start a side, and return its figures."""
    clients = () if arguments.separate else arguments.clients
    directory = next(iter(side.nodes.values())).directory.parent
    with closing(Kills(side, arguments.kills, clients, directory)) as kills:
        return kills.run(progress)


def main(argv: Sequence[str] | None = None) -> None:
    parser = in_pairs.new_parser("quorum_kills", __doc__)
    parser.add_argument("--separate", action="store_true", help="three brokers and three controllers")
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=[LIBRDKAFKA, "java"])
    arguments = parser.parse_args(argv)
    layout = quorum_sides.SEPARATE if arguments.separate else quorum_sides.COMBINED
    in_pairs.compare_sides(
        arguments,
        quorum_sides.makers(arguments, layout),
        lambda side, progress: run(side, arguments, progress),
        steps=1 + arguments.kills,
        columns=COLUMNS,
        title="Three brokers and three controllers" if arguments.separate else "Three combined nodes",
    )


if __name__ == "__main__":
    main()
