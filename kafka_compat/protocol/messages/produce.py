"""Produce (API key 0): append record batches to topic partitions."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import request, response
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class PartitionProduceData:
    """Record batches for one partition, as built by the producer: exactly one in version 3 and later."""

    index: s.Int32 = 0
    records: s.NullableRecords = None


@s.struct
class TopicProduceData:
    """Partitions of one topic, identified by name in versions 0 to 12, and by ID in later versions."""

    name: s.String = s.field("0-12", default="")
    topic_id: s.Uuid = s.field("13+", default=ZERO_UUID)
    partition_data: list[PartitionProduceData] = []


@request(ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceRequest:
    """`acks` is 0 (no response), 1 (respond when the leader has the records) or -1 (respond when all in-sync
    replicas have them). The version determines the record format: versions 0 and 1 use message format 0,
    version 2 uses format 1, and later versions use format 2; zstd requires version 7. Version 9 is flexible.
    Clients that send version 11 support TRANSACTION_ABORTABLE, version 12 implies AddPartitionsToTxn
    (KIP-890), and version 13 adds topic IDs (KIP-516).
    """

    transactional_id: s.NullableString = s.field("3+", default=None)
    acks: s.Int16 = 0
    timeout_ms: s.Int32 = 0
    topic_data: list[TopicProduceData] = []


@s.struct
class BatchIndexAndErrorMessage:
    """A rejected record, identified by its index in the batch (KIP-467)."""

    batch_index: s.Int32 = s.field("8+", default=0)
    batch_index_error_message: s.NullableString = s.field("8+", default=None)


@s.struct
class LeaderIdAndEpoch:
    """The current leader, to which the client must send its requests, or -1 if it is unknown."""

    leader_id: s.Int32 = s.field("10+", default=-1)
    leader_epoch: s.Int32 = s.field("10+", default=-1)


@s.struct
class PartitionProduceResponse:
    """The base offset of the batch, or the error. In version 8 and later, `record_errors` contains the
    records that caused a rejection. `log_append_time_ms` is -1 unless the topic uses LogAppendTime.
    """

    index: s.Int32 = 0
    error_code: s.Int16 = 0
    base_offset: s.Int64 = 0
    log_append_time_ms: s.Int64 = s.field("2+", default=-1)
    log_start_offset: s.Int64 = s.field("5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = s.field("8+", default=[])
    error_message: s.NullableString = s.field("8+", default=None)
    current_leader: LeaderIdAndEpoch = s.field("10+", default_factory=LeaderIdAndEpoch, tag=0)


@s.struct
class TopicProduceResponse:
    name: s.String = s.field("0-12", default="")
    topic_id: s.Uuid = s.field("13+", default=ZERO_UUID)
    partition_responses: list[PartitionProduceResponse] = []


@s.struct
class NodeEndpoint:
    """The address of a leader named in the response (KIP-951)."""

    node_id: s.Int32 = s.field("10+", default=0)
    host: s.String = s.field("10+", default="")
    port: s.Int32 = s.field("10+", default=0)
    rack: s.NullableString = s.field("10+", default=None)


@response(ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceResponse:
    """Version 10 adds the new leader of a partition whose leader has changed (KIP-951)."""

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    node_endpoints: list[NodeEndpoint] = s.field("10+", default=[], tag=0)
