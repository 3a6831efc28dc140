"""WriteTxnMarkers (API key 27)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bool, Int16, Int32, Int64, String, request, response, struct


@struct
class WritableTxnMarkerTopic:
    name: String = ""
    partition_indexes: list[Int32] = []


@struct
class WritableTxnMarker:
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0


@request(ApiKey.WRITE_TXN_MARKERS, versions="0-1", flexible="1+")
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker] = []


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class WritableTxnMarkerTopicResult:
    name: String = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


@struct
class WritableTxnMarkerResult:
    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


@response(ApiKey.WRITE_TXN_MARKERS, versions="0-1", flexible="1+")
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = []
