"""EndTxn (API key 26): commit or abort a transaction."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import request, response


@request(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnRequest:
    """`committed` is false to abort. In version 5, EndTxn also increments the producer epoch (KIP-890)."""

    transactional_id: s.String = ""
    producer_id: s.Int64 = 0
    producer_epoch: s.Int16 = 0
    committed: s.Bool = False


@response(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnResponse:
    """In version 5 and later, the response contains the producer ID and epoch for the next transaction."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    producer_id: s.Int64 = s.field("5+", default=-1)
    producer_epoch: s.Int16 = s.field("5+", default=-1)
