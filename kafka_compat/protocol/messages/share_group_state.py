"""Keys and values of the records in `__share_group_state` (KIP-932). As in `consumer_group_records.py`, the
version of a key is the record type. Values have version 0.
"""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.data(versions="0")
class ShareSnapshotKey:
    """The key of the whole state of a share-partition (key version 0). A tombstone deletes the state."""

    group_id: s.String = ""
    topic_id: s.Uuid = ZERO_UUID
    partition: s.Int32 = 0


@s.data(versions="1")
class ShareUpdateKey:
    """The key of a change to a share-partition (key version 1)."""

    group_id: s.String = s.field("1+", default="")
    topic_id: s.Uuid = s.field("1+", default=ZERO_UUID)
    partition: s.Int32 = s.field("1+", default=0)


@s.struct
class StateBatch:
    """The state of the records from `first_offset` to `last_offset`. delivery_state is 0 (available),
    2 (acknowledged), 3 (archiving) or 4 (archived).
    """

    first_offset: s.Int64 = 0
    last_offset: s.Int64 = 0
    delivery_state: s.Int8 = 0
    delivery_count: s.Int16 = 0


@s.data(versions="0", flexible="0+")
class ShareSnapshotValue:
    """The whole state of a share-partition. delivery_complete_count is the number of records at or after the
    start offset whose delivery is complete (KIP-1226), or -1 if it is unknown. Timestamps are in ms since the
    epoch.
    """

    snapshot_epoch: s.Int32 = 0
    state_epoch: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    start_offset: s.Int64 = 0
    delivery_complete_count: s.Int32 = s.field("0+", default=-1, tag=0)
    create_timestamp: s.Int64 = 0
    write_timestamp: s.Int64 = 0
    state_batches: list[StateBatch] = []


@s.data(versions="0", flexible="0+")
class ShareUpdateValue:
    """Changes since the snapshot with this epoch. start_offset is -1 if it has not changed."""

    snapshot_epoch: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    start_offset: s.Int64 = 0
    delivery_complete_count: s.Int32 = s.field("0+", default=-1, tag=0)
    state_batches: list[StateBatch] = []
