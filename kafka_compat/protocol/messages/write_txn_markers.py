"""WriteTxnMarkers (API key 27): the transaction coordinator has leaders write commit or abort markers."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    field,
    request,
    response,
    struct,
)


@struct
class WritableTxnMarkerTopic:
    """Partitions of one topic."""

    name: String = ""
    partition_indexes: list[Int32] = []


@struct
class WritableTxnMarker:
    """The end of one transaction; `transaction_result` true commits. `coordinator_epoch` fences old
    coordinators. `transaction_version` 2 says that the marker's epoch is newer than the records' (KIP-1228,
    Kafka 4.2).
    """

    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0
    transaction_version: Int8 = field("2+", default=0)


@request(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest:
    """Markers may come again: writing one twice does no harm."""

    markers: list[WritableTxnMarker] = []


@struct
class WritableTxnMarkerPartitionResult:
    """Whether the marker of one partition is written."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class WritableTxnMarkerTopicResult:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


@struct
class WritableTxnMarkerResult:
    """What became of the markers of one transaction."""

    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


@response(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse:
    """One result per marker."""

    markers: list[WritableTxnMarkerResult] = []
