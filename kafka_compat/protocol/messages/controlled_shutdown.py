"""ControlledShutdown (API key 7): a broker asks the controller to move its leadership before shutdown."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownRequest:
    """In version 0, the request header lacks the client ID. Version 2 adds the broker epoch (KIP-380)."""

    broker_id: s.Int32 = 0
    broker_epoch: s.Int64 = s.field("2+", default=-1)


@s.struct
class RemainingPartition:
    """A partition that the broker still leads."""

    topic_name: s.String = ""
    partition_index: s.Int32 = 0


@s.response(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownResponse:
    """The broker may stop when no partition remains; otherwise, it retries the request."""

    error_code: s.Int16 = 0
    remaining_partitions: list[RemainingPartition] = []
