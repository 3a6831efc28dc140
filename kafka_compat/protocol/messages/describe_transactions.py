"""DescribeTransactions (API key 65): the state of transactional IDs (KIP-664)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    """Sent to the coordinators of the IDs."""

    transactional_ids: list[s.String] = []


@s.struct
class TopicData:
    topic: s.String = ""
    partitions: list[s.Int32] = []


@s.struct
class TransactionState:
    """One transaction. transaction_start_time_ms is -1 if no transaction is open."""

    error_code: s.Int16 = 0
    transactional_id: s.String = ""
    transaction_state: s.String = ""
    transaction_timeout_ms: s.Int32 = 0
    transaction_start_time_ms: s.Int64 = 0
    producer_id: s.Int64 = 0
    producer_epoch: s.Int16 = 0
    topics: list[TopicData] = []


@s.response(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    throttle_time_ms: s.Int32 = 0
    transaction_states: list[TransactionState] = []
