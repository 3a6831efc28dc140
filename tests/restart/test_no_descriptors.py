"""A broker without free descriptors: it returns error codes, logs the problem once a minute, and recovers
when descriptors are available.
"""

from __future__ import annotations

import resource
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.logs.reading import wait_for
from tests.support.process import wait_until
from tests.support.servers import StartBroker

_COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
_LEFT_OUT = "Similar messages suppressed since the last one"


def _commit(group: str) -> dict[str, Any]:
    offset = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    topics = [{"name": "plain", "partitions": [offset]}]
    member = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time_ms": -1}
    return {"group_id": group, **member, "topics": topics}


def _create(name: str) -> dict[str, Any]:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return {"topics": [topic], "timeout_ms": 5000, "validate_only": False}


@pytest.mark.parametrize("used_before", [True, False])
def test_requests_get_error_codes_when_descriptors_are_exhausted(
    start_broker: StartBroker, used_before: bool
) -> None:
    broker = start_broker(
        {
            "log.cleaner.backoff.ms": "200",
            "offsets.topic.num.partitions": "5",
            "kafka.compat.log.level": "WARN,kafka_compat.kept_modules=DEBUG",
        }
    )
    wait_until(lambda: "Copied kafka-compat's modules" in broker.log.read_text(), 20, "the copy")
    at: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.address}
    admin = AdminClient(at)
    for future in admin.create_topics(
        [NewTopic("plain", 1, 1), NewTopic("c", 1, 1, config=_COMPACTED)]
    ).values():
        future.result(20)
    producer = Producer({**at, "linger.ms": 0})
    for number in range(5):
        producer.produce("c", str(number), "key")
        producer.produce("plain", str(number))
        assert producer.flush(20) == 0
    if used_before:
        consumer = Consumer({**at, "group.id": "before", "auto.offset.reset": "earliest"})
        consumer.subscribe(["plain"])
        assert consumer.consume(5, 20)
        consumer.commit(asynchronous=False)
        consumer.close()
    with Connection(broker.address) as connection:
        connection.ask(ApiKey.API_VERSIONS, 0, {})
        limits = resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (5, limits[1]))
        wait_until(lambda: _LEFT_OUT in broker.log.read_text(), 20, "a message about descriptors")
        for group in ("before", "new"):
            answer = connection.ask(ApiKey.OFFSET_COMMIT, 2, _commit(group))
            assert answer["topics"][0]["partitions"][0]["error_code"] != ErrorCode.UNKNOWN_SERVER_ERROR
        for key_type in (0, 1):
            connection.ask(ApiKey.FIND_COORDINATOR, 1, {"key": "k", "key_type": key_type})
        answer = connection.ask(ApiKey.CREATE_TOPICS, 1, _create("refused"))
        assert answer["topics"][0]["error_code"] == ErrorCode.KAFKA_STORAGE_ERROR
        assert "ulimit -n" in answer["topics"][0]["error_message"]
        initial = {"transactional_id": "x", "transaction_timeout_ms": 1000}
        assert connection.ask(ApiKey.INIT_PRODUCER_ID, 1, initial)["error_code"] != ErrorCode.NONE
        wait_for(broker, "ulimit -n")
        log = broker.log.read_text()
        assert "Traceback" not in log and log.count("\n", log.index("ulimit -n")) <= 2, log
        assert log.count(_LEFT_OUT) == 1
        resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, limits)
        answer = connection.ask(ApiKey.CREATE_TOPICS, 1, _create("created"))
        assert answer["topics"][0]["error_code"] == ErrorCode.NONE

        def has_a_producer_id() -> bool:
            connection.ask(ApiKey.FIND_COORDINATOR, 1, {"key": "x", "key_type": 1})
            return bool(connection.ask(ApiKey.INIT_PRODUCER_ID, 1, initial)["error_code"] == ErrorCode.NONE)

        wait_until(has_a_producer_id, 30, "a producer id")
    assert broker.stop() == 0
