"""Exactly-once copying by several clients, while brokers and copiers are killed.

Normal runs use some of the clients with fewer records; `--campaign` uses all of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.faults.quorum_cluster import cluster_of
from tests.support import campaign
from tests.support.client_security import for_librdkafka
from tests.support.servers import KafkaCompatBroker
from tests.transactions.copier import CLIENTS, TRANSACTIONAL_ID
from tests.transactions.copiers import Copier, Leash
from tests.transactions.programs import await_markers, create_topic, read_all

JAVA = ("java-3.9.1", "java-4.1.0")
RUN_S = 500
SETTINGS = {
    "kafka.compat.transaction.version": "2",
    "transaction.state.log.num.partitions": "4",
    "controlled.shutdown.enable": "false",
}
ALL = [
    *((brokers, client, "plain") for brokers in (1, 3) for client in (*JAVA, *CLIENTS)),
    *((3, client, form) for form in ("secured", "combined", "separate") for client in (*JAVA, *CLIENTS)),
]
EVERYDAY = [(3, "librdkafka", "secured")]

pytestmark = pytest.mark.timeout(900)


class Brokers:
    """Restarts brokers in turn."""

    def __init__(self, addresses: str, restarts: list[Callable[[], None]]) -> None:
        self.addresses = addresses
        self._restarts = restarts
        self._turn = 0

    def restart_one(self) -> None:
        self._restarts[self._turn % len(self._restarts)]()
        self._turn += 1


@contextmanager
def one_broker(directory: Path) -> Iterator[Brokers]:
    broker = KafkaCompatBroker(directory / "broker", SETTINGS)
    broker.start()
    try:
        create_topic(broker.address, "source")
        create_topic(broker.address, "target")
        yield Brokers(broker.address, [lambda: broker.restart(kill=True)])
    finally:
        broker.stop()


@contextmanager
def three_brokers(directory: Path, form: str) -> Iterator[Brokers]:
    with cluster_of(form, directory, session_timeout_ms=3000, overrides=SETTINGS) as cluster:
        for topic in ("source", "target"):
            cluster.create_topic(topic, 1)

        def restart(broker_id: int) -> None:
            cluster.wait_in_sync("target")
            cluster.brokers[broker_id].restart(kill=True)

        restarts: list[Callable[[], None]] = [
            lambda: restart(cluster.states("__transaction_state")[_shard()].leader),
            lambda: restart(cluster.states("target")[0].leader),
            lambda: restart(cluster.states("source")[0].leader),
        ]
        yield Brokers(cluster.bootstrap_servers, restarts)


def _shard() -> int:
    from kafka_compat.coordinator_runtime.partitioning import shard_of

    return shard_of(TRANSACTIONAL_ID, int(SETTINGS["transaction.state.log.num.partitions"]))


def feed(address: str, total: int) -> None:
    """Write the records `0` to `total - 1`. The number of each record equals its offset."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, **for_librdkafka()})
    for number in range(total):
        producer.produce("source", str(number).encode(), partition=0)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


@pytest.mark.parametrize(("count", "client", "form"), ALL if campaign.enabled() else EVERYDAY)
def test_copying_is_exactly_once_while_brokers_and_copiers_are_killed(
    tmp_path: Path, count: int, client: str, form: str
) -> None:
    total, faults = campaign.rounds(2000, 33_333), campaign.rounds(3, 8)
    with one_broker(tmp_path) if count == 1 else three_brokers(tmp_path, form) as brokers:
        feed(brokers.addresses, total)
        copier = Copier(client, brokers.addresses, total, tmp_path / "copier.log")
        progress = Consumer(
            {
                "bootstrap.servers": brokers.addresses,
                "group.id": "progress",
                "log_level": 2,
                **for_librdkafka(),
            }
        )
        portion = total // (faults + 1)
        leash = Leash(copier, lambda: _end(progress))
        leash.limit = _limit(0, faults, portion)
        copier.start()
        leash.start()
        begun = time.monotonic()
        kills = 0
        try:
            while not copier.keep_alive():
                assert time.monotonic() < begun + RUN_S, (tmp_path / "copier.log").read_text()[-3000:]
                time.sleep(0.05)  # polling interval
                if kills < faults and leash.copied > (kills + 1) * portion:
                    if (kills + 1) % 3:
                        brokers.restart_one()
                    else:
                        copier.kill()
                        copier.start()
                    kills += 1
                    leash.limit = _limit(kills, faults, portion)
        finally:
            leash.stop()
            copier.kill()
            progress.close()
        seconds = time.monotonic() - begun
        await_markers(brokers.addresses, "target")
        copied = read_all(brokers.addresses, "target")
        everything = read_all(brokers.addresses, "target", "read_uncommitted")
    assert copied == [str(number) for number in range(total)], "every record exactly once and in order"
    assert kills == faults
    assert len(everything) > total, "some transactions were aborted"
    print(
        f"{client} on {count}, {form}: {total} records, {faults - faults // 3} kills of brokers, "
        f"{copier.lives} starts of the copier, {len(everything) - total} aborted records, {seconds:.0f} s"
    )


def _limit(kills: int, faults: int, portion: int) -> int:
    """Return how many records may be copied before the next fault has happened."""
    return sys.maxsize if kills == faults else (kills + 1) * portion + portion * 3 // 4


def _end(consumer: Consumer) -> int:
    """Return the current end offset of `target`, or 0 if it cannot be determined."""
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition("target", 0), 2.0)
    except Exception:
        return 0
    return int(end)
