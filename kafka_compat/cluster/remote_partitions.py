"""Client that reads start offsets, end offsets and records from partitions led by other brokers, as a
consumer would.

Monitoring and the web console use this client occasionally. It has separate connections, so that a slow
broker does not delay other requests.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from kafka_compat.cluster.peers import Peers
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafka_compat.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

TopicPartition = tuple[str, int]

_LATEST: Final = -1
_EARLIEST: Final = -2
_FETCH_VERSION: Final = 12
_CONSUMER: Final = -1


class Bounds(NamedTuple):
    """The log start offset of a partition, and the end offset that consumers see."""

    oldest: int
    newest: int


class Batches(NamedTuple):
    """Record batches; the last one may be incomplete. `aborted` lists aborted transactions as (producer ID,
    first offset), or is None if they were not requested.
    """

    records: bytes
    aborted: list[tuple[int, int]] | None


class RemotePartitions:
    """A client for other brokers' partitions. Its methods raise ConnectionError or MalformedRequest."""

    def __init__(self, peers: Peers, list_offsets_version: int) -> None:
        self._peers = peers
        self._list_offsets_version = list_offsets_version

    async def bounds(
        self, leader_id: int, leader_epochs: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> dict[TopicPartition, Bounds]:
        """Return the bounds of partitions that the broker `leader_id` leads in these epochs. Partitions with
        a different leader or epoch are omitted. With `committed`, the end is the last stable offset.
        """
        oldest = await self.offsets_at(leader_id, leader_epochs, _EARLIEST)
        newest = await self.offsets_at(leader_id, leader_epochs, _LATEST, committed=committed)
        return {place: Bounds(oldest[place], newest[place]) for place in oldest.keys() & newest.keys()}

    async def ask(self, broker_id: int, key: ApiKey, version: int, request: Any) -> Any:
        """Send a request with the permissions of this broker, and return the response."""
        return await self._peers.client(broker_id).send(key, version, request)

    async def close(self) -> None:
        """Close the connections."""
        await self._peers.close()

    async def offsets_at(
        self,
        leader_id: int,
        leader_epochs: Mapping[TopicPartition, int],
        timestamp: int,
        *,
        committed: bool = False,
    ) -> dict[TopicPartition, int]:
        """Return, for each partition, the offset of the first record at or after this timestamp (ms), or -1
        if there is none. Partitions with an error are omitted.
        """
        topics: dict[str, ListOffsetsTopic] = {}
        for (topic, partition), epoch in leader_epochs.items():
            topics.setdefault(topic, ListOffsetsTopic(name=topic)).partitions.append(
                ListOffsetsPartition(
                    partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
                )
            )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER, isolation_level=int(committed), topics=list(topics.values())
        )
        answer: ListOffsetsResponse = await self._peers.client(leader_id).send(
            ApiKey.LIST_OFFSETS, self._list_offsets_version, request
        )
        return {
            (topic.name, each.partition_index): each.offset
            for topic in answer.topics
            for each in topic.partitions
            if each.error_code == ErrorCode.NONE
        }

    async def batch_at(
        self, leader_id: int, place: TopicPartition, leader_epoch: int, offset: int
    ) -> bytes | None:
        """Return records that begin with the batch that contains `offset`, or with the next batch. The result
        is empty if neither exists. Return None if the partition is unknown or `offset` is out of range.
        """
        # Request one byte: the first batch is returned whole, however large it is (KIP-74).
        found = await self.batches(leader_id, place, leader_epoch, offset, 1)
        return None if found is None else found.records

    async def batches(
        self,
        leader_id: int,
        place: TopicPartition,
        leader_epoch: int,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
    ) -> Batches | None:
        """Return the batches starting at `offset`, up to about `max_bytes`, or None if the partition is
        unknown or `offset` is out of range. With `committed`, stop at the last stable offset.
        """
        topic, partition = place
        asked = FetchPartition(
            partition=partition,
            current_leader_epoch=leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
        )
        request = FetchRequest(
            replica_id=_CONSUMER,
            session_epoch=-1,
            isolation_level=int(committed),
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        answer: FetchResponse = await self._peers.client(leader_id).send(
            ApiKey.FETCH, _FETCH_VERSION, request
        )
        for of_topic in answer.responses:
            for found in of_topic.partitions:
                if found.error_code == ErrorCode.NONE:
                    records = bytes(cast("memoryview | None", found.records) or b"")
                    aborted = [
                        (each.producer_id, each.first_offset) for each in found.aborted_transactions or ()
                    ]
                    return Batches(records, aborted if committed else None)
        return None
