"""Members of a share group as bare clients: one connection for each, on this broker or Apache Kafka.

The state of a share-partition must be initialized. Apache Kafka does this after a ShareGroupHeartbeat.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.record_requests import offsets_request, produce_request
from tests.conformance.wire import Connection, Plain
from tests.support.process import wait_until

Acks = Sequence[tuple[int, int, Sequence[int]]]
"""Acknowledgements: first offset, last offset, types."""

GROUP_CONFIG = 32


class Member:
    """One member, with its session. Results are plain: partition → (error, acknowledge error, acquired)."""

    def __init__(self, group: ShareGroup, name: str) -> None:
        self._group = group
        self.member_id = f"{name}-member"
        self.connection = Connection(group.address, 90)
        self.epoch = 0

    def fetch(
        self,
        acks: dict[int, Acks] | None = None,
        *,
        partitions: Sequence[int] | None = None,
        epoch: int | None = None,
        version: int = 2,
        **more: Any,
    ) -> Plain:
        """Send a ShareFetch and return its response, without topic IDs and records."""
        self.begin(acks, partitions=partitions, epoch=epoch, version=version, **more)
        return self.finish(version)

    def begin(
        self,
        acks: dict[int, Acks] | None = None,
        *,
        partitions: Sequence[int] | None = None,
        epoch: int | None = None,
        version: int = 2,
        **more: Any,
    ) -> None:
        """Send a ShareFetch without waiting for the response, which `finish` returns."""
        if epoch is None:
            epoch = self.epoch
        self.epoch = epoch + 1
        if partitions is None:
            partitions = list(range(self._group.size)) if epoch == 0 else []
        wanted = sorted({*partitions, *(acks or {})})
        request = {
            "group_id": self._group.name,
            "member_id": self.member_id,
            "share_session_epoch": epoch,
            "max_wait_ms": 300,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": [self._group.topic_of(wanted, acks or {})] if wanted else [],
            **more,
        }
        self.connection.begin(ApiKey.SHARE_FETCH, version, request)

    def finish(self, version: int = 2) -> Plain:
        return self._plain(self.connection.finish(ApiKey.SHARE_FETCH, version))

    def acknowledge(
        self, acks: dict[int, Acks], *, epoch: int | None = None, version: int = 2, **more: Any
    ) -> Plain:
        """Send a ShareAcknowledge and return its response, without topic IDs."""
        if epoch is None:
            epoch = self.epoch
        self.epoch = epoch + 1
        request = {
            "group_id": self._group.name,
            "member_id": self.member_id,
            "share_session_epoch": epoch,
            "topics": [self._group.topic_of(sorted(acks), acks)],
            **more,
        }
        return self._plain(self.connection.ask(ApiKey.SHARE_ACKNOWLEDGE, version, request))

    @staticmethod
    def _plain(answer: Plain) -> Plain:
        partitions = {}
        for topic in answer["responses"]:
            for each in topic["partitions"]:
                found = {"error": each["error_code"], "message": each["error_message"]}
                if "records" in each:
                    found["ack"] = each["acknowledge_error_code"]
                    found["ack_message"] = each["acknowledge_error_message"]
                    found["bytes"] = _whole_bytes(each["records"])
                    found["rest_bytes"] = len(each["records"] or b"") - (found["bytes"] or 0)
                    found["acquired"] = [
                        (one["first_offset"], one["last_offset"], one["delivery_count"])
                        for one in each["acquired_records"]
                    ]
                partitions[each["partition_index"]] = found
        return {
            "error": answer["error_code"],
            "message": answer["error_message"],
            "lock_ms": answer["acquisition_lock_timeout_ms"],
            "partitions": dict(sorted(partitions.items())),
        }

    def close(self) -> None:
        self.connection.close()


def _whole_bytes(records: bytes | None) -> int | None:
    """Return the size of the whole batches. Apache Kafka may send a part of another one after them."""
    if records is None:
        return None
    at = 0
    while at + 12 <= len(records):
        size_bytes = 12 + int.from_bytes(records[at + 8 : at + 12], "big")
        if at + size_bytes > len(records):
            break
        at += size_bytes
    return at


class ShareGroup:
    """A share group with one topic on one broker."""

    def __init__(self, address: str, name: str, size: int = 1, configs: dict[str, str] | None = None) -> None:
        self.address = address
        self.name = name
        self.size = size
        self._admin = Connection(address, 90)
        self._members: list[Member] = []
        self._numbers = itertools.count()
        self.topic = f"{name}-topic"
        self.topic_id = self.create_topic()
        self.configure({"share.auto.offset.reset": "earliest", **(configs or {})})

    def create_topic(self) -> uuid.UUID:
        """Create the topic, and return its ID."""
        wanted = {"name": self.topic, "num_partitions": self.size, "replication_factor": 1}
        answer = self._admin.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [wanted], "timeout_ms": 60_000})
        assert answer["topics"][0]["error_code"] == 0, answer
        topic_id: uuid.UUID = answer["topics"][0]["topic_id"]
        return topic_id

    def configure(self, configs: dict[str, str]) -> None:
        """Change settings of the group."""
        values = [{"name": key, "config_operation": 0, "value": value} for key, value in configs.items()]
        resource = {"resource_type": GROUP_CONFIG, "resource_name": self.name, "configs": values}
        answer = self._admin.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
        assert not answer["responses"][0]["error_code"], answer

    def initialize(self) -> None:
        """Join with a member, and wait until the states of the topic's partitions are initialized."""
        member_id = str(uuid.uuid4())
        request: Plain = {"group_id": self.name, "member_id": member_id, "member_epoch": 0}
        request["subscribed_topic_names"] = [self.topic]

        def is_assigned() -> bool:
            # The request creates the topic of the group coordinator.
            self._admin.ask(ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": [self.name]})
            answer = self._admin.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
            if not answer["error_code"]:
                request["member_epoch"] = answer["member_epoch"]
                request["subscribed_topic_names"] = None
            assigned = answer["assignment"]
            topics = assigned["topic_partitions"] if assigned else []
            return bool(topics) and len(topics[0]["partitions"]) == self.size

        wait_until(is_assigned, 90, "the assignment", 0.1)

    def load(self) -> None:
        """Let the leader read the states of the partitions, which takes longer than a short fetch waits."""
        member = self.member("loader")
        for _ in range(10):
            if len(member.fetch(epoch=0, max_wait_ms=1_000)["partitions"]) == self.size:
                break
        member.fetch(epoch=-1)

    def topic_of(self, partitions: Sequence[int], acks: dict[int, Acks]) -> Plain:
        """Return the topic of a request."""
        return {
            "topic_id": self.topic_id,
            "partitions": [
                {
                    "partition_index": number,
                    "acknowledgement_batches": [
                        {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}
                        for first, last, types in acks.get(number, ())
                    ],
                }
                for number in partitions
            ],
        }

    def member(self, name: str = "") -> Member:
        member = Member(self, name or f"m{next(self._numbers)}")
        self._members.append(member)
        return member

    def produce(self, *counts: int, partition: int = 0) -> None:
        """Append batches with these numbers of records."""
        for count in counts:
            request = produce_request(self.topic, batch(count), partition=partition)

            def is_appended(request: Plain = request) -> bool:
                answer = self._admin.ask(ApiKey.PRODUCE, 9, request)
                return not answer["responses"][0]["partition_responses"][0]["error_code"]

            wait_until(is_appended, 90, "the leader", 0.05)

    def transaction(self, *counts: int, is_committed: bool, partition: int = 0) -> None:
        """Append batches with these numbers of records in a transaction, and end it."""
        name = f"{self.name}-transactions"
        found: Plain = {}

        def is_begun() -> bool:
            # The first request creates the topic of the transaction coordinator.
            self._admin.ask(ApiKey.FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": [name]})
            request = {"transactional_id": name, "transaction_timeout_ms": 600_000}
            found.update(self._admin.ask(ApiKey.INIT_PRODUCER_ID, 4, request))
            return not found["error_code"]

        wait_until(is_begun, 90, "a producer ID", 0.05)
        producer_id, epoch = found["producer_id"], found["producer_epoch"]
        added = {
            "v3_and_below_transactional_id": name,
            "v3_and_below_producer_id": producer_id,
            "v3_and_below_producer_epoch": epoch,
            "v3_and_below_topics": [{"name": self.topic, "partitions": [partition]}],
        }

        def is_added() -> bool:
            (result,) = self._admin.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, added)[
                "results_by_topic_v3_and_below"
            ]
            return not result["results_by_partition"][0]["partition_error_code"]

        wait_until(is_added, 90, "the partition of the transaction", 0.05)
        sequence = 0
        for count in counts:
            data = batch(
                count,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=True,
            )
            sequence += count
            request = produce_request(self.topic, data, partition=partition, transactional_id=name)
            answer = self._admin.ask(ApiKey.PRODUCE, 9, request)
            assert not answer["responses"][0]["partition_responses"][0]["error_code"], answer
        ended = {
            "transactional_id": name,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "committed": is_committed,
        }
        end = self._end(partition, 0)
        wait_until(lambda: not self._admin.ask(ApiKey.END_TXN, 3, ended)["error_code"], 90, "the end", 0.05)
        wait_until(lambda: self._end(partition, 1) == end + 1, 90, "the marker", 0.05)

    def delete_topic(self) -> None:
        request = {"topic_names": [self.topic], "timeout_ms": 30_000}
        answer = self._admin.ask(ApiKey.DELETE_TOPICS, 5, request)
        assert not answer["responses"][0]["error_code"], answer

    def _end(self, partition: int, isolation: int) -> int:
        """Return the end offset, or the last stable offset (`isolation` 1)."""
        request = offsets_request(self.topic, -1, partition=partition, isolation=isolation)
        answer = self._admin.ask(ApiKey.LIST_OFFSETS, 7, request)
        return int(answer["topics"][0]["partitions"][0]["offset"])

    def delete_records(self, offset: int, partition: int = 0) -> None:
        part = {"partition_index": partition, "offset": offset}
        request = {"topics": [{"name": self.topic, "partitions": [part]}], "timeout_ms": 30_000}
        answer = self._admin.ask(ApiKey.DELETE_RECORDS, 2, request)
        assert not answer["topics"][0]["partitions"][0]["error_code"], answer

    def close(self) -> None:
        for member in self._members:
            member.close()
        self._admin.close()
