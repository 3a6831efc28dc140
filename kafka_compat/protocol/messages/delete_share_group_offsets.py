"""DeleteShareGroupOffsets (API key 92): delete the offsets of a share group (KIP-932)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: s.String = ""


@s.request(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    """A group with members is rejected with NON_EMPTY_GROUP."""

    group_id: s.String = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []


@s.struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: s.String = ""
    topic_id: s.Uuid = ZERO_UUID
    error_code: s.Int16 = 0
    error_message: s.NullableString = None


@s.response(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
