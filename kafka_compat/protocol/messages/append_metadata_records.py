"""AppendMetadataRecords (our own API key 10000): pass records to the leader of the metadata quorum."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.APPEND_METADATA_RECORDS, versions="0", flexible="0+")
class AppendMetadataRecordsRequest:
    """Each element of `records` is the value of one record. They are appended in order, in one batch, if the
    recipient leads `leader_epoch`.
    """

    cluster_id: s.NullableString = None
    leader_epoch: s.Int32 = 0
    records: list[s.Bytes] = []


@s.response(ApiKey.APPEND_METADATA_RECORDS, versions="0", flexible="0+")
class AppendMetadataRecordsResponse:
    """The error, and the leader that the recipient knows (-1: unknown) with its address. Without an error,
    the records are in the leader's log, but perhaps not committed.
    """

    error_code: s.Int16 = 0
    leader_id: s.Int32 = -1
    leader_epoch: s.Int32 = -1
    leader_host: s.NullableString = None
    leader_port: s.Int32 = -1
