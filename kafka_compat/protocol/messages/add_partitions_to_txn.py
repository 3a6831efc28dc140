"""AddPartitionsToTxn (API key 24): add partitions to a transaction before it writes to them."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import request, response


@s.struct
class AddPartitionsToTxnTopic:
    name: s.String = ""
    partitions: list[s.Int32] = []


@s.struct
class AddPartitionsToTxnTransaction:
    """One transaction. With `verify_only`, its partitions are verified, and none are added (KIP-890)."""

    transactional_id: s.String = s.field("4+", default="")
    producer_id: s.Int64 = s.field("4+", default=0)
    producer_epoch: s.Int16 = s.field("4+", default=0)
    verify_only: s.Bool = s.field("4+", default=False)
    topics: list[AddPartitionsToTxnTopic] = s.field("4+", default=[])


@request(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    """Versions 0 to 3, sent by clients, contain one transaction; later versions, sent by brokers, a list."""

    transactions: list[AddPartitionsToTxnTransaction] = s.field("4+", default=[])
    v3_and_below_transactional_id: s.String = s.field("0-3", default="")
    v3_and_below_producer_id: s.Int64 = s.field("0-3", default=0)
    v3_and_below_producer_epoch: s.Int16 = s.field("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = s.field("0-3", default=[])


@s.struct
class AddPartitionsToTxnPartitionResult:
    partition_index: s.Int32 = 0
    partition_error_code: s.Int16 = 0


@s.struct
class AddPartitionsToTxnTopicResult:
    name: s.String = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


@s.struct
class AddPartitionsToTxnResult:
    transactional_id: s.String = s.field("4+", default="")
    topic_results: list[AddPartitionsToTxnTopicResult] = s.field("4+", default=[])


@response(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """`error_code` (version 4 and later) applies to the whole request. Each partition has its own code."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = s.field("4+", default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = s.field("4+", default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = s.field("0-3", default=[])
