"""ControlledShutdown (API key 7): a broker asks the controller to move its leaderships before it stops."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, Int64, String, field, request, response, struct


@request(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownRequest:
    """Version 0 has a request header without a client id; version 2 adds the broker epoch (KIP-380)."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = field("2+", default=-1)


@struct
class RemainingPartition:
    """A partition that the broker still leads."""

    topic_name: String = ""
    partition_index: Int32 = 0


@response(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownResponse:
    """The broker may stop when no partition remains; otherwise it asks again."""

    error_code: Int16 = 0
    remaining_partitions: list[RemainingPartition] = []
