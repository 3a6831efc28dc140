"""A connection that produces and consumes while other clients send bad input, and records the first error."""

from __future__ import annotations

import threading

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.wire import Connection


class Bystander:
    """Produces and fetches batches repeatedly on one connection, which must stay open."""

    def __init__(self, address: str, topic: str) -> None:
        self._topic = topic
        self._connection = Connection(address)
        self._stop = threading.Event()
        self._round_done = threading.Condition()
        self.rounds = 0
        self.trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._round()
                with self._round_done:
                    self.rounds += 1
                    self._round_done.notify_all()
                self._stop.wait(0.005)
        except BaseException as trouble:
            with self._round_done:
                self.trouble = trouble
                self._round_done.notify_all()

    def _round(self) -> None:
        data = batch(2)
        parts = [{"index": 0, "records": data}]
        request = {
            "acks": -1,
            "timeout_ms": 5000,
            "topic_data": [{"name": self._topic, "partition_data": parts}],
        }
        answer = self._connection.ask(ApiKey.PRODUCE, 9, request)
        produced = answer["responses"][0]["partition_responses"][0]
        assert produced["error_code"] == 0, answer
        assert produced["base_offset"] == self.rounds * 2, answer
        part = {"partition": 0, "fetch_offset": produced["base_offset"], "partition_max_bytes": 1 << 20}
        topics = [{"topic": self._topic, "partitions": [part]}]
        fetched = self._connection.ask(
            ApiKey.FETCH, 11, {"max_wait_ms": 1000, "min_bytes": 1, "topics": topics}
        )
        records = fetched["responses"][0]["partitions"][0]["records"]
        assert records[61:] == data[61:], "the bystander did not read the batch that it wrote"

    def await_rounds(self, count: int = 2, timeout_s: float = 10) -> None:
        """Wait for `count` more rounds. Raises AssertionError if a round failed or took too long."""
        with self._round_done:
            target = self.rounds + count
            done = self._round_done.wait_for(lambda: self.trouble or self.rounds >= target, timeout_s)
        assert self.trouble is None, f"the bystander failed: {self.trouble!r}"
        assert done, "the bystander was delayed"

    def close(self) -> None:
        self._stop.set()
        self._thread.join(10)
        self._connection.close()
