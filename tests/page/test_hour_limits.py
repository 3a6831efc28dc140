"""Measuring the last hour with many partitions: delay of other requests, and memory.

10,000 partitions in a campaign, fewer daily.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.page.browsing import WRITING
from tests.page.site import Site
from tests.support import campaign
from tests.support.bystander import Bystander
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

PARTITIONS = campaign.rounds(500, 10_000)
GROUPS = 2
SAMPLES = campaign.rounds(1, 6)
# Daily runs share the machine with other tests.
STALL_MS_MAX = campaign.rounds(250, 20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaCompatBroker, Site]]:
    url = f"http://127.0.0.1:{free_port()}"
    broker = KafkaCompatBroker(
        tmp_path_factory.mktemp("many"), {**WRITING, "kafka.compat.http.listener": url}
    )
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic("wide", PARTITIONS, 1)])["wide"].result(300)
    _fill(broker)
    yield broker, Site(url)
    broker.stop()


def _fill(broker: KafkaCompatBroker) -> None:
    """Write two records to each partition, and commit offset 1 of each in each group."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50})
    # Not older than log.retention.ms: deleting the segments of all partitions would be measured, too.
    written_ms = int(time.time() * 1000) - 60_000
    for number in range(PARTITIONS):
        for _ in range(2):
            producer.produce("wide", b"v", partition=number, timestamp=written_ms)
        producer.poll(0)
    assert producer.flush(300) == 0
    offsets = [TopicPartition("wide", number, 1) for number in range(PARTITIONS)]
    for group in range(GROUPS):
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": f"group-{group}"})
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()


def test_measuring_many_partitions_does_not_delay_other_requests(
    served: tuple[KafkaCompatBroker, Site],
) -> None:
    broker, site = served
    wait_until(lambda: len(site.data("hour")["groups"]) == GROUPS, 600, "the lag of all groups", 0.5)

    def samples() -> int:
        """Return the smallest number of samples of a group."""
        values = [each["lines"][0]["values"] for each in site.data("hour")["groups"]]
        return min(sum(value is not None for value in each) for each in values)

    before = samples()
    with Bystander(broker.port, broker.pid, interval_ms=2) as bystander:
        wait_until(lambda: samples() >= before + SAMPLES, 600, "further samples", 1)
    delay_s = max(value for value in _last(site, "delay") if value is not None)
    print(
        f"{PARTITIONS} partitions, {GROUPS} groups: others waited {bystander.worst_ms:.1f} ms at most "
        f"({bystander.worst_wall_ms:.1f} ms with other load); the loop was late by {delay_s * 1000:.1f} ms"
    )
    assert bystander.worst_ms < STALL_MS_MAX


def _last(site: Site, chart: str) -> list[float | None]:
    values: list[float | None] = site.data("chart", chart=chart)["lines"][0]["values"]
    # The newest slot may not have a sample yet.
    return values[-SAMPLES - 2 :]
