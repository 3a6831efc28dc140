"""Records in `__transaction_state`. The latest record of a transactional ID contains its state."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.schema import data


@data(versions="0")
class TransactionLogKey:
    """The key of a record: a transactional ID."""

    transactional_id: s.String = ""


@s.struct
class PartitionsSchema:
    topic: s.String = ""
    partition_ids: list[s.Int32] = []


@data(versions="0-1", flexible="1+")
class TransactionLogValue:
    """The state of a transactional ID. transaction_status is 0 (Empty), 1 (Ongoing), 2 (PrepareCommit), 3
    (PrepareAbort), 4 (CompleteCommit), 5 (CompleteAbort), 6 (Dead) or 7 (PrepareEpochFence).
    `transaction_partitions` is null if no transaction is open. Version 1 is flexible and adds the IDs needed
    to increment epochs (KIP-890).
    """

    producer_id: s.Int64 = 0
    previous_producer_id: s.Int64 = s.field("1+", default=-1, tag=0)
    next_producer_id: s.Int64 = s.field("1+", default=-1, tag=1)
    producer_epoch: s.Int16 = 0
    next_producer_epoch: s.Int16 = s.field("1+", default=-1, tag=3)
    transaction_timeout_ms: s.Int32 = 0
    transaction_status: s.Int8 = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: s.Int64 = 0
    transaction_start_timestamp_ms: s.Int64 = 0
    client_transaction_version: s.Int16 = s.field("1+", default=0, tag=2)
