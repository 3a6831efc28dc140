"""No record of a share group is lost if members and the broker are killed with kill -9 under load: each is
accepted or rejected, or released at the delivery count limit, and its delivery counts follow the rules.

Members acknowledge as share_members.py describes. The limit is so high that kills alone never reach it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.share_groups.share_members import Deliveries, ShareMembers, configure_group, create_topic
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import Server, StartBroker

TOPIC = GROUP = "killed"
PARTITIONS = 3
LIMIT = 10
PROCESSES = 3
RECORDS = campaign.rounds(3_000, 100_000)
MEMBER_KILLS = campaign.rounds(6, 200)
BROKER_KILLS = campaign.rounds(3, 20)
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
GROUP_SETTINGS = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(LIMIT)}


class _Producer:
    """Writes all records while the broker is killed, and knows their numbers."""

    def __init__(self, bootstrap_servers: str, pause_s: float) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._pause_s = pause_s
        self.errors: list[str] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "enable.idempotence": True,
                "message.timeout.ms": 600_000,
                "reconnect.backoff.max.ms": 200,
                "batch.num.messages": 30,
                "linger.ms": 5,
                "log_level": 2,
            }
        )
        for number in range(RECORDS):
            producer.produce(
                TOPIC,
                str(number).encode(),
                partition=number % PARTITIONS,
                on_delivery=lambda error, _: self.errors.append(str(error)) if error else None,
            )
            producer.poll(0)
            time.sleep(self._pause_s)  # The kills happen while records are written.
        if producer.flush(600):
            self.errors.append("some records were not written")


@pytest.mark.timeout(3600)
def test_kills_of_members_and_brokers_lose_no_record(start_broker: StartBroker, tmp_path: Path) -> None:
    choose = random.Random(1)
    broker = start_broker(SETTINGS)
    create_topic(broker.address, TOPIC, PARTITIONS)
    configure_group(broker.address, GROUP, GROUP_SETTINGS)
    deliveries = Deliveries(LIMIT)

    def members() -> ShareMembers:
        mode = choose.choice(("batch_optimized", "record_limit"))
        return ShareMembers(
            broker.address,
            TOPIC,
            GROUP,
            tmp_path / "members.log",
            deliveries,
            acquire_mode=mode,
            max_poll_records=choose.choice((10, 50, 500)),
        )

    running = [members() for _ in range(PROCESSES)]
    try:
        producer = _Producer(broker.address, 0.01)
        kills = ["member"] * MEMBER_KILLS + ["broker"] * BROKER_KILLS
        choose.shuffle(kills)
        for kill in kills:
            _await_progress(deliveries)
            if kill == "broker":
                broker.restart(kill=True)
            else:
                number = choose.randrange(PROCESSES)
                running[number].kill()
                running[number] = members()
        producer.thread.join(600)
        assert not producer.errors
        wait_until(lambda: _lag(broker) == 0, 600, "the delivery of all records", 0.5)
        for each in running:
            each.stop()
    finally:
        for each in running:
            with suppress(ValueError):
                each.__exit__()
    _check(deliveries)


def _await_progress(deliveries: Deliveries) -> None:
    """Wait until the group has acknowledged more records."""
    before = len(deliveries.finished())
    if before < RECORDS:
        wait_until(
            lambda: len(deliveries.finished()) >= min(before + 20, RECORDS * 9 // 10), 300, "progress", 0.1
        )


def _lag(broker: Server) -> int:
    """Return the number of records whose delivery is not complete, or -1 if it is unknown."""
    request = {"groups": [{"group_id": GROUP, "topics": None}]}
    with Connection(broker.address, 30) as connection:
        (group,) = connection.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request)["groups"]
    lags = [each["lag"] for topic in group["topics"] for each in topic["partitions"]]
    return sum(lags) if len(lags) == PARTITIONS and min(lags) >= 0 else -1


def _check(deliveries: Deliveries) -> None:
    assert not deliveries.findings
    by_number: dict[int, list[tuple[int, int]]] = {}
    for record, number in deliveries.numbers.items():
        by_number.setdefault(number, []).append(record)
    assert sorted(by_number) == list(range(RECORDS))
    assert all(len(records) == 1 for records in by_number.values())
    unknown = 0
    for number, (record,) in by_number.items():
        counts = deliveries.counts[record]
        # In a term of the leader, each delivery has a higher count. A record in flight at kill -9 comes again
        # with its former count.
        assert max(Counter(counts).values()) <= 1 + BROKER_KILLS, (number, counts)
        has_result = record in deliveries.accepted or record in deliveries.rejected
        if number % 10 == 3:
            has_result = record in deliveries.released
        if not has_result:
            # The result of its last acknowledgement was lost with the member or with the connection.
            assert record in deliveries.last_delivery_may_be_lost, (number, record, counts)
            unknown += 1
    print(
        f"{RECORDS} records, {len(deliveries.accepted)} accepted, {len(deliveries.rejected)} rejected, "
        f"{len(deliveries.released)} archived at the limit, {unknown} without a known result, "
        f"{len(deliveries.refused)} refused acknowledgements"
    )
