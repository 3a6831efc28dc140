"""InitProducerId (API key 22): a producer id and epoch for an idempotent or transactional producer."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, Int64, NullableString, field, request, response


@request(ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+")
class InitProducerIdRequest:
    """Without a transactional id, any new producer id will do. Version 3 lets a producer raise the epoch of
    the id that it has, or -1 (KIP-360); version 5 understands TRANSACTION_ABORTABLE (KIP-890).
    """

    transactional_id: NullableString = ""
    transaction_timeout_ms: Int32 = 0
    producer_id: Int64 = field("3+", default=-1)
    producer_epoch: Int16 = field("3+", default=-1)


@response(ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+")
class InitProducerIdResponse:
    """Both are -1 with an error."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
