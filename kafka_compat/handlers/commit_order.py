"""The order of the partitions in responses to OffsetCommit and TxnOffsetCommit."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import PartitionErrors
from kafka_compat.long_work import Steps, batched

CommittedPartition = tuple[UUID, str, int]
"""A partition of a request: topic ID (version 10 of OffsetCommit and later), topic name, and partition."""

_NOT_COMMITTED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)


def in_response_order(
    partitions: Iterable[CommittedPartition], errors: PartitionErrors
) -> Steps[list[CommittedPartition]]:
    """Put the partitions in the order of the response, in steps. As in Kafka, partitions that the group never
    sees come first.
    """
    refused: list[CommittedPartition] = []
    passed: list[CommittedPartition] = []
    for some in batched(partitions):
        yield None
        for partition in some:
            (refused if errors[partition[1:]] in _NOT_COMMITTED else passed).append(partition)
    return refused + passed
