"""Consumers that read from one broker, leader or follower, and record the records they receive."""

from __future__ import annotations

import threading
from typing import Any

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import iter_records
from tests.conformance.wire import Closed, Connection
from tests.partitions.network import Network

PAUSE_S = 0.05
_FETCH_VERSION = 11
"""From this version on, followers serve consumers (KIP-392)."""


class DirectReader:
    """Reads all partitions from the start, as far as the broker returns them."""

    def __init__(self, network: Network, host: str, address: str, topics: tuple[str, ...]) -> None:
        self.seen: dict[tuple[str, int], dict[int, bytes]] = {
            (topic, partition): {} for topic in topics for partition in range(3)
        }
        """Values by partition and offset."""
        self._address = address
        self._topics = topics
        self._stopping = threading.Event()
        self._thread = network.thread(host, self._run)
        self._thread.start()

    def abandon(self) -> None:
        """Stop reading, without waiting."""
        self._stopping.set()

    def stop(self) -> None:
        self.abandon()
        self._thread.join(30)
        assert not self._thread.is_alive(), "a reader did not stop"

    def _run(self) -> None:
        connection: Connection | None = None
        while not self._stopping.wait(PAUSE_S):
            try:
                connection = connection or Connection(self._address)
                self._take(connection.ask(ApiKey.FETCH, _FETCH_VERSION, self._request()))
            except (OSError, Closed):
                connection = None

    def _request(self) -> dict[str, Any]:
        def wanted(topic: str, partition: int) -> dict[str, int]:
            offset = max(self.seen[topic, partition], default=-1) + 1
            return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 100_000}

        topics = [
            {"topic": topic, "partitions": [wanted(topic, partition) for partition in range(3)]}
            for topic in self._topics
        ]
        return {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1_000_000, "topics": topics}

    def _take(self, answer: dict[str, Any]) -> None:
        for topic in answer["responses"]:
            for item in topic["partitions"]:
                if item["error_code"] != ErrorCode.NONE:
                    continue
                seen = self.seen[topic["topic"], item["partition_index"]]
                content, position = memoryview(item["records"] or b""), 0
                for header in read_headers(content):
                    batch = content[position : position + header.size_bytes]
                    position += header.size_bytes
                    # The first batch may begin before the requested offset.
                    seen.update({record.offset: record.value or b"" for record in iter_records(batch)})
