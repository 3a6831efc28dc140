"""AddOffsetsToTxn (API key 25): a transaction will commit offsets of a group."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, Int64, String, request, response


@request(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """Names the group whose offsets the transaction will commit, before TxnOffsetCommit may.
    Version 4 lets a client understand TRANSACTION_ABORTABLE (KIP-890).
    """

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


@response(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """Version 1 and later are throttled after the answer, not before (KIP-219)."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
