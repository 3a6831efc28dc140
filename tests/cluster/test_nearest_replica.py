"""Fetching from the closest replica (KIP-392): the responses of leader and follower, and real clients.

`SEEN` is the expected transcript. The campaign runs the same steps on Apache Kafka 3.9.1. Each line has the
parameters of a Fetch request, and the error, high watermark, log start offset, preferred replica and number
of records in the response.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.cluster.availability import SETTLE_S, ThreeBrokers, values
from tests.support import campaign, java
from tests.support.process import wait_until

SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "broker.rack": "rack-{id}",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
LEADER, FOLLOWER, OTHER = 1, 2, 3

SEEN = """
the leader
  rack-2 from 0: NONE hw 4 start 0 preferred 2, 0 records
  rack-1 from 0: NONE hw 4 start 0 preferred -1, 4 records
  rack-9 from 0: NONE hw 4 start 0 preferred -1, 4 records
  no rack from 0: NONE hw 4 start 0 preferred -1, 4 records
  rack-2 from 4: NONE hw 4 start 0 preferred 2, 0 records
  rack-2 from 5: OFFSET_OUT_OF_RANGE hw -1 start -1 preferred -1, 0 records
  rack-2 from 0, version 10: NONE hw 4 start 0 preferred -1, 4 records
the follower
  rack-2 from 0: NONE hw 4 start 0 preferred -1, 4 records
  no rack from 2: NONE hw 4 start 0 preferred -1, 2 records
  from 4: NONE hw 4 start 0 preferred -1, 0 records
  from 5: OFFSET_OUT_OF_RANGE hw -1 start -1 preferred -1, 0 records
  from 0, version 10: NOT_LEADER_OR_FOLLOWER hw -1 start -1 preferred -1, 0 records
  in its epoch: NONE hw 4 start 0 preferred -1, 4 records
  in an older epoch: FENCED_LEADER_EPOCH hw -1 start -1 preferred -1, 0 records
  in a newer epoch: UNKNOWN_LEADER_EPOCH hw -1 start -1 preferred -1, 0 records
  as a follower: NOT_LEADER_OR_FOLLOWER hw -1 start -1 preferred -1, 0 records
  ListOffsets: NOT_LEADER_OR_FOLLOWER
records that are not committed
  leader, rack-2 from 4: NONE hw 4 start 0 preferred 2, 0 records
  leader, rack-2 from 5: NONE hw 4 start 0 preferred 2, 0 records
  leader, rack-3 from 4: NONE hw 4 start 0 preferred 3, 0 records
  leader, rack-3 from 5: NONE hw 4 start 0 preferred -1, 0 records
  follower from 3: NONE hw 4 start 0 preferred -1, 1 records
  follower from 4: NONE hw 4 start 0 preferred -1, 0 records
  follower from 5: NONE hw 4 start 0 preferred -1, 0 records
  follower from 6: OFFSET_OUT_OF_RANGE hw -1 start -1 preferred -1, 0 records
  DeleteRecords to 2: REQUEST_TIMED_OUT low watermark 0
deleted records
  DeleteRecords to 3: NONE low watermark 3
  leader, rack-2 from 1: OFFSET_OUT_OF_RANGE hw -1 start -1 preferred -1, 0 records
  leader, rack-2 from 3: NONE hw 5 start 3 preferred 2, 0 records
  follower from 1: OFFSET_OUT_OF_RANGE hw -1 start -1 preferred -1, 0 records
  follower from 3: NONE hw 5 start 3 preferred -1, 2 records
the follower is dead
  leader, rack-2 from 3: NONE hw 5 start 3 preferred -1, 2 records
"""


class Trial:
    """Runs the steps, and writes the transcript."""

    def __init__(self, cluster: ThreeBrokers) -> None:
        self.cluster = cluster
        self.lines = [""]

    def play(self) -> str:
        self.cluster.create_topic("t", [LEADER, FOLLOWER, OTHER], {})
        for _ in range(4):
            assert self.cluster.produce(LEADER, "t", -1) == "NONE"
        self._await_high_watermark(FOLLOWER, 4)
        self._leader()
        self._follower()
        self._uncommitted()
        self._deleted()
        self.cluster.kill(FOLLOWER)
        self.cluster.await_state(["t"], LEADER, {LEADER, OTHER})
        self.lines.append("the follower is dead")
        self._fetch("leader, rack-2 from 3", LEADER, 3, "rack-2")
        return "\n".join([*self.lines, ""])

    def _fetch(self, title: str, broker_id: int, offset: int, rack: str = "", **asked: int) -> None:
        found = self.cluster.fetch(broker_id, "t", offset, rack, **asked)
        preferred = found.get("preferred_read_replica", -1)
        seen = f"hw {found['high_watermark']} start {found['log_start_offset']} preferred {preferred}"
        count = len(values(found["records"]))
        self.lines.append(f"  {title}: {ErrorCode(found['error_code']).name} {seen}, {count} records")

    def _await_high_watermark(self, broker_id: int, offset: int) -> None:
        wait_until(
            lambda: self.cluster.fetch(broker_id, "t", offset)["high_watermark"] == offset,
            SETTLE_S,
            f"high watermark {offset} on broker {broker_id}",
        )

    def _leader(self) -> None:
        self.lines.append("the leader")
        for rack in ("rack-2", "rack-1", "rack-9", ""):
            self._fetch(f"{rack or 'no rack'} from 0", LEADER, 0, rack)
        self._fetch("rack-2 from 4", LEADER, 4, "rack-2")
        self._fetch("rack-2 from 5", LEADER, 5, "rack-2")
        self._fetch("rack-2 from 0, version 10", LEADER, 0, "rack-2", version=10)

    def _follower(self) -> None:
        self.lines.append("the follower")
        self._fetch("rack-2 from 0", FOLLOWER, 0, "rack-2")
        self._fetch("no rack from 2", FOLLOWER, 2)
        self._fetch("from 4", FOLLOWER, 4)
        self._fetch("from 5", FOLLOWER, 5)
        self._fetch("from 0, version 10", FOLLOWER, 0, version=10)
        self._fetch("in its epoch", FOLLOWER, 0, leader_epoch=self._epoch())
        self.cluster.kill(OTHER)
        self.cluster.await_state(["t"], LEADER, {LEADER, FOLLOWER})
        self.cluster.start_again(OTHER)
        self.cluster.await_state(["t"], LEADER, {LEADER, FOLLOWER, OTHER})
        wait_until(
            lambda: self.cluster.fetch(FOLLOWER, "t", 0, leader_epoch=self._epoch())["error_code"] == 0,
            SETTLE_S,
            "the new leader epoch on the follower",
        )
        self._fetch("in an older epoch", FOLLOWER, 0, leader_epoch=0)
        self._fetch("in a newer epoch", FOLLOWER, 0, leader_epoch=self._epoch() + 1)
        self._fetch("as a follower", FOLLOWER, 0, replica_id=OTHER)
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
        request = {"replica_id": -1, "topics": [{"name": "t", "partitions": [partition]}]}
        answer = self.cluster.ask(FOLLOWER, ApiKey.LIST_OFFSETS, 4, request)
        code = ErrorCode(answer["topics"][0]["partitions"][0]["error_code"])
        self.lines.append(f"  ListOffsets: {code.name}")

    def _epoch(self) -> int:
        return int(self.cluster.metadata(LEADER, ["t"])["topics"][0]["partitions"][0]["leader_epoch"])

    def _uncommitted(self) -> None:
        """Broker 3 is paused and in sync, so the other brokers have an uncommitted record."""
        self.lines.append("records that are not committed")
        self.cluster.pause(OTHER)
        assert self.cluster.produce(LEADER, "t", 1) == "NONE"
        wait_until(
            lambda: self.cluster.fetch(FOLLOWER, "t", 5)["error_code"] == 0,
            SETTLE_S,
            "the record on the follower",
        )
        for rack in ("rack-2", "rack-3"):
            for offset in (4, 5):
                self._fetch(f"leader, {rack} from {offset}", LEADER, offset, rack)
        for offset in (3, 4, 5, 6):
            self._fetch(f"follower from {offset}", FOLLOWER, offset)
        self._delete(2, timeout_ms=500)
        self.cluster.resume(OTHER)
        self._await_high_watermark(FOLLOWER, 5)

    def _delete(self, offset: int, timeout_ms: int) -> None:
        partition = {"partition_index": 0, "offset": offset}
        request = {"topics": [{"name": "t", "partitions": [partition]}], "timeout_ms": timeout_ms}
        answer = self.cluster.ask(LEADER, ApiKey.DELETE_RECORDS, 1, request)["topics"][0]["partitions"][0]
        code, low_watermark = ErrorCode(answer["error_code"]), answer["low_watermark"]
        self.lines.append(f"  DeleteRecords to {offset}: {code.name} low watermark {low_watermark}")

    def _deleted(self) -> None:
        self.lines.append("deleted records")
        self._delete(3, timeout_ms=20_000)
        self._fetch("leader, rack-2 from 1", LEADER, 1, "rack-2")
        self._fetch("leader, rack-2 from 3", LEADER, 3, "rack-2")
        self._fetch("follower from 1", FOLLOWER, 1)
        self._fetch("follower from 3", FOLLOWER, 3)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    cluster = ThreeBrokers(tmp_path_factory.mktemp("nearest"), settings=SETTINGS)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def difference(seen: str) -> str:
    return "\n".join(difflib.unified_diff(SEEN.splitlines(), seen.splitlines(), "expected", "seen", n=1))


def fill(cluster: ThreeBrokers, topic: str, count: int = 20) -> None:
    cluster.create_topic(topic, [LEADER, FOLLOWER], {})
    for _ in range(count):
        assert cluster.produce(LEADER, topic, -1) == "NONE"


def test_librdkafka_reads_from_the_follower_in_its_rack(ours: ThreeBrokers) -> None:
    from confluent_kafka import Consumer, TopicPartition

    fill(ours, "librdkafka")
    read_from: list[int] = []

    def statistics(text: str) -> None:
        found: dict[str, Any] = json.loads(text)["topics"].get("librdkafka", {}).get("partitions", {})
        if "0" in found:
            read_from.append(found["0"]["broker"])

    consumer = Consumer(
        {
            "bootstrap.servers": ours.addresses,
            "group.id": "unused",
            "enable.auto.commit": False,
            "client.rack": f"rack-{FOLLOWER}",
            "statistics.interval.ms": 100,
            "stats_cb": statistics,
        }
    )
    consumer.assign([TopicPartition("librdkafka", 0, 0)])
    count = 0

    def reads_on() -> bool:
        nonlocal count
        message = consumer.poll(0.1)
        count += message is not None and message.error() is None
        return count >= 20 and read_from[-1:] == [FOLLOWER]

    try:
        wait_until(reads_on, SETTLE_S, "20 records, fetched from the follower", 0)
    finally:
        consumer.close()


LOG4J = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%m%n
log4j.logger.org.apache.kafka.clients.FetchSessionHandler=DEBUG
"""


def test_the_java_client_reads_from_the_follower_in_its_rack(ours: ThreeBrokers, tmp_path: Path) -> None:
    fill(ours, "java")
    logging = tmp_path / "log4j.properties"
    logging.write_text(LOG4J)
    arguments = ("--topic", "java", "--partition", "0", "--offset", "earliest", "--max-messages", "20")
    rack = ("--consumer-property", f"client.rack=rack-{FOLLOWER}")
    line = java.command(
        "kafka-console-consumer",
        *("--bootstrap-server", ours.addresses, *arguments, *rack),
        jvm_options=[*java.quick_options(), f"-Dlog4j.configuration={logging.as_uri()}"],
    )
    done = subprocess.run(line, capture_output=True, text=True, timeout=SETTLE_S)
    assert done.stdout.splitlines().count("acks=-1") == 20, done.stdout + done.stderr
    sessions = re.findall(r"Node (\d) sent a full fetch response that created a new", done.stdout)
    assert sessions[:2] == [str(LEADER), str(FOLLOWER)], done.stdout


def test_leaders_and_followers_return_the_responses_recorded_from_kafka(ours: ThreeBrokers) -> None:
    seen = Trial(ours).play()
    assert seen == SEEN, difference(seen)


@pytest.mark.timeout(900)
@pytest.mark.skipif(not campaign.enabled(), reason="needs three Apache Kafka brokers: --campaign")
def test_apache_kafka_returns_the_same_responses(tmp_path: Path) -> None:
    cluster = ThreeBrokers(tmp_path, genuine=True, settings=SETTINGS)
    try:
        cluster.start()
        seen = Trial(cluster).play()
    finally:
        cluster.stop()
    assert seen == SEEN, difference(seen)
