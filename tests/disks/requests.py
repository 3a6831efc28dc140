"""Requests on one connection to a broker whose disk fails."""

from __future__ import annotations

from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance import batches, wire
from tests.support.servers import KafkaCompatBroker

NONE, STORAGE_ERROR = 0, 56


class Asking:
    """A broker and a connection to it."""

    def __init__(self, broker: KafkaCompatBroker) -> None:
        self.broker = broker
        self.connection = wire.Connection(broker.address)

    def restart(self) -> None:
        self.connection.close()
        self.broker.restart(kill=True)
        self.connection = wire.Connection(self.broker.address)

    def create(self, name: str, **configs: str) -> tuple[int, str]:
        topic: dict[str, Any] = {"name": name, "num_partitions": 1, "replication_factor": 1}
        topic["configs"] = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        answer = self.connection.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 20_000})
        return answer["topics"][0]["error_code"], answer["topics"][0]["error_message"] or ""

    def produce(self, topic: str) -> int:
        data = {"index": 0, "records": batches.batch(10)}
        request = {"acks": -1, "timeout_ms": 5000, "topic_data": [{"name": topic, "partition_data": [data]}]}
        answer = self.connection.ask(ApiKey.PRODUCE, 7, request)
        code: int = answer["responses"][0]["partition_responses"][0]["error_code"]
        return code

    def delete_records(self, topic: str, offset: int) -> int:
        wanted = {"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}
        answer = self.connection.ask(ApiKey.DELETE_RECORDS, 1, {"topics": [wanted], "timeout_ms": 20_000})
        code: int = answer["topics"][0]["partitions"][0]["error_code"]
        return code

    def start_offset(self, topic: str) -> int:
        return self._offset(topic, -2)

    def end_offset(self, topic: str) -> int:
        return self._offset(topic, -1)

    def _offset(self, topic: str, timestamp: int) -> int:
        wanted = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
        answer = self.connection.ask(ApiKey.LIST_OFFSETS, 4, {"replica_id": -1, "topics": [wanted]})
        offset: int = answer["topics"][0]["partitions"][0]["offset"]
        return offset

    def directory_errors(self) -> list[int]:
        answer = self.connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})
        return [found["error_code"] for found in answer["results"]]
