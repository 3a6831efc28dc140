"""Dead letters of one share group on running brokers, as bare clients cause and read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import iter_records
from tests.conformance.record_requests import fetch_request
from tests.conformance.wire import Plain
from tests.share_groups.side import ShareSide, kafka_id
from tests.support.process import wait_until

NAME = "a"
"""The only topic of the group."""
ARCHIVING, ARCHIVED = 3, 4
ACCEPT, RELEASE, REJECT = 1, 2, 3
_READ_BYTES = 1 << 25


class DeadLetterGroup:
    """A share group whose members acquire the records of one topic."""

    def __init__(self, address: str, name: str, size: int = 1) -> None:
        self.name = name
        self.size = size
        self.side = ShareSide(address, name, f"{name}-")
        self._epochs: dict[int, int] = {}
        self._next_member = 0

    def start(self, settings: Mapping[str, str]) -> None:
        """Create the topic, and join."""
        self.side.create(NAME, self.size)
        self.side.configure({"share.auto.offset.reset": "earliest", **settings})
        joined = self.side.heartbeat({"member_id": "m", "member_epoch": 0, "subscribed_topic_names": [NAME]})
        assert not joined["error_code"], joined
        partitions = {(NAME, number) for number in range(self.size)}
        wait_until(lambda: self.side.initialized() == partitions, 120, "the initialization", 0.1)

    def close(self) -> None:
        self.side.close()

    def create_topic(self, topic: str, size: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic that allows dead letters, unless `configs` say otherwise."""
        configs = {"errors.deadletterqueue.group.enable": "true", **(configs or {})}
        self.side.create_plain(topic, size, configs)

    def fetch(self, epoch: int, acks: Mapping[int, list[Plain]], **more: object) -> dict[int, Any]:
        """Fetch as the only member of the share sessions, and return what each partition acquired."""
        partitions = [
            {"partition_index": number, "acknowledgement_batches": acks.get(number, [])}
            for number in (range(self.size) if not epoch else sorted(acks))
        ]
        request = {
            "group_id": self.side.group_id,
            "member_id": kafka_id(UUID(int=1)),
            "share_session_epoch": epoch,
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 1 << 24,
            "max_records": 10_000,
            "batch_size": 10_000,
            "topics": [{"topic_id": self.side.ids[NAME], "partitions": partitions}] if partitions else [],
            **more,
        }
        answer = self.side.shown_fetch(self.side.to_leader().ask(ApiKey.SHARE_FETCH, 2, request))
        assert not answer["error"], answer
        found = {}
        for each in answer["responses"]:
            assert not each["acknowledge_error"], answer
            found[each["partition"][1]] = each["acquired"]
        return found

    def acquire(self, count: int = 1) -> dict[int, list[tuple[int, int, int]]]:
        """Open a session, and return what it acquires as soon as `count` partitions have records."""
        found: dict[int, list[tuple[int, int, int]]] = {}

        def has_acquired() -> bool:
            found.update({number: each for number, each in self.fetch(0, {}).items() if each})
            return len(found) == count

        wait_until(has_acquired, 120, "acquired records", 0.05)
        return found

    def acknowledge(self, epoch: int, batches: Mapping[int, list[tuple[int, int, int]]]) -> None:
        """Acknowledge ranges (first, last, type) of partitions."""
        partitions = [
            {
                "partition_index": number,
                "acknowledgement_batches": [
                    {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}
                    for first, last, kind in ranges
                ],
            }
            for number, ranges in batches.items()
        ]
        request = {
            "group_id": self.side.group_id,
            "member_id": kafka_id(UUID(int=1)),
            "share_session_epoch": epoch,
            "topics": [{"topic_id": self.side.ids[NAME], "partitions": partitions}],
        }
        answer = self.side.shown_acknowledge(self.side.to_leader().ask(ApiKey.SHARE_ACKNOWLEDGE, 2, request))
        assert not answer["error"], answer
        assert not any(each["error"] for each in answer["responses"]), answer

    def states(self, number: int = 0) -> list[tuple[int, int, int, int]]:
        """Return the stored batches: first offset, last offset, state, delivery count."""
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        return [
            (each[names[0]], each[names[1]], each[names[2]], each[names[3]])
            for each in self.side.state((NAME, number))["state_batches"]
        ]

    def wait_until_archived(self, *numbers: int) -> None:
        """Wait until no record of these partitions is archiving."""
        for number in numbers or range(self.size):
            wait_until(
                lambda number=number: all(  # type: ignore[misc]
                    state != ARCHIVING for _, _, state, _ in self.states(number)
                ),
                60,
                "the archived records",
                0.05,
            )

    def letters(self, topic: str, partition: int = 0) -> list[Plain]:
        """Return the dead letters in a partition, in order, without the name of the group."""
        found = []
        for data in self.batches(topic, partition):
            for record in iter_records(data):
                headers = {
                    name.removeprefix("__dlq.errors."): bytes(value or b"")
                    .decode()
                    .replace(self.name, "GROUP")
                    for name, value in record.headers
                }
                found.append(
                    {
                        "key": None if record.key is None else bytes(record.key),
                        "value": None if record.value is None else bytes(record.value),
                        **headers,
                    }
                )
        return found

    def batches(self, topic: str, partition: int = 0) -> list[bytes]:
        """Return the batches of a partition."""
        connection = self.side.to_leader_of(topic, partition)
        found: list[bytes] = []
        offset = 0
        while True:
            request = fetch_request(topic, offset, partition=partition, max_bytes=_READ_BYTES)
            answer = connection.ask(ApiKey.FETCH, 12, request)["responses"][0]["partitions"][0]
            assert not answer["error_code"], answer
            data = bytes(answer["records"] or b"")
            if not data:
                return found
            position = 0
            for header in read_headers(data):
                found.append(data[position : position + header.size_bytes])
                position += header.size_bytes
                offset = header.next_offset
