"""ListTransactions (API key 66): the transactional IDs that a broker coordinates (KIP-664)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """Empty filters match all transactions. Version 1 adds a minimum age of transactions in ms (-1: none).
    Version 2 adds a pattern for transactional IDs.
    """

    state_filters: list[s.String] = []
    producer_id_filters: list[s.Int64] = []
    duration_filter: s.Int64 = s.field("1+", default=-1)
    transactional_id_pattern: s.NullableString = s.field("2+", default=None)


@s.struct
class TransactionState:
    transactional_id: s.String = ""
    producer_id: s.Int64 = 0
    transaction_state: s.String = ""


@s.response(ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    unknown_state_filters: list[s.String] = []
    transaction_states: list[TransactionState] = []
