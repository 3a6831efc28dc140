"""InitProducerId (API key 22): assign an ID and epoch to an idempotent or transactional producer."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+")
class InitProducerIdRequest:
    """Without a transactional ID, the producer gets a new ID. In version 3 and later, a producer can send its
    current ID to get a higher epoch; an ID of -1 means that it has none (KIP-360). Clients that send version
    5 support TRANSACTION_ABORTABLE (KIP-890).
    """

    transactional_id: s.NullableString = ""
    transaction_timeout_ms: s.Int32 = 0
    producer_id: s.Int64 = s.field("3+", default=-1)
    producer_epoch: s.Int16 = s.field("3+", default=-1)


@s.response(ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+")
class InitProducerIdResponse:
    """The producer ID and the epoch are -1 after an error."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    producer_id: s.Int64 = -1
    producer_epoch: s.Int16 = 0
