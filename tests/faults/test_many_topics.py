"""Many topics, some of which are continuously deleted and created again, under acks=all load and failovers.

This campaign uses 2,000 topics, deletes and recreates 500 of them, and runs for ten minutes.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.faults.stalls import StallWatch
from tests.support import campaign
from tests.support.process import wait_until

TOPICS = 2000
CHURNED = 500
RUN_S = 600
FAILOVER_EVERY_S = 30
STALL_MS_MAX = 100.0
_RECORDS_AFTER_BIRTH = 3
_PAUSE_S = 0.002
_PATIENCE_S = 120.0
_BATCH = 50
_CHURNS = 4


class SteadyLoad(threading.Thread):
    """Writes numbered records to topics in turn, and records which of them were acknowledged."""

    def __init__(self, servers: str, topics: Sequence[str], log: Path) -> None:
        super().__init__(name="steady load", daemon=True)
        self.acknowledged: dict[str, set[int]] = defaultdict(set)
        self.given_up: list[str] = []
        self._servers = servers
        self._topics = topics
        self._log = logging.Logger("steady load")
        self._log.addHandler(logging.FileHandler(log))
        self._stopping = threading.Event()

    def run(self) -> None:
        client = _producer(self._servers, self._log)
        number = 0
        while not self._stopping.wait(_PAUSE_S):
            topic = self._topics[number % len(self._topics)]
            client.produce(topic, str(number).encode(), partition=0, on_delivery=self._noter(topic, number))
            client.poll(0)
            number += 1
        client.flush(_PATIENCE_S)

    def stop(self) -> None:
        self._stopping.set()
        self.join(_PATIENCE_S + 10)
        assert not self.is_alive()

    def _noter(self, topic: str, number: int) -> Callable[[Any, Any], None]:
        def delivered(error: Any, _: Any) -> None:
            if error is None:
                self.acknowledged[topic].add(number)
            else:
                self.given_up.append(f"{topic} {number}: {error}")

        return delivered


class Churn(threading.Thread):
    """Deletes topics and creates them again; each new topic gets different records."""

    def __init__(self, cluster: FaultCluster, topics: Sequence[str], seed: int) -> None:
        super().__init__(name="churn", daemon=True)
        self.holds: dict[str, list[bytes]] = {topic: [] for topic in topics}
        """The current records of each topic."""
        self.rounds = 0
        self.failure: BaseException | None = None
        self._cluster = cluster
        self._servers = cluster.bootstrap_servers
        self._random = random.Random(seed)
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            admin = _admin(self._servers)
            topics = list(self.holds)
            while not self._stopping.is_set():
                self._anew(admin, self._random.choice(topics))
        except BaseException as failure:
            self.failure = failure

    def stop(self) -> None:
        self._stopping.set()
        self.join(_PATIENCE_S + 30)
        assert not self.is_alive()
        if self.failure is not None:
            raise self.failure

    def _anew(self, admin: Any, topic: str) -> None:
        delete_topic(admin, topic)
        # Deletion waits for the replica of a stopped broker.
        wait_until(lambda: not self._cluster.has_topic(topic), _PATIENCE_S, f"deletion of {topic}", 0.02)
        create_topics(admin, [topic])
        # A client caches the topic id for some time, so each new topic gets a new client.
        client = _producer(self._servers)
        values = [b"%d.%d" % (self.rounds, index) for index in range(_RECORDS_AFTER_BIRTH)]
        errors: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                errors.append(str(error))

        for value in values:
            client.produce(topic, value, partition=0, on_delivery=delivered)
        client.flush(_PATIENCE_S)
        assert not errors, (topic, errors)
        self.holds[topic] = values
        self.rounds += 1


def create_topics(admin: Any, topics: Sequence[str]) -> None:
    """Create the topics, with retries if the controller changes."""
    from confluent_kafka.admin import NewTopic

    wanted = [NewTopic(topic, 1, 3, config={"min.insync.replicas": "2"}) for topic in topics]
    _until_done(
        lambda left: admin.create_topics([item for item in wanted if item.topic in left], request_timeout=10),
        topics,
        "TOPIC_ALREADY_EXISTS",
    )


def delete_topic(admin: Any, topic: str) -> None:
    """Delete the topic, with retries."""
    _until_done(
        lambda left: admin.delete_topics(list(left), request_timeout=10), [topic], "UNKNOWN_TOPIC_OR_PART"
    )


def _until_done(ask: Callable[[set[str]], dict[str, Any]], topics: Sequence[str], done: str) -> None:
    from confluent_kafka import KafkaException

    left, deadline = set(topics), time.monotonic() + _PATIENCE_S
    while left:
        for topic, answer in ask(left).items():
            try:
                answer.result(30)
            except KafkaException as error:
                assert time.monotonic() < deadline, (topic, error)
                if error.args[0].name() != done:
                    continue
            left.discard(topic)
        if left:
            time.sleep(0.1)  # retry interval


def read_topics(servers: str, topics: Sequence[str]) -> dict[str, list[bytes]]:
    """Return all records of the topics."""
    from confluent_kafka import Consumer, TopicPartition

    found: dict[str, list[bytes]] = {topic: [] for topic in topics}
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
    left, deadline = set(topics), time.monotonic() + _PATIENCE_S
    while left:
        assert time.monotonic() < deadline, f"{len(left)} topics were not read to their end"
        for message in consumer.consume(1000, 0.2):
            topic, error = message.topic(), message.error()
            assert topic is not None
            if error is None:
                found[topic].append(message.value() or b"")
            elif error.name() == "_PARTITION_EOF":
                left.discard(topic)
    consumer.close()
    return found


def _admin(servers: str) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": servers, "log_level": 2})


def _producer(servers: str, log: logging.Logger | None = None) -> Any:
    """Return a producer. With `log`, it logs what it repeats, and why."""
    from confluent_kafka import Producer

    settings = {
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "linger.ms": 5,
        "message.timeout.ms": int(_PATIENCE_S * 1000),
    }
    if log is None:
        return Producer({**settings, "log_level": 2})
    return Producer({**settings, "debug": "eos"}, logger=log)


def _fail_over(cluster: FaultCluster, turn: int, watches: dict[int, StallWatch]) -> str:
    """Kill the controller or restart a different broker, and wait until all brokers are registered."""
    controller = cluster.controller()
    assert controller is not None
    target = controller if turn % 2 == 0 else next(item for item in BROKER_IDS if item != controller)
    if target == controller:
        cluster.brokers[target].kill()
        wait_until(lambda: cluster.controller() not in (None, target), 60, "a new controller", 0.05)
    else:
        cluster.brokers[target].process.stop(60)
    cluster.start(target, launched=watches[target].follow)
    wait_until(lambda: cluster.registered() == set(BROKER_IDS), 60, "registration of all brokers")
    return f"{'kill -9 of the controller' if target == controller else 'restart of'} broker {target}"


def _worst_stalls_ms(watches: dict[int, StallWatch]) -> dict[int, float]:
    """Return each broker's highest latency, without the time spent waiting for a processor. Prints
    percentiles of all latencies.
    """
    worst: dict[int, float] = {}
    for broker_id, watch in watches.items():
        latencies = watch.latencies()
        own, wall = sorted(item.latency_ms for item in latencies), sorted(item.wall_ms for item in latencies)
        worst[broker_id] = own[-1]
        print(
            f"broker {broker_id}: {len(own)} responses, median {own[len(own) // 2]} ms, "
            f"p99 {own[-len(own) // 100]} ms, worst {own[-5:]} ms; including processor waits "
            f"p99 {wall[-len(wall) // 100]} ms, worst {wall[-1]} ms"
        )
    return worst


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not campaign.enabled(), reason="only with --campaign")
def test_topics_are_created_and_deleted_under_load_and_failovers(tmp_path: Path) -> None:
    session_timeout_ms = 6000
    steady = [f"steady-{number}" for number in range(TOPICS - CHURNED)]
    churned = [f"churned-{number}" for number in range(CHURNED)]
    with ExitStack() as stack:
        cluster = stack.enter_context(FaultCluster(tmp_path, session_timeout_ms=session_timeout_ms))
        servers = cluster.bootstrap_servers
        admin = _admin(servers)
        for first in range(0, TOPICS, _BATCH):
            create_topics(admin, [*steady, *churned][first : first + _BATCH])
        watches = {
            broker_id: StallWatch(broker.port, broker.pid, tmp_path / f"stalls-{broker_id}")
            for broker_id, broker in cluster.brokers.items()
        }
        for watch in watches.values():
            stack.callback(watch.stop)
        load = SteadyLoad(servers, steady, tmp_path / "producer.log")
        churns = [Churn(cluster, churned[seed::_CHURNS], seed) for seed in range(_CHURNS)]
        load.start()
        for churn in churns:
            churn.start()
        ends = time.monotonic() + RUN_S
        done: list[str] = []
        while time.monotonic() < ends:
            time.sleep(FAILOVER_EVERY_S)  # interval between failovers
            for churn in churns:
                assert churn.is_alive(), churn.failure
            done.append(_fail_over(cluster, len(done), watches))
        for churn in churns:
            churn.stop()
        load.stop()
        for watch in watches.values():
            watch.stop()
        worst = _worst_stalls_ms(watches)
        held = read_topics(servers, steady)
        anew = read_topics(servers, churned)
        offline = [broker_id for broker_id in BROKER_IDS if _lost_a_disk(cluster, broker_id)]
    acknowledged = sum(map(len, load.acknowledged.values()))
    rounds = sum(churn.rounds for churn in churns)
    print(
        f"{TOPICS} topics, {rounds} deleted and created again, {len(done)} failovers, {acknowledged} "
        f"acknowledged; worst stall {worst}"
    )
    assert not load.given_up, load.given_up[:5]
    for topic in steady:
        counts = Counter(held[topic])
        lost = [number for number in load.acknowledged[topic] if counts[str(number).encode()] != 1]
        assert not lost, (topic, lost[:5])
    for churn in churns:
        for topic, holds in churn.holds.items():
            assert anew[topic] == holds, topic
    assert not offline
    assert rounds >= CHURNED
    assert acknowledged > 10 * RUN_S
    if campaign.enabled():
        assert max(worst.values()) <= STALL_MS_MAX, worst


def _lost_a_disk(cluster: FaultCluster, broker_id: int) -> bool:
    with Connection(cluster.brokers[broker_id].address) as connection:
        answer = connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})
    return any(folder["error_code"] != 0 for folder in answer["results"])
