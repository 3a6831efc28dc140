"""OffsetFetch (API key 9): the offsets that groups have stored."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    field,
    request,
    response,
    struct,
)


@struct
class OffsetFetchRequestTopic:
    """Partitions of one topic."""

    name: String = field("0-7", default="")
    partition_indexes: list[Int32] = field("0-7", default=[])


@struct
class OffsetFetchRequestTopics:
    """Partitions of one topic."""

    name: String = field("8+", default="")
    partition_indexes: list[Int32] = field("8+", default=[])


@struct
class OffsetFetchRequestGroup:
    """One group; null `topics` asks for all. Since version 9 with the member that asks (KIP-848)."""

    group_id: String = field("8+", default="")
    member_id: NullableString = field("9+", default=None)
    member_epoch: Int32 = field("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = field("8+", default=[])


@request(ApiKey.OFFSET_FETCH, versions="0-9", flexible="6+")
class OffsetFetchRequest:
    """One group until version 7, several since version 8 (KIP-709). Null `topics` (version 2) asks for all.
    `require_stable` (version 7) refuses offsets of open transactions with UNSTABLE_OFFSET_COMMIT (KIP-447).
    Version 0 once meant offsets in ZooKeeper.
    """

    group_id: String = field("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = field("0-7", default=[], nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field("8+", default=[])
    require_stable: Bool = field("7+", default=False)


@struct
class OffsetFetchResponsePartition:
    """`committed_offset` is -1 when there is none."""

    partition_index: Int32 = field("0-7", default=0)
    committed_offset: Int64 = field("0-7", default=0)
    committed_leader_epoch: Int32 = field("5-7", default=-1)
    metadata: NullableString = field("0-7", default="")
    error_code: Int16 = field("0-7", default=0)


@struct
class OffsetFetchResponseTopic:
    """Partitions of one topic."""

    name: String = field("0-7", default="")
    partitions: list[OffsetFetchResponsePartition] = field("0-7", default=[])


@struct
class OffsetFetchResponsePartitions:
    """`committed_offset` is -1 when there is none."""

    partition_index: Int32 = field("8+", default=0)
    committed_offset: Int64 = field("8+", default=0)
    committed_leader_epoch: Int32 = field("8+", default=-1)
    metadata: NullableString = field("8+", default="")
    error_code: Int16 = field("8+", default=0)


@struct
class OffsetFetchResponseTopics:
    """Partitions of one topic."""

    name: String = field("8+", default="")
    partitions: list[OffsetFetchResponsePartitions] = field("8+", default=[])


@struct
class OffsetFetchResponseGroup:
    """The offsets of one group."""

    group_id: String = field("8+", default="")
    topics: list[OffsetFetchResponseTopics] = field("8+", default=[])
    error_code: Int16 = field("8+", default=0)


@response(ApiKey.OFFSET_FETCH, versions="0-9", flexible="6+")
class OffsetFetchResponse:
    """Topics of the one group until version 7, groups since version 8."""

    throttle_time_ms: Int32 = field("3+", default=0)
    topics: list[OffsetFetchResponseTopic] = field("0-7", default=[])
    error_code: Int16 = field("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = field("8+", default=[])
