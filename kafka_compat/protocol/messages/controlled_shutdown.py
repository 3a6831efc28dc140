"""ControlledShutdown (API key 7)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, Int64, String, field, request, response, struct


@request(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownRequest:
    broker_id: Int32 = 0
    broker_epoch: Int64 = field("2+", default=-1)


@struct
class RemainingPartition:
    topic_name: String = ""
    partition_index: Int32 = 0


@response(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownResponse:
    error_code: Int16 = 0
    remaining_partitions: list[RemainingPartition] = []
