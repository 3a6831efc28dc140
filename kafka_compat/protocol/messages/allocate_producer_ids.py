"""AllocateProducerIds (API key 67): a broker requests a block of producer IDs from the controller."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsRequest:
    """`broker_epoch` fences a broker that has been restarted since it sent the request."""

    broker_id: s.Int32 = 0
    broker_epoch: s.Int64 = -1


@s.response(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    """The block is [producer_id_start, producer_id_start + producer_id_len)."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    producer_id_start: s.Int64 = 0
    producer_id_len: s.Int32 = 0
