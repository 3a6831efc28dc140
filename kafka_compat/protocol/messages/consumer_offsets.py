"""Keys and values of the records in `__consumer_offsets`. A key starts with an int16, the record type: 0 or 1
for a committed offset (OffsetCommitKey), 2 for the metadata of a classic group (GroupMetadataKey). A record
without a value deletes the entry with its key.
"""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.data(versions="0-1")
class OffsetCommitKey:
    """The key of a committed offset (key version 0 or 1)."""

    group: s.String = ""
    topic: s.String = ""
    partition: s.Int32 = 0


@s.data(versions="0-4", flexible="4+")
class OffsetCommitValue:
    """A committed offset. Only version 1 contains an expiry time. Version 3 adds the leader epoch of the last
    record read. Version 4 is flexible and may contain the topic ID. Timestamps are in ms since the epoch;
    expire_timestamp is -1 if the offset does not expire.
    """

    offset: s.Int64 = 0
    leader_epoch: s.Int32 = s.field("3+", default=-1)
    metadata: s.String = ""
    commit_timestamp: s.Int64 = 0
    expire_timestamp: s.Int64 = s.field("1", default=-1)
    topic_id: s.Uuid = s.field("4+", default=ZERO_UUID, tag=0)


@s.data(versions="2")
class GroupMetadataKey:
    """The key of a classic group (key version 2)."""

    group: s.String = s.field("2+", default="")


@s.struct
class MemberMetadata:
    """A member with its subscription and assignment. Timeouts are in ms."""

    member_id: s.String = ""
    group_instance_id: s.NullableString = s.field("3+", default=None)
    client_id: s.String = ""
    client_host: s.String = ""
    rebalance_timeout: s.Int32 = s.field("1+", default=-1)
    session_timeout: s.Int32 = 0
    subscription: s.Bytes = b""
    assignment: s.Bytes = b""


@s.data(versions="0-4", flexible="4+")
class GroupMetadataValue:
    """The state of a classic group. Version 1 adds the rebalance timeout, version 2 adds the time of the last
    state change, and version 3 adds static members. Version 4 is flexible.
    """

    protocol_type: s.String = ""
    generation: s.Int32 = 0
    protocol: s.NullableString = ""
    leader: s.NullableString = ""
    current_state_timestamp: s.Int64 = s.field("2+", default=-1)
    members: list[MemberMetadata] = []
