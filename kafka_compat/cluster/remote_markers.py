"""Transaction markers for partitions led by other brokers, sent to each leader in WriteTxnMarkers requests.

After any error, including a missing response, the coordinator retries, and the leader is looked up again.
When the metadata contains a new leader, the response from the former leader is no longer awaited.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from kafka_compat.cluster.peers import Peers
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.feed import MetadataDelta
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka_compat.transactions.marker_writer import Marker, MarkerCallback, MarkerWriter
from kafka_compat.transactions.status import VERSION_WITH_EPOCH_BUMP, TopicPartition

log = logging.getLogger(__name__)

_VERSION: Final = 1
_VERSION_WITH_EPOCH_BUMP: Final = 2
"""First WriteTxnMarkers version with a marker's transaction version (KIP-1228). All other markers are sent in
version 1, which brokers before Kafka 4.2 support.
"""


class _MarkerRequest:
    """A pending request to a leader. `waiting` contains the partitions that have no error code yet."""

    def __init__(self, leader_id: int, partitions: list[TopicPartition], done: MarkerCallback) -> None:
        self.leader_id = leader_id
        self.waiting = dict.fromkeys(partitions)
        self._done = done

    def settle(self, partition: TopicPartition, error: ErrorCode) -> None:
        if partition in self.waiting:
            del self.waiting[partition]
            self._done(partition, error)


class ClusterMarkerWriter:
    """A MarkerWriter for a cluster. `local` writes to the partitions that this broker leads."""

    def __init__(
        self,
        local: MarkerWriter,
        metadata: MetadataCache,
        peers: Peers,
        topic_exists: Callable[[str], Awaitable[bool]],
    ) -> None:
        """`topic_exists` reads the metadata store, because a new broker may not know all topics yet."""
        self._local = local
        self._metadata = metadata
        self._peers = peers
        self._topic_exists = topic_exists
        self._under_way: set[_MarkerRequest] = set()
        metadata.feed.subscribe(self._on_metadata)

    def exists(self, partition: TopicPartition) -> bool:
        """Return True, because `write` checks whether the topic exists."""
        return True

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], done: MarkerCallback) -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            known = self._metadata.partition(*partition)
            if known is None:
                self._peers.run(
                    f"fetching metadata of topic {partition[0]}", partial(self._look_for, partition, done)
                )
            elif known.leader not in self._metadata.brokers:
                done(partition, ErrorCode.LEADER_NOT_AVAILABLE)
            else:
                by_leader.setdefault(known.leader, []).append(partition)
        for leader_id, led in by_leader.items():
            if leader_id == self._metadata.local_id:
                self._local.write(marker, led, done)
            else:
                request = _MarkerRequest(leader_id, led, done)
                self._peers.run(f"markers for broker {leader_id}", partial(self._send, marker, request))

    def _on_metadata(self, delta: MetadataDelta) -> None:
        """Stop waiting for responses from brokers that are no longer leaders of the partitions."""
        if not (delta.partitions or delta.deleted):
            return
        for request in list(self._under_way):
            for partition in list(request.waiting):
                known = self._metadata.partition(*partition)
                if known is None or known.leader != request.leader_id:
                    request.settle(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def _look_for(self, partition: TopicPartition, done: MarkerCallback) -> None:
        exists = await self._topic_exists(partition[0])
        done(partition, ErrorCode.LEADER_NOT_AVAILABLE if exists else ErrorCode.NONE)

    async def _send(self, marker: Marker, request: _MarkerRequest) -> None:
        self._under_way.add(request)
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        version = _VERSION_WITH_EPOCH_BUMP if marker.bumped_epoch else _VERSION
        try:
            response: WriteTxnMarkersResponse = await self._peers.client(request.leader_id).send(
                ApiKey.WRITE_TXN_MARKERS, version, _request(marker, request.waiting)
            )
            for result in response.markers:
                for topic in result.topics:
                    for item in topic.partitions:
                        request.settle((topic.name, item.partition_index), known_code(item.error_code))
        except ConnectionError as problem:
            log.info("WriteTxnMarkers request to broker %d failed: %s", request.leader_id, problem)
            error = ErrorCode.NETWORK_EXCEPTION
        except MalformedRequest as problem:
            log.error("Invalid WriteTxnMarkers response from broker %d: %s", request.leader_id, problem)
            error = ErrorCode.NETWORK_EXCEPTION
        except Exception:
            # Catch all errors: an unhandled error would leave transactions open indefinitely.
            log.exception("WriteTxnMarkers request to broker %d failed", request.leader_id)
        finally:
            self._under_way.discard(request)
        for partition in list(request.waiting):
            request.settle(partition, error)


def _request(marker: Marker, partitions: Iterable[TopicPartition]) -> WriteTxnMarkersRequest:
    topics: dict[str, WritableTxnMarkerTopic] = {}
    for name, index in partitions:
        topics.setdefault(name, WritableTxnMarkerTopic(name=name)).partition_indexes.append(index)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.identity.producer_id,
                producer_epoch=marker.identity.producer_epoch,
                transaction_result=marker.committed,
                topics=list(topics.values()),
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=VERSION_WITH_EPOCH_BUMP if marker.bumped_epoch else 0,
            )
        ]
    )
