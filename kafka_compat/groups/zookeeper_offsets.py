"""Offsets in ZooKeeper, or in the embedded tree of a standalone broker, where Kafka's oldest clients (before
0.8.2) store them.

OffsetCommit and OffsetFetch version 0 have no coordinator: any broker accepts them. Offsets are stored as
text under /consumers/GROUP/offsets/TOPIC/PARTITION. They never expire, and their groups are not listed.
"""

import logging

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError, NoNode
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.commits import java_length
from kafka_compat.metadata.cache import MetadataCache

log = logging.getLogger(__name__)

NO_OFFSET = -1


class ZooKeeperOffsets:
    def __init__(self, store: MetadataStore, metadata: MetadataCache, metadata_size_max: int) -> None:
        """`metadata_size_max` is offset.metadata.max.bytes. The length of the metadata is checked, but the
        metadata is not stored.
        """
        self._store = store
        self._metadata = metadata
        self._metadata_size_max = metadata_size_max

    async def commit(
        self, group: str, topic: str, partition: int, offset: int, metadata: str | None
    ) -> ErrorCode:
        """Store an offset, and return an error code."""
        if self._metadata.partition(topic, partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if metadata is not None and java_length(metadata) > self._metadata_size_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        try:
            await self._store.put(
                znodes.consumer_offset_path(group, topic, partition), znodes.encode_offset(offset)
            )
        except (MetadataStoreError, ValueError) as error:
            log.warning(
                "Could not store an offset in ZooKeeper (group %r, %s-%d): %r", group, topic, partition, error
            )
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    async def fetch(self, group: str, topic: str, partition: int) -> tuple[int, ErrorCode]:
        """Return (offset, error code). A missing offset gets NO_OFFSET and UNKNOWN_TOPIC_OR_PARTITION."""
        if self._metadata.partition(topic, partition) is None:
            return NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            path = znodes.consumer_offset_path(group, topic, partition)
            data, _ = await self._store.get(path)
            offset = znodes.decode_offset(path, data)
        except NoNode:
            return NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        except (MetadataStoreError, ValueError) as error:
            log.warning(
                "Could not get an offset from ZooKeeper (group %r, %s-%d): %r", group, topic, partition, error
            )
            return NO_OFFSET, ErrorCode.UNKNOWN_SERVER_ERROR
        if offset is None:
            return NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return offset, ErrorCode.NONE
