"""Stalls of the event loop with 1,000,000 records of a share group in flight: `python -m
tests.bench.share_in_flight` prints how long a bystander waits while all records are acquired, acknowledged,
released because sessions end, and released because acquisition locks expire.

With fewer partitions (`--partitions`), it is quicker. Latencies exclude the time that the broker waited for a
processor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.hostile.attacks import fresh, produce_frame, small_records
from tests.hostile.client import ask
from tests.hostile.consumer_groups import topics_for
from tests.hostile.share_groups import (
    SETTINGS,
    await_share_coordinator,
    initialize,
    topic_id_of,
)
from tests.support.bystander import Bystander
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

RECORDS = 1_000
"""Number of records in each partition, in one batch."""
MEMBERS = 10
LOCK_MS = 180_000
_PARTITIONS_OF_A_REQUEST = 10
"""Number of partitions in a ShareAcknowledge request."""
_INTERVAL_MS = 5


class Member:
    """A member that acquires all records of its partitions."""

    def __init__(self, port: int, group: str, number: int, topic_id: UUID, partitions: Sequence[int]) -> None:
        self._connection = Connection(f"127.0.0.1:{port}", 120)
        self._group = group
        self._name = f"member-{number}"
        self._topic_id = topic_id
        self._partitions = partitions
        self._epoch = 0

    def _request(self, partitions: Sequence[int], acks: Sequence[Plain], **more: object) -> Plain:
        """Return a request for these partitions, each with the same acknowledgements."""
        parts = [{"partition_index": number, "acknowledgement_batches": acks} for number in partitions]
        found = {
            "group_id": self._group,
            "member_id": self._name,
            "share_session_epoch": self._epoch,
            "topics": [{"topic_id": self._topic_id, "partitions": parts}],
            **more,
        }
        self._epoch += 1
        return found

    def acquire(self) -> int:
        """Send one fetch, and return the number of acquired records."""
        limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 27, "max_records": 1 << 30}
        answer = self._connection.ask(
            ApiKey.SHARE_FETCH, 2, self._request(self._partitions, [], batch_size=1 << 20, **limits)
        )
        assert not answer["error_code"], answer
        return sum(
            each["last_offset"] - each["first_offset"] + 1
            for topic in answer["responses"]
            for part in topic["partitions"]
            for each in part["acquired_records"]
        )

    def acknowledge(self, acks: Sequence[Plain]) -> None:
        """Send the same acknowledgements for all partitions."""
        for first in range(0, len(self._partitions), _PARTITIONS_OF_A_REQUEST):
            some = self._partitions[first : first + _PARTITIONS_OF_A_REQUEST]
            answer = self._connection.ask(ApiKey.SHARE_ACKNOWLEDGE, 2, self._request(some, acks))
            errors = {part["error_code"] for topic in answer["responses"] for part in topic["partitions"]}
            assert errors == {0}, errors

    def close(self) -> None:
        self._connection.close()


class Measurement:
    def __init__(self, directory: Path, partitions: int) -> None:
        self._broker = KafkaCompatBroker(
            directory,
            {
                **SETTINGS,
                "group.share.record.lock.duration.ms": str(LOCK_MS),
                "group.share.max.record.lock.duration.ms": str(LOCK_MS),
                "group.share.delivery.count.limit": "10",
                # The records have old timestamps.
                "log.retention.ms": "-1",
            },
        )
        self._partitions = partitions
        self.worst_ms: dict[str, float] = {}

    def run(self) -> None:
        self._broker.start()
        try:
            self._run()
        finally:
            self._broker.stop()
        assert "Traceback" not in self._broker.log.read_text(errors="replace")

    def _run(self) -> None:
        port = self._broker.port
        await_share_coordinator(port)
        (topic,) = topics_for(port, 1, self._partitions)
        topic_id, group = topic_id_of(port, topic), fresh("shared")
        initialize(port, group, topic_id, self._partitions)
        batch = small_records(RECORDS)
        for first in range(0, self._partitions, 100):
            numbers = range(first, min(first + 100, self._partitions))
            ask(port, produce_frame(topic, [(number, batch) for number in numbers]))

        def members() -> list[Member]:
            shares = [range(self._partitions)[number::MEMBERS] for number in range(MEMBERS)]
            return [
                Member(port, group, number, topic_id, share) for number, share in enumerate(shares) if share
            ]

        running = members()
        self._phase("all records are acquired", lambda: self._acquire_all(running))

        def leave() -> None:
            for each in running:
                each.close()

        self._phase("all sessions end", leave)
        running = members()
        self._phase("all records are acquired again", lambda: self._acquire_all(running))

        def acknowledge(first: int) -> Callable[[], None]:
            # Accept and release every second record in turn, each in a batch of its own.
            acks = [
                {"first_offset": n, "last_offset": n, "acknowledge_types": [1 + n % 4 // 2]}
                for n in range(first, RECORDS, 2)
            ]

            def act() -> None:
                for each in running:
                    each.acknowledge(acks)

            return act

        self._phase("every second record is acknowledged", acknowledge(0))
        self._phase("the locks of the others expire", _wait_for_locks)
        left = self._partitions * RECORDS * 3 // 4
        self._phase("the released records are acquired", lambda: self._acquire_all(running, left))
        self._phase("all sessions with split batches end", leave)
        print(f"memory: {self._broker.resident_bytes() // 1_000_000} MB")

    def _phase(self, name: str, act: Callable[[], None]) -> None:
        begun = time.monotonic()
        with Bystander(self._broker.port, self._broker.pid, _INTERVAL_MS) as bystander:
            act()
            time.sleep(1)  # the time in which the effects on other share-partitions happen
        worst = self.worst_ms[name] = bystander.worst_ms
        over = sum(each > 20 for each in bystander.latencies_ms)
        print(
            f"{name}: worst stall {worst:.0f} ms, {over} of {len(bystander.latencies_ms)} over 20 ms, "
            f"{time.monotonic() - begun:.1f} s, {self._broker.resident_bytes() // 1_000_000} MB",
            flush=True,
        )

    def _acquire_all(self, members: Sequence[Member], count: int | None = None) -> None:
        wanted = self._partitions * RECORDS if count is None else count
        acquired = 0
        turns = _forever(members)

        def is_done() -> bool:
            nonlocal acquired
            acquired += next(turns).acquire()
            return acquired >= wanted

        wait_until(is_done, 300, "the acquisition of all records", 0)


def _wait_for_locks() -> None:
    time.sleep(LOCK_MS / 1000 + 2)  # the time until the acquisition locks have expired


def _forever(members: Sequence[Member]) -> Iterator[Member]:
    while True:
        yield from members


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="share-in-flight-") as name:
        Measurement(Path(name), given.partitions).run()


if __name__ == "__main__":
    main()
