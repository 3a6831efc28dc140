"""Availability of a topic with three replicas while brokers are down, with the exact error codes.

`SEEN` is the expected transcript. Each line of a table has the min.insync.replicas setting, the results of
Produce with acks 0, 1 and all (for acks=0, which has no response: the state of the connection), and the
number of records that a consumer then reads. The campaign runs the same steps on Apache Kafka 3.9.1.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.cluster.availability import SETTLE_S, ThreeBrokers, eventually, produce_outcome, produce_request
from tests.support import campaign, java
from tests.support.process import wait_until

MIN_ISR = {"one": 1, "two": 2, "three": 3}
"""Topics on brokers 1, 2 and 3, with their min.insync.replicas."""

UNCLEAN = {"never": "false", "always": "true", "later": "false", "by-tool": "false"}
"""Topics on brokers 1 and 2, with their unclean.leader.election.enable."""

SEEN = """
all three alive
  min 1: open NONE NONE, 3 seen
  min 2: open NONE NONE, 3 seen
  min 3: open NONE NONE, 3 seen
one silent and still in sync
  min 1: REQUEST_TIMED_OUT
  min 2: REQUEST_TIMED_OUT
  min 3: REQUEST_TIMED_OUT
one silent and then out of sync
  min 1: NONE
  min 2: NONE
  min 3: REQUEST_TIMED_OUT
it is in sync again
  min 1: open NONE NONE, 8 seen
  min 2: open NONE NONE, 8 seen
  min 3: open NONE NONE, 8 seen
one dead
  min 1: open NONE NONE, 11 seen
  min 2: open NONE NONE, 11 seen
  min 3: open NONE NOT_ENOUGH_REPLICAS, 8 seen
two dead
  min 1: open NONE NONE, 14 seen
  min 2: open NONE NOT_ENOUGH_REPLICAS, 11 seen
  min 3: open NONE NOT_ENOUGH_REPLICAS, 8 seen
min.insync.replicas of the last lowered to 1
  open NONE NONE, all seen
unclean election, all that were in sync are dead
  never: LEADER_NOT_AVAILABLE, leader -1, in sync {1}
    closed NOT_LEADER_OR_FOLLOWER NOT_LEADER_OR_FOLLOWER, some seen
  always: NONE, leader 2, in sync {2}
    open NONE NONE, 6 seen
  later: LEADER_NOT_AVAILABLE, leader -1, in sync {1}
    closed NOT_LEADER_OR_FOLLOWER NOT_LEADER_OR_FOLLOWER, some seen
  by-tool: LEADER_NOT_AVAILABLE, leader -1, in sync {1}
    closed NOT_LEADER_OR_FOLLOWER NOT_LEADER_OR_FOLLOWER, some seen
  one: LEADER_NOT_AVAILABLE, leader -1, in sync {1}
    closed NOT_LEADER_OR_FOLLOWER NOT_LEADER_OR_FOLLOWER, some seen
  preferred election of never: PREFERRED_LEADER_NOT_AVAILABLE
allowed while it runs, and asked for by the tool
  never: LEADER_NOT_AVAILABLE, leader -1, in sync {1}
    closed NOT_LEADER_OR_FOLLOWER NOT_LEADER_OR_FOLLOWER, some seen
  later: NONE, leader 2, in sync {2}
    open NONE NONE, 6 seen
  by-tool: NONE, leader 2, in sync {2}
    open NONE NONE, 6 seen
  unclean election of later: ELECTION_NOT_NEEDED
all back
  never: leader 1 has 4
    on broker 2: 4 seen
  always: leader 2 has 6
    on broker 1: 6 seen
  later: leader 2 has 6
    on broker 1: 6 seen
  by-tool: leader 2 has 6
    on broker 1: 6 seen
  one: leader 1 has 14
    on broker 2: 14 seen
"""


class Trial:
    """Runs the steps, and writes the transcript."""

    def __init__(self, cluster: ThreeBrokers) -> None:
        self.cluster = cluster
        self.lines = [""]

    def play(self) -> str:
        self._create()
        self._table("all three alive", MIN_ISR)
        self._silence()
        self._table("it is in sync again", MIN_ISR)
        self._kill(2, {1, 3})
        self._table("one dead", MIN_ISR)
        self._kill(3, {1})
        self._table("two dead", MIN_ISR)
        self._lower()
        self._lose_the_last()
        self._elect()
        self._bring_all_back()
        return "\n".join([*self.lines, ""])

    def _say(self, line: str) -> None:
        self.lines.append(line)

    def _create(self) -> None:
        for name, min_isr in MIN_ISR.items():
            self.cluster.create_topic(name, [1, 2, 3], {"min.insync.replicas": str(min_isr)})
        for name, allowed in UNCLEAN.items():
            self.cluster.create_topic(name, [1, 2], {"unclean.leader.election.enable": allowed})
            for _ in range(3):
                assert self.cluster.produce(1, name, -1) == "NONE"

    def _writes(self, broker_id: int, topic: str) -> str:
        return " ".join(self.cluster.produce(broker_id, topic, acks) for acks in (0, 1, -1))

    def _reads(self, broker_id: int, topic: str) -> str:
        error, seen = self.cluster.read(broker_id, topic)
        return f"{len(seen)} seen" if error == "NONE" else error

    def _row(self, broker_id: int, topic: str) -> str:
        written = self._writes(broker_id, topic)
        return f"{written}, {self._reads(broker_id, topic)}"

    def _table(self, title: str, topics: dict[str, int]) -> None:
        self._say(title)
        for name, min_isr in topics.items():
            self._say(f"  min {min_isr}: {self._row(1, name)}")

    def _silence(self) -> None:
        """Pause broker 3: it remains in sync until its session expires."""
        self.cluster.pause(3)
        self._pending("one silent and still in sync", 300)
        self._pending("one silent and then out of sync", 3 * self.cluster.session_timeout_ms)
        self.cluster.await_state(MIN_ISR, 1, {1, 2})
        self.cluster.resume(3)
        self.cluster.await_state(MIN_ISR, 1, {1, 2, 3})

    def _pending(self, title: str, timeout_ms: int) -> None:
        self._say(title)
        connections = {name: self.cluster.connect(1) for name in MIN_ISR}
        for name, connection in connections.items():
            connection.begin(ApiKey.PRODUCE, 7, produce_request(name, -1, timeout_ms))
        for name, connection in connections.items():
            with connection:
                self._say(f"  min {MIN_ISR[name]}: {produce_outcome(connection)}")

    def _kill(self, broker_id: int, in_sync: set[int]) -> None:
        self.cluster.kill(broker_id)
        self.cluster.await_state(MIN_ISR, 1, in_sync)
        self.cluster.await_state(UNCLEAN, 1, in_sync & {1, 2})

    def _lower(self) -> None:
        """Lower min.insync.replicas on a running leader: pending records become visible."""
        self._say("min.insync.replicas of the last lowered to 1")
        self.cluster.set_topic_config("three", "min.insync.replicas", "1")
        wait_until(lambda: self.cluster.produce(1, "three", -1) == "NONE", SETTLE_S, "success with acks=all")
        written = self._writes(1, "three")
        stored = self.cluster.stored(1, "three")
        seen = len(self.cluster.read(1, "three")[1])
        self._say(f"  {written}, {'all' if seen == stored else seen} seen")

    def _lose_the_last(self) -> None:
        """Kill broker 1, the only in-sync replica, and start broker 2, which is out of sync."""
        for name in UNCLEAN:
            assert self.cluster.produce(1, name, -1) == "NONE"
        self.cluster.kill(1)
        self.cluster.start_again(2)
        self.cluster.await_state(["always"], 2, {2})
        self._say("unclean election, all that were in sync are dead")
        for name in (*UNCLEAN, "one"):
            self._state(name)
        self._say(f"  preferred election of never: {self.cluster.elect('preferred', 'never')['never'].name}")

    def _state(self, topic: str) -> None:
        error, leader, in_sync = self.cluster.state(2, topic)
        self._say(f"  {topic}: {error.name}, leader {leader}, in sync {in_sync}")
        written = self._writes(2, topic)
        # After the loss of its leader, a follower serves the records up to the high watermark that it knew.
        read = self._reads(2, topic)
        self._say(f"    {written}, {read if leader >= 0 else re.sub('^[0-9]+', 'some', read)}")

    def _elect(self) -> None:
        self._say("allowed while it runs, and asked for by the tool")
        self.cluster.set_topic_config("later", "unclean.leader.election.enable", "true")
        self.cluster.await_state(["later"], 2, {2})
        arguments = ("--election-type", "unclean", "--topic", "by-tool", "--partition", "0")
        java.run("kafka-leader-election", "--bootstrap-server", self.cluster.addresses, *arguments)
        self.cluster.await_state(["by-tool"], 2, {2})
        for name in ("never", "later", "by-tool"):
            self._state(name)
        self._say(f"  unclean election of later: {self.cluster.elect('unclean', 'later')['later'].name}")

    def _bring_all_back(self) -> None:
        """Restart the brokers. The last in-sync replica leads the partitions that had no unclean election;
        the others truncate their logs to the new leader's.
        """
        self.cluster.start_again(1, 3)
        self._say("all back")
        for name in (*UNCLEAN, "one"):
            leader = 1 if name in ("never", "one") else 2
            self.cluster.await_state([name], leader, {1, 2} if name in UNCLEAN else {1, 2, 3})
            count = len(self.cluster.read(leader, name)[1])
            self._say(f"  {name}: leader {leader} has {count}")
            follower = 3 - leader
            seen = eventually(lambda: self._reads(follower, name), f"{count} seen")  # noqa: B023
            self._say(f"    on broker {follower}: {seen}")


def difference(seen: str) -> str:
    return "\n".join(difflib.unified_diff(SEEN.splitlines(), seen.splitlines(), "expected", "seen", n=1))


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[ThreeBrokers]:
    cluster = ThreeBrokers(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def genuine(tmp_path: Path) -> Iterator[ThreeBrokers]:
    cluster = ThreeBrokers(tmp_path, genuine=True)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_availability_matches_every_row_of_the_documented_tables(ours: ThreeBrokers) -> None:
    seen = Trial(ours).play()
    assert seen == SEEN, difference(seen)


@pytest.mark.timeout(900)
@pytest.mark.skipif(not campaign.enabled(), reason="needs three Apache Kafka brokers: --campaign")
def test_apache_kafka_has_the_same_availability(genuine: ThreeBrokers) -> None:
    seen = Trial(genuine).play()
    assert seen == SEEN, difference(seen)
