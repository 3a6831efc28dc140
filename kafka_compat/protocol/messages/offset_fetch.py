"""OffsetFetch (API key 9): the committed offsets of groups."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class OffsetFetchRequestTopic:
    name: s.String = s.field("0-7", default="")
    partition_indexes: list[s.Int32] = s.field("0-7", default=[])


@s.struct
class OffsetFetchRequestTopics:
    name: s.String = s.field("8-9", default="")
    topic_id: s.Uuid = s.field("10+", default=ZERO_UUID)
    partition_indexes: list[s.Int32] = s.field("8+", default=[])


@s.struct
class OffsetFetchRequestGroup:
    """One group. Null `topics` requests all topics. Version 9 adds the requesting member (KIP-848)."""

    group_id: s.String = s.field("8+", default="")
    member_id: s.NullableString = s.field("9+", default=None)
    member_epoch: s.Int32 = s.field("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = s.field("8+", default=[])


@s.request(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchRequest:
    """Request for the committed offsets of one group (versions 0 to 7) or several (version 8 and later). In
    version 2 and later, null `topics` requests all topics. With `require_stable` (version 7 and later),
    partitions with pending transactional offsets get UNSTABLE_OFFSET_COMMIT. Version 0 reads from ZooKeeper,
    and version 10 identifies topics by ID.
    """

    group_id: s.String = s.field("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = s.field("0-7", default=[], nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = s.field("8+", default=[])
    require_stable: s.Bool = s.field("7+", default=False)


@s.struct
class OffsetFetchResponsePartition:
    """`committed_offset` is -1 if no offset is committed."""

    partition_index: s.Int32 = s.field("0-7", default=0)
    committed_offset: s.Int64 = s.field("0-7", default=0)
    committed_leader_epoch: s.Int32 = s.field("5-7", default=-1)
    metadata: s.NullableString = s.field("0-7", default="")
    error_code: s.Int16 = s.field("0-7", default=0)


@s.struct
class OffsetFetchResponseTopic:
    name: s.String = s.field("0-7", default="")
    partitions: list[OffsetFetchResponsePartition] = s.field("0-7", default=[])


@s.struct
class OffsetFetchResponsePartitions:
    """`committed_offset` is -1 if no offset is committed."""

    partition_index: s.Int32 = s.field("8+", default=0)
    committed_offset: s.Int64 = s.field("8+", default=0)
    committed_leader_epoch: s.Int32 = s.field("8+", default=-1)
    metadata: s.NullableString = s.field("8+", default="")
    error_code: s.Int16 = s.field("8+", default=0)


@s.struct
class OffsetFetchResponseTopics:
    name: s.String = s.field("8-9", default="")
    topic_id: s.Uuid = s.field("10+", default=ZERO_UUID)
    partitions: list[OffsetFetchResponsePartitions] = s.field("8+", default=[])


@s.struct
class OffsetFetchResponseGroup:
    group_id: s.String = s.field("8+", default="")
    topics: list[OffsetFetchResponseTopics] = s.field("8+", default=[])
    error_code: s.Int16 = s.field("8+", default=0)


@s.response(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchResponse:
    """Contains the topics of the only group in versions 0 to 7, and a list of groups in later versions."""

    throttle_time_ms: s.Int32 = s.field("3+", default=0)
    topics: list[OffsetFetchResponseTopic] = s.field("0-7", default=[])
    error_code: s.Int16 = s.field("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = s.field("8+", default=[])
