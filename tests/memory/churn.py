"""Clients that come and go: each round uses a new topic, two transactions, a group and connections."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.fetcher import Fetcher, FetchSettings
from kafka_compat.client.group_consumer import GroupConsumer, GroupSettings
from kafka_compat.client.groups import delete_group
from kafka_compat.client.leaders import EARLIEST, ask_leaders
from kafka_compat.client.producer import Producer, ProducerSettings
from kafka_compat.errors import KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_topics import CreatableTopic
from kafka_compat.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from kafka_compat.protocol.messages.delete_topics import DeleteTopicState
from tests.support.servers import KafkaCompatBroker

PARTITIONS = 3
RECORDS = 50
PATIENCE_S = 60
SHORT_EXPIRIES = {
    "transactional.id.expiration.ms": "30000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "5000",
    "producer.id.expiration.ms": "30000",
    "producer.id.expiration.check.interval.ms": "5000",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
    "log.retention.check.interval.ms": "5000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.delete.retention.ms": "10000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.segment.bytes": "262144",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.segment.bytes": "262144",
}
"""Settings with which a broker forgets all temporary state of clients within a minute."""


class Churn:
    """`workers` threads that run one round after another, each at most one round per `pace_s`."""

    def __init__(
        self, bootstrap: str, *, workers: int = 4, replication_factor: int = 1, pace_s: float = 0.0
    ) -> None:
        self.rounds = 0
        self._bootstrap = bootstrap
        self._replication_factor = replication_factor
        self._pace_s = pace_s
        self._failure: Exception | None = None
        self._working = True
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._busy = 0
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(workers)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop after the rounds in progress."""
        self._stopped.set()
        self.resume()
        for thread in self._threads:
            thread.join()

    def wait(self, seconds: float) -> None:
        """Wait while the workers run. Raises the error of a failed round."""
        self._stopped.wait(seconds)
        if self._failure is not None:
            raise self._failure

    def pause(self) -> None:
        """Start no more rounds, and wait until the rounds in progress are complete."""
        with self._changed:
            self._working = False
            self._changed.wait_for(lambda: not self._busy)

    def resume(self) -> None:
        with self._changed:
            self._working = True
            self._changed.notify_all()

    def _work(self, worker: int) -> None:
        number = 0
        while not self._stopped.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._working)
                self._busy += 1
            number += 1
            begun_s = time.monotonic()
            try:
                churn_once(self._bootstrap, f"{worker}-{number}", self._replication_factor)
            except Exception as error:
                self._failure = error
                self._stopped.set()
            finally:
                with self._changed:
                    self.rounds += 1
                    self._busy -= 1
                    self._changed.notify_all()
            self._stopped.wait(max(0.0, begun_s + self._pace_s - time.monotonic()))


@contextmanager
def churning(churn: Churn) -> Iterator[Churn]:
    churn.start()
    try:
        yield churn
    finally:
        churn.stop()


def churn_once(bootstrap: str, name: str, replication_factor: int = 1) -> None:
    """Run one round with new names and connections."""
    topic = f"topic-{name}"
    cluster = Cluster(bootstrap, client_id=f"client-{name}")
    try:
        _create(cluster, topic, replication_factor)
        produced = _produce(cluster, topic, f"transactional-{name}")
        consumed = _consume(cluster, topic, f"group-{name}")
        assert consumed == produced
        _delete_records(cluster, topic)
        delete_group(cluster, f"group-{name}")
        _delete(cluster, topic)
    finally:
        cluster.close()


def _create(cluster: Cluster, topic: str, replication_factor: int) -> None:
    wanted = CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=replication_factor)
    answer = cluster.ask_controller(
        ApiKey.CREATE_TOPICS,
        "createTopics",
        topics=[wanted],
        timeout_ms=PATIENCE_S * 1000,
    )
    _check(*(one.error_code for one in answer.topics))


def _produce(cluster: Cluster, topic: str, transactional_id: str) -> set[bytes]:
    """Produce in a committed and an aborted transaction with the same number of records, and return the
    committed values.
    """
    errors: list[Exception | None] = []
    settings = ProducerSettings(transactional_id=transactional_id)
    producer = Producer(cluster, settings, lambda tag, error: errors.append(error))
    producer.init_transactions()
    for outcome in (b"committed", b"aborted"):
        for number in range(RECORDS):
            producer.send(topic, b"%d" % number, b"%b %d" % (outcome, number))
        producer.end_transaction(committed=outcome == b"committed")
    for error in errors:
        if error is not None:
            raise error
    assert len(errors) == 2 * RECORDS
    return {b"committed %d" % number for number in range(RECORDS)}


def _consume(cluster: Cluster, topic: str, group: str) -> set[bytes]:
    """Return the values that a group member reads before it commits and leaves."""
    fetcher = Fetcher(cluster, FetchSettings(read_committed=True, reset=EARLIEST, max_wait_ms=100))
    settings = GroupSettings(group, auto_commit_interval_s=None)
    consumer = GroupConsumer(cluster, fetcher, settings, lambda: [topic])
    found: set[bytes] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < RECORDS:
        assert time.monotonic() < deadline, f"only {len(found)} records of {topic} received"
        consumer.poll(1.0)
        while (record := fetcher.take()) is not None:
            found.add(bytes(record.value or b""))
    consumer.commit()
    consumer.close()
    return found


def _delete_records(cluster: Cluster, topic: str) -> None:
    results = ask_leaders(
        cluster,
        ApiKey.DELETE_RECORDS,
        "deleteRecords",
        [(topic, number) for number in range(PARTITIONS)],
        lambda topics: {
            "timeout_ms": PATIENCE_S * 1000,
            "topics": [
                DeleteRecordsTopic(
                    name=name,
                    partitions=[DeleteRecordsPartition(partition_index=one, offset=5) for one in numbers],
                )
                for name, numbers in topics.items()
            ],
        },
        lambda answer: (
            ((told.name, one.partition_index), one.error_code, one.low_watermark)
            for told in answer.topics
            for one in told.partitions
        ),
    )
    assert set(results.values()) == {5}


def _delete(cluster: Cluster, topic: str) -> None:
    answer = cluster.ask_controller(
        ApiKey.DELETE_TOPICS,
        "deleteTopics",
        topics=[DeleteTopicState(name=topic)],
        topic_names=[topic],
        timeout_ms=PATIENCE_S * 1000,
    )
    _check(*(one.error_code for one in answer.responses))


def _check(*codes: int) -> None:
    for code in codes:
        if code:
            raise KafkaError(known_code(code), "")


class Held(NamedTuple):
    """Resources that a broker uses."""

    memory_bytes: int
    """Private memory (USS), which excludes pages shared with other processes, such as libraries."""
    descriptors: int
    threads: int
    files: int
    """Files in the data directory."""

    def __str__(self) -> str:
        return (
            f"{self.memory_bytes / 2**20:.1f} MiB, {self.descriptors} descriptors, {self.threads} threads, "
            f"{self.files} files"
        )


def held_by(broker: KafkaCompatBroker) -> Held:
    process = Path(f"/proc/{broker.pid}")
    private = re.findall(r"^Private_\w+:\s+(\d+) kB", (process / "smaps_rollup").read_text(), re.MULTILINE)
    return Held(
        sum(int(kilobytes) * 1024 for kilobytes in private),
        len(os.listdir(process / "fd")),
        len(os.listdir(process / "task")),
        sum(len(files) for _, _, files in os.walk(broker.log_dir)),
    )
