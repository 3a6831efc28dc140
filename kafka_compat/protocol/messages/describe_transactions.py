"""DescribeTransactions (API key 65): the state of transactional ids (KIP-664)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, Int64, String, request, response, struct


@request(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    """Sent to the coordinators of the ids."""

    transactional_ids: list[String] = []


@struct
class TopicData:
    """Partitions of one topic."""

    topic: String = ""
    partitions: list[Int32] = []


@struct
class TransactionState:
    """One transaction; transaction_start_time_ms is -1 while none is open."""

    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = []


@response(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """Transactional ids are answered one by one."""

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = []
