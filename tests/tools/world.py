"""Two brokers in the same state, this project's and Apache Kafka 3.9.1, for tests of Kafka's tools.

Each broker has two log directories. Topics, groups and transactions are created in the same order with the
same contents. Tools that change something have topics and groups of their own, so that tests are independent.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.features import disable_consumer_groups
from tests.conformance.record_requests import produce_request
from tests.conformance.wire import Connection
from tests.support.java_tools import JavaTools, Printed
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server
from tests.tools.compare import PAUSE_S, READS, SETTLE_S
from tests.tools.neutral import differences, neutral_output

FIRST_MS = 1_700_000_000_000
"""Timestamp of the first record in every topic. The topics have no time-based retention."""

TOPICS = {"alpha": 3, "beta": 1, "ledger": 2, "hanging": 1, "lost": 1, "cut": 3, "moved": 2, "set": 1}
HANGING = ("hanging", "lost")
KEPT = {"retention.ms": "-1"}

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.min.isr": "1",
    "log.segment.bytes": "1048576",
}


class Content:
    """Records, groups and transactions on the brokers at `address`. The topics must exist, with the settings
    KEPT.

    A group member and a transaction remain open until `close`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._kept: list[object] = []

    def make(self, leaders: Mapping[str, str]) -> None:
        """Create everything. `leaders` maps each topic in HANGING to the address of its leader."""
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 0, "log_level": 0})
        for number in range(30):
            for topic in ("alpha", "cut", "moved") if number < 12 else ("alpha",):
                where, when = number % min(TOPICS[topic], 3), FIRST_MS + number
                producer.produce(topic, f"value {number}", f"key {number}", where, timestamp=when)
                producer.flush(30)
        producer.produce("beta", None, "gone", 0, timestamp=FIRST_MS, headers={"trace": b"abc"})
        assert producer.flush(30) == 0
        for group in ("idle", "reset"):
            self._commit(group, {("alpha", 0): 4, ("alpha", 1): 10, ("beta", 0): 1})
        self._commit("deleted", {("alpha", 2): 0})
        self._join("busy")
        self._transactions()
        for topic, leader in leaders.items():
            self._hang(topic, leader)

    def _commit(self, group: str, offsets: dict[tuple[str, int], int]) -> None:
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group, "log_level": 0})
        for (topic, partition), offset in offsets.items():
            place = TopicPartition(topic, partition, offset, f"at {offset}")
            consumer.commit(offsets=[place], asynchronous=False)
        consumer.close()

    def _join(self, group: str) -> None:
        """Join a group with a member that stays until `close`."""
        member = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": group,
                "client.id": "member",
                "log_level": 0,
                "session.timeout.ms": 300_000,
                "max.poll.interval.ms": 600_000,
                "partition.assignment.strategy": "range",
                "enable.auto.commit": False,
            }
        )
        member.subscribe(["alpha"])

        def has_all() -> bool:
            return member.poll(0.1) is None and len(member.assignment()) == 3

        wait_until(has_all, 60, "the assignment of all partitions")
        member.commit(offsets=[TopicPartition("alpha", 1, 3)], asynchronous=False)
        self._kept.append(member)

    def _transactions(self) -> None:
        """Create completed transactions, one of them with offsets, and an open one."""
        opened = self._transactional("open")
        opened.begin_transaction()
        opened.produce("ledger", "open", partition=1, timestamp=FIRST_MS)
        assert opened.flush(30) == 0
        done = self._transactional("done")
        for number in range(3):
            done.begin_transaction()
            done.produce("ledger", f"record {number}", partition=number % 2, timestamp=FIRST_MS + number)
            done.flush(30)
            (done.abort_transaction if number == 1 else done.commit_transaction)(30)
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "copier", "log_level": 0})
        done.begin_transaction()
        offsets = [TopicPartition("ledger", 0, 2)]
        done.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        done.commit_transaction(30)
        consumer.close()
        self._kept += [done, opened]

    def _hang(self, topic: str, leader: str) -> None:
        """Create a hanging transaction, which no coordinator knows."""
        records = build_batch(
            [Record(timestamp=FIRST_MS, value=b"nobody ends it")],
            producer_id=4711,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        request = produce_request(topic, records, transactional_id="nobody")
        with Connection(leader) as connection:
            (answer,) = connection.ask(ApiKey.PRODUCE, 9, request)["responses"]
        assert answer["partition_responses"][0]["error_code"] == 0, answer

    def _transactional(self, name: str) -> Producer:
        settings = {
            "transactional.id": name,
            "transaction.timeout.ms": 600_000,
            "linger.ms": 0,
            "log_level": 0,
        }
        producer = Producer({"bootstrap.servers": self.address, **settings})
        producer.init_transactions(60)
        return producer

    def close(self) -> None:
        """Close the member and the transactional producers."""
        self._kept.clear()


class Side:
    """One broker and its tools."""

    def __init__(self, name: str, server: Server, folder: Path, tools: JavaTools) -> None:
        self.name = name
        self.server = server
        self.tools = tools
        self.address = server.address
        self.folder = folder
        self.files = folder / "files"
        """The directory of files for the tools."""
        self.log_dirs = [Path(item) for item in _log_dirs(server).split(",")]
        self._content = Content(self.address)
        self.files.mkdir()

    def prepare(self) -> None:
        """Create the topics and their contents."""
        admin = AdminClient({"bootstrap.servers": self.address})
        new = [NewTopic(name, count, 1, config=KEPT) for name, count in TOPICS.items()]
        for future in admin.create_topics(new).values():
            future.result(60)
        self._content.make(dict.fromkeys(HANGING, self.address))

    def run(self, tool: str, *arguments: str) -> Printed:
        """Run a tool on this broker. DumpLogSegments is run on the files that match the last argument."""
        given = [item.replace("{files}", str(self.files)) for item in arguments]
        if tool == "kafka-dump-log":
            pattern = given.pop()
            found = sorted(str(file) for place in self.log_dirs for file in place.glob(pattern))
            found.sort(key=lambda name: name.partition("/disk-")[2][2:])
            return self.tools.run(tool, *given, "--files", ",".join(found))
        return self.tools.run(tool, "--bootstrap-server", self.address, *given)

    def has_moved(self, topic: str, count: int) -> bool:
        """Return whether the first `count` partitions are only in the second log directory."""
        first, second = ({item.name for item in place.iterdir()} for place in self.log_dirs)
        names = {f"{topic}-{number}" for number in range(count)}
        return names <= second and not names & first

    def close(self) -> None:
        self._content.close()
        self.server.stop()


def _log_dirs(server: Server) -> str:
    assert isinstance(server, KafkaCompatBroker | GenuineKafka)
    return server.overrides["log.dirs"]


class Pair:
    """Both sides, with the same commands run on each."""

    def __init__(self, directory: Path, settings: Mapping[str, str] = SETTINGS) -> None:
        servers: dict[str, Server] = {}
        for name, kind in (("ours", KafkaCompatBroker), ("genuine", GenuineKafka)):
            folder = directory / name
            log_dirs = ",".join(str(folder / f"disk-{number}") for number in (1, 2))
            own = {"kafka.compat.transaction.version": "0"} if kind is KafkaCompatBroker else {}
            servers[name] = kind(folder, {**settings, **own, "log.dirs": log_dirs})
            servers[name].launch()
        for server in servers.values():
            server.wait_ready(120)
        disable_consumer_groups(servers["ours"].address)
        # One JVM for both sides: it loads the classes once.
        self._tools = JavaTools()
        self.sides = [Side(name, server, directory / name, self._tools) for name, server in servers.items()]
        with ThreadPoolExecutor(2) as both:
            for outcome in [both.submit(side.prepare) for side in self.sides]:
                outcome.result()

    def differences(self, tool: str, arguments: Iterable[str]) -> list[str]:
        """Return the differences between the tool's outputs on both sides, or [] if they are equal.

        {files} in an argument is the side's directory of files, {disk} its second log directory.
        """
        given = list(arguments)
        deadline = time.monotonic() + (SETTLE_S if READS & {*given} else 0)
        while True:
            with ThreadPoolExecutor(2) as both:
                ours, genuine = (
                    found.result() for found in [both.submit(_lines, s, tool, given) for s in self.sides]
                )
            found = differences(f"{tool} {' '.join(given)}", genuine, ours)
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(PAUSE_S)  # interval of polling

    def write(self, name: str, text: str) -> None:
        """Write a file for the tools of both sides. {disk} is replaced by the side's second log directory."""
        for side in self.sides:
            (side.files / name).write_text(text.replace("{disk}", str(side.log_dirs[1])))

    def wait_until_moved(self, topic: str, count: int) -> None:
        """Wait until the first `count` partitions of a topic are only in each side's second log directory."""
        for side in self.sides:
            moved = functools.partial(side.has_moved, topic, count)
            wait_until(moved, 60, f"move of {topic} on {side.name}")

    def close(self) -> None:
        for side in self.sides:
            side.close()
        self._tools.close()


def _lines(side: Side, tool: str, arguments: list[str]) -> list[str]:
    return neutral_output(side.run(tool, *arguments), str(side.folder), {str(side.server.port): "PORT"})
