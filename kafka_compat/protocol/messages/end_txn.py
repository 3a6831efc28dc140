"""EndTxn (API key 26): commit or abort a transaction."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bool, Int16, Int32, Int64, String, field, request, response


@request(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnRequest:
    """`committed` commits, otherwise the transaction is aborted. Version 5 raises the epoch with every
    transaction (KIP-890).
    """

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


@response(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnResponse:
    """Since version 5 with the id and epoch of the next transaction."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = field("5+", default=-1)
    producer_epoch: Int16 = field("5+", default=-1)
