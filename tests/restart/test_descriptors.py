"""More partitions than `ulimit -n` has descriptors: the broker serves all of them, and can restart."""

from __future__ import annotations

import os
from pathlib import Path

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.restart.client import create_topic, fetch, produce
from tests.support.servers import KafkaCompatBroker

DESCRIPTORS = 256
PARTITIONS = 600


def test_a_broker_can_serve_more_partitions_than_it_has_descriptors(tmp_path: Path) -> None:
    broker = KafkaCompatBroker(tmp_path)
    broker.launcher = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")
    broker.start()
    try:
        with Connection(broker.address) as connection:
            for topic in ("a", "b"):
                create_topic(connection, topic, PARTITIONS // 2)
            for topic in ("a", "b"):
                for partition in range(PARTITIONS // 2):
                    written = produce(connection, topic, [b"first"], partition=partition)
                    assert written == (ErrorCode.NONE, 0)
        assert len(os.listdir(f"/proc/{broker.pid}/fd")) < DESCRIPTORS
        for kill in (True, False):
            broker.restart(kill=kill)
            with Connection(broker.address) as connection:
                for topic in ("a", "b"):
                    for partition in range(PARTITIONS // 2):
                        found = fetch(connection, topic, partition=partition)
                        assert found.error == ErrorCode.NONE
                        assert [record.value for record in found.records] == [b"first"]
        with Connection(broker.address) as connection:
            described = connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})
            assert [item["error_code"] for item in described["results"]] == [0]
    finally:
        broker.stop()
