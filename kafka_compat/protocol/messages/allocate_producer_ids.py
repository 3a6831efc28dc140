"""AllocateProducerIds (API key 67): a broker asks the controller for a block of producer ids."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, Int64, request, response


@request(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsRequest:
    """`broker_epoch` fences a broker that has been restarted since."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


@response(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    """The block is [producer_id_start, producer_id_start + producer_id_len)."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0
