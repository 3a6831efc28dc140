"""Two clusters of three brokers in the same state, this project's and Apache Kafka 3.9.1, for tests of
Kafka's tools on several brokers.

All replicas are assigned explicitly, including those of internal topics, so that the coordinators are the
same on both clusters.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.pair import Pair, Side, running
from tests.tools.neutral import differences, neutral_output
from tests.tools.world import HANGING, KEPT, SETTINGS, Content

PLACES = {
    "alpha": "1:2:3,2:3:1,3:1:2",
    "beta": "2:3",
    "ledger": "3:1:2,1:2:3",
    "hanging": "2:1:3",
    "lost": "3:2",
    "cut": "1:2:3,2:3:1,3:1:2",
    "moved": "1:2,2:1",
    "set": "3",
    "heavy": "1",
    "few": "3:2",
    "__consumer_offsets": "1:2:3,2:3:1,3:1:2",
    "__transaction_state": "2:3:1,3:1:2,1:2:3",
}
"""Replica assignments of the topics, with the preferred leader first."""

INTERNAL = {"cleanup.policy": "compact", "segment.bytes": "1048576"}

CLUSTER_SETTINGS = {
    **SETTINGS,
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "log.dirs": "{folder}/disk-1,{folder}/disk-2",
    # The cleaners of Apache Kafka allocate this buffer at once, and its heap is small.
    "log.cleaner.dedupe.buffer.size": "8388608",
    "replica.fetch.max.bytes": "8192",
    "replica.fetch.response.max.bytes": "8192",
    "replica.lag.time.max.ms": "10000",
}

READS = {"--describe", "--list", "--verify", "list", "describe", "describe-producers", "find-hanging"}
"""Arguments of commands that change nothing."""
SETTLE_S = 10.0
HEAVY_RECORDS = 40
_HEAVY_SIZE_BYTES = 8000


class Clusters:
    """Both clusters, with the same commands run on each."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._contents = {side.name: Content(side.alive) for side in pair.sides}
        for side in pair.sides:
            files = side.folder / "files"
            files.mkdir()
            (files / "impatient").write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=2000\n")
        pair.both(self._prepare)

    def _prepare(self, side: Side) -> None:
        admin = AdminClient({"bootstrap.servers": side.alive})
        new = [
            NewTopic(
                topic,
                num_partitions=len(places),
                replica_assignment=places,
                config=INTERNAL if topic.startswith("__") else KEPT,
            )
            for topic, places in _replicas().items()
        ]
        for future in admin.create_topics(new).values():
            future.result(60)
        leaders = {topic: side.brokers[int(PLACES[topic][0])].address for topic in HANGING}
        self._contents[side.name].make(leaders)
        producer = Producer({"bootstrap.servers": side.alive, "linger.ms": 0, "log_level": 0})
        for _ in range(HEAVY_RECORDS):
            producer.produce("heavy", bytes(_HEAVY_SIZE_BYTES), partition=0)
            producer.flush(30)

    def same(self, tool: str, commands: str, *, but: str = "$^") -> None:
        """Run each line's arguments on both clusters. Raises AssertionError with all differences, except in
        lines that match `but`.
        """
        lines = [line for line in commands.splitlines() if line.strip()]
        found = [line for command in lines for line in self._differences(tool, command.split(), but)]
        assert not found, "\n".join(found)

    def _differences(self, tool: str, words: Sequence[str], but: str) -> list[str]:
        """Return the differences between the outputs. Commands that change nothing are retried until the
        outputs are equal or SETTLE_S has passed.
        """
        deadline = time.monotonic() + (SETTLE_S if READS & set(words) else 0)
        while True:
            found = self.pair.both(lambda side: self._output(side, tool, words))
            ours, genuine = ([line for line in lines if not re.match(but, line)] for lines in found)
            if ours == genuine or time.monotonic() > deadline:
                return differences(f"{tool} {' '.join(words)}", genuine, ours)
            time.sleep(0.2)  # interval of polling

    def _output(self, side: Side, tool: str, words: Sequence[str]) -> list[str]:
        given = [
            word.replace("{files}", str(side.folder / "files")).replace("{store}", side.store)
            for word in words
        ]
        if tool == "kafka-cluster":
            given += ["--bootstrap-server", side.alive]
        elif "--zookeeper" not in given:
            given = ["--bootstrap-server", side.alive, *given]
        printed = side.tools.run(tool, *given)
        return neutral_output(printed, str(side.folder), side.ports)

    def same_files(self, arguments: str, pattern: str) -> None:
        """Check that kafka-dump-log prints the same for each broker's files that match `pattern`."""

        def dump(side: Side, broker_id: int) -> list[str]:
            found = sorted((side.folder / str(broker_id)).glob(f"disk-*/{pattern}"), key=_place)
            names = ",".join(map(str, found))
            printed = side.tools.run("kafka-dump-log", *arguments.split(), "--files", names)
            return neutral_output(printed, str(side.folder), side.ports)

        found = []
        for broker_id in (1, 2, 3):
            ours, genuine = self.pair.both(functools.partial(dump, broker_id=broker_id))
            found += differences(f"{arguments} {broker_id}/{pattern}", genuine, ours)
        assert not found, "\n".join(found)

    def write(self, name: str, content: object) -> None:
        """Write a JSON file for the tools of both sides. {folder} is replaced by the side's directory."""
        for side in self.pair.sides:
            text = json.dumps(content).replace("{folder}", str(side.folder))
            (side.folder / "files" / name).write_text(text)

    def until(self, topic: str, leader: int, isr: Sequence[int], partition: int = 0) -> None:
        """Wait until a partition has this leader and these in-sync replicas on both sides."""

        def reached(side: Side) -> bool:
            found, in_sync = side.partition(topic, partition)
            return found == leader and sorted(in_sync) == sorted(isr)

        self.pair.until(reached, f"leader {leader}, in sync {isr} of {topic}-{partition}")

    def stop(self, broker_id: int) -> None:
        self.pair.both(lambda side: side.brokers[broker_id].stop())

    def start(self, broker_id: int, *, led_only: bool = False) -> None:
        """Restart a broker, and wait until all live replicas (with `led_only`: of partitions with a leader)
        are in sync.
        """
        self.pair.both(lambda side: side.brokers[broker_id].start())
        self.pair.until(lambda side: side.fully_in_sync(led_only=led_only), "all in sync")

    def close(self) -> None:
        for content in self._contents.values():
            content.close()


@contextmanager
def both_clusters(directory: Path) -> Iterator[Clusters]:
    """Start both clusters with all brokers."""
    with running(directory, CLUSTER_SETTINGS) as pair:
        clusters = Clusters(pair)
        yield clusters
        clusters.close()


def _replicas() -> dict[str, list[list[int]]]:
    return {
        topic: [[int(broker) for broker in place.split(":")] for place in places.split(",")]
        for topic, places in PLACES.items()
    }


def _place(file: Path) -> str:
    """Sort key of a log file: partition and segment, because the log directory of a partition may differ."""
    return f"{file.parent.name}/{file.name}"
