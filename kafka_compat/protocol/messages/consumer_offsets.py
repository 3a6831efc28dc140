"""Keys and values of the records in `__consumer_offsets`. A key starts with an int16 that tells what the
record is about: 0 and 1 are a committed offset (OffsetCommitKey), 2 is the metadata of a classic group
(GroupMetadataKey). A record without a value deletes what its key names.
"""

from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Bytes,
    Int32,
    Int64,
    NullableString,
    String,
    Uuid,
    data,
    field,
    struct,
)


@data(versions="0-1")
class OffsetCommitKey:
    """Whose offset: version 0 or 1 of a key."""

    group: String = ""
    topic: String = ""
    partition: Int32 = 0


@data(versions="0-4", flexible="4+")
class OffsetCommitValue:
    """A committed offset. Version 1 alone has an expiry of its own, version 3 adds the leader epoch of the
    last consumed record; version 4 is flexible and may name the topic id.
    Timestamps are in ms since the epoch; expire_timestamp -1 is none.
    """

    offset: Int64 = 0
    leader_epoch: Int32 = field("3+", default=-1)
    metadata: String = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Int64 = field("1", default=-1)
    topic_id: Uuid = field("4+", default=ZERO_UUID, tag=0)


@data(versions="2")
class GroupMetadataKey:
    """Which classic group: version 2 of a key."""

    group: String = field("2+", default="")


@struct
class MemberMetadata:
    """A member with the subscription that it sent and the assignment that it got. Timeouts are in ms."""

    member_id: String = ""
    group_instance_id: NullableString = field("3+", default=None)
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout: Int32 = field("1+", default=-1)
    session_timeout: Int32 = 0
    subscription: Bytes = b""
    assignment: Bytes = b""


@data(versions="0-4", flexible="4+")
class GroupMetadataValue:
    """The state of a classic group. Version 1 adds the rebalance timeout, version 2 the time of the state,
    version 3 static members; version 4 is flexible.
    """

    protocol_type: String = ""
    generation: Int32 = 0
    protocol: NullableString = ""
    leader: NullableString = ""
    current_state_timestamp: Int64 = field("2+", default=-1)
    members: list[MemberMetadata] = []
