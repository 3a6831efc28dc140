"""ListTransactions (API key 66): the transactional ids that a broker coordinates (KIP-664)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    field,
    request,
    response,
    struct,
)


@request(ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """Filters without elements pass all. Version 1 filters by duration in ms (-1 none), version 2 by a
    pattern.
    """

    state_filters: list[String] = []
    producer_id_filters: list[Int64] = []
    duration_filter: Int64 = field("1+", default=-1)
    transactional_id_pattern: NullableString = field("2+", default=None)


@struct
class TransactionState:
    """One transactional id."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


@response(ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """Only the ids that this broker coordinates."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = []
    transaction_states: list[TransactionState] = []
