"""AddPartitionsToTxn (API key 24): a transaction will write to partitions."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bool, Int16, Int32, Int64, String, field, request, response, struct


@struct
class AddPartitionsToTxnTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[Int32] = []


@struct
class AddPartitionsToTxnTransaction:
    """One transaction. `verify_only` asks whether the partitions are in it, and adds nothing (KIP-890)."""

    transactional_id: String = field("4+", default="")
    producer_id: Int64 = field("4+", default=0)
    producer_epoch: Int16 = field("4+", default=0)
    verify_only: Bool = field("4+", default=False)
    topics: list[AddPartitionsToTxnTopic] = field("4+", default=[])


@request(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    """Until version 3 one transaction of a client; from version 4 on a batch of them, sent by brokers
    (KIP-890).
    """

    transactions: list[AddPartitionsToTxnTransaction] = field("4+", default=[])
    v3_and_below_transactional_id: String = field("0-3", default="")
    v3_and_below_producer_id: Int64 = field("0-3", default=0)
    v3_and_below_producer_epoch: Int16 = field("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field("0-3", default=[])


@struct
class AddPartitionsToTxnPartitionResult:
    """What became of one partition."""

    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


@struct
class AddPartitionsToTxnTopicResult:
    """What became of the partitions of one topic."""

    name: String = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


@struct
class AddPartitionsToTxnResult:
    """What became of one transaction."""

    transactional_id: String = field("4+", default="")
    topic_results: list[AddPartitionsToTxnTopicResult] = field("4+", default=[])


@response(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """`error_code` is that of the whole request, since version 4; otherwise each partition has its own."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("4+", default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("4+", default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("0-3", default=[])
