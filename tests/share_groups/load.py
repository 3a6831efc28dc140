"""Records that are written while members of a share group, brokers and leaders fail, and what must be true of
their deliveries.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.share_groups.share_members import Deliveries
from tests.support.process import wait_until

_LAST_ATTEMPTS_OF_A_FAILURE = 12
"""Number of members times the number of partitions."""


class Load:
    """Writes `records` records to a topic, and knows their numbers."""

    def __init__(
        self, bootstrap_servers: str, topic: str, partitions: int, records: int, pause_s: float
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._partitions = partitions
        self.records = records
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
        for number in range(self.records):
            producer.produce(
                self._topic,
                str(number).encode(),
                partition=number % self._partitions,
                on_delivery=lambda error, _: self.errors.append(str(error)) if error else None,
            )
            producer.poll(0)
            time.sleep(self._pause_s)  # The failures happen while records are written.
        if producer.flush(600):
            self.errors.append("some records were not written")

    def await_progress(self, deliveries: Deliveries) -> None:
        """Wait until the group has acknowledged more records."""
        before = len(deliveries.finished())
        if before < self.records:
            wait_until(
                lambda: len(deliveries.finished()) >= min(before + 20, self.records * 9 // 10),
                300,
                "progress",
                0.1,
            )

    def await_delivery(self, group: str, addresses: list[str]) -> None:
        """Wait until all records are written, and their delivery is complete."""
        self.thread.join(600)
        assert not self.errors
        wait_until(
            lambda: any(lag(address, group, self._partitions) == 0 for address in addresses),
            600,
            "the delivery of all records",
            0.5,
        )


def lag(address: str, group: str, partitions: int) -> int:
    """Return the number of records whose delivery is not complete, or -1 if it is unknown."""
    request = {"groups": [{"group_id": group, "topics": None}]}
    with Connection(address, 30) as connection:
        (found,) = connection.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request)["groups"]
    lags = [each["lag"] for topic in found["topics"] for each in topic["partitions"]]
    return sum(lags) if len(lags) == partitions and min(lags) >= 0 else -1


def check(deliveries: Deliveries, records: int, *, terms: int, failures: int) -> None:
    """Check that each record was accepted or rejected, or released at the limit. `terms` is the maximum
    number of terms of a leader, and `failures` the number of members and brokers that failed.
    """
    assert not deliveries.findings
    by_number: dict[int, list[tuple[int, int]]] = {}
    for record, number in deliveries.numbers.items():
        by_number.setdefault(number, []).append(record)
    assert sorted(by_number) == list(range(records))
    assert all(len(found) == 1 for found in by_number.values())
    unknown = unseen = 0
    for number, (record,) in by_number.items():
        counts = deliveries.counts[record]
        # In a term of the leader, each delivery has a higher count. A record in flight at its end comes again
        # with its former count.
        assert max(Counter(counts).values()) <= terms, (number, counts)
        has_result = record in deliveries.accepted or record in deliveries.rejected
        if number % 10 == 3:
            has_result = record in deliveries.released
        if not has_result:
            # The result of its last acknowledgement was lost with the member or with the connection.
            unknown += 1
            if number % 10 == 3 and record not in deliveries.last_delivery_may_be_lost:
                # The member failed after it had acquired the record for the last time, and before it saw it.
                assert max(counts) >= deliveries.limit - failures, (number, record, counts)
                unseen += 1
            else:
                assert record in deliveries.last_delivery_may_be_lost, (number, record, counts)
    # A last attempt is the only record of its partition in a response.
    assert unseen <= failures * _LAST_ATTEMPTS_OF_A_FAILURE
    print(
        f"{records} records, {len(deliveries.accepted)} accepted, {len(deliveries.rejected)} rejected, "
        f"{len(deliveries.released)} archived at the limit, {unknown} without a known result, "
        f"{len(deliveries.refused)} refused acknowledgements"
    )
