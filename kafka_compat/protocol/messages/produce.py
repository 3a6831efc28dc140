"""Produce (API key 0)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Int16,
    Int32,
    Int64,
    NullableRecords,
    NullableString,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class PartitionProduceData:
    index: Int32 = 0
    records: NullableRecords = None


@struct
class TopicProduceData:
    name: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partition_data: list[PartitionProduceData] = []


@request(ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceRequest:
    transactional_id: NullableString = field("3+", default=None)
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = []


@struct
class BatchIndexAndErrorMessage:
    batch_index: Int32 = field("8+", default=0)
    batch_index_error_message: NullableString = field("8+", default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = field("10+", default=-1)
    leader_epoch: Int32 = field("10+", default=-1)


@struct
class PartitionProduceResponse:
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = field("2+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = field("8+", default=[])
    error_message: NullableString = field("8+", default=None)
    current_leader: LeaderIdAndEpoch = field("10+", default_factory=LeaderIdAndEpoch, tag=0)


@struct
class TopicProduceResponse:
    name: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partition_responses: list[PartitionProduceResponse] = []


@struct
class NodeEndpoint:
    node_id: Int32 = field("10+", default=0)
    host: String = field("10+", default="")
    port: Int32 = field("10+", default=0)
    rack: NullableString = field("10+", default=None)


@response(ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceResponse:
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Int32 = field("1+", default=0)
    node_endpoints: list[NodeEndpoint] = field("10+", default=[], tag=0)
