"""AddOffsetsToTxn (API key 25): declare that a transaction will commit offsets for a group."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """Request sent before TxnOffsetCommit. Version 4 implies support for TRANSACTION_ABORTABLE (KIP-890)."""

    transactional_id: s.String = ""
    producer_id: s.Int64 = 0
    producer_epoch: s.Int16 = 0
    group_id: s.String = ""


@s.response(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """In version 1 and later, the broker throttles the client after the response (KIP-219)."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
