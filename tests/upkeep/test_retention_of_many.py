"""Retention that deletes segments of many partitions in one pass: delay of other requests.

10,000 partitions in a campaign, fewer daily.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.support import campaign
from tests.support.bystander import Bystander
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

PARTITIONS = campaign.rounds(300, 10_000)
WRITTEN_MS = 1_000
"""Timestamp of all records: 1 s after the beginning of 1970."""
# Daily runs share the machine with other tests. The measurement includes the change of the topic's setting,
# which is applied to all partitions at once.
STALL_MS_MAX = campaign.rounds(50, 40)


def _size_bytes(connection: Connection, topic: str) -> int:
    """Return the total size of the topic's logs."""
    response = connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})
    return sum(
        partition["partition_size"]
        for directory in response["results"]
        for found in directory["topics"]
        if found["name"] == topic
        for partition in found["partitions"]
    )


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaCompatBroker]:
    broker = KafkaCompatBroker(tmp_path, {"log.retention.check.interval.ms": "1000"})
    broker.start()
    yield broker
    broker.stop()


def test_deleting_old_segments_of_many_partitions_does_not_delay_other_requests(
    broker: KafkaCompatBroker,
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    topic = NewTopic("wide", PARTITIONS, 1, config={"retention.ms": "-1"})
    admin.create_topics([topic], request_timeout=300)["wide"].result(300)
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50})
    for number in range(PARTITIONS):
        producer.produce("wide", b"v", partition=number, timestamp=WRITTEN_MS)
        producer.poll(0)
    assert producer.flush(300) == 0
    old = ConfigResource(
        ConfigResource.Type.TOPIC,
        "wide",
        incremental_configs=[
            ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    with Connection(broker.address) as connection:
        assert _size_bytes(connection, "wide") > 0
        with Bystander(broker.port, broker.pid, interval_ms=2) as bystander:
            admin.incremental_alter_configs([old])[old].result(60)
            wait_until(lambda: _size_bytes(connection, "wide") == 0, 300, "deletion of all records", 0.5)
    print(
        f"{PARTITIONS} partitions: others waited {bystander.worst_ms:.1f} ms at most "
        f"({bystander.worst_wall_ms:.1f} ms with other load)"
    )
    assert bystander.worst_ms < STALL_MS_MAX
