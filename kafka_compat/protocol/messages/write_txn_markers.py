"""WriteTxnMarkers (API key 27): the transaction coordinator sends commit or abort markers to leaders."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class WritableTxnMarkerTopic:
    name: s.String = ""
    partition_indexes: list[s.Int32] = []


@s.struct
class WritableTxnMarker:
    """The end of one transaction. `transaction_result` is true for a commit. `coordinator_epoch` fences
    replaced coordinators. `transaction_version` 2 means that the marker's epoch is newer than the epoch of
    the records (KIP-1228, Kafka 4.2).
    """

    producer_id: s.Int64 = 0
    producer_epoch: s.Int16 = 0
    transaction_result: s.Bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: s.Int32 = 0
    transaction_version: s.Int8 = s.field("2+", default=0)


@s.request(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest:
    """Requests may be retried: writing a marker twice is harmless."""

    markers: list[WritableTxnMarker] = []


@s.struct
class WritableTxnMarkerPartitionResult:
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0


@s.struct
class WritableTxnMarkerTopicResult:
    name: s.String = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


@s.struct
class WritableTxnMarkerResult:
    producer_id: s.Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


@s.response(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = []
