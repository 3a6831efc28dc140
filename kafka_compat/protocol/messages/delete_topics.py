"""DeleteTopics (API key 20): delete topics by name or ID."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class DeleteTopicState:
    """A topic's name or, if the name is null, its ID."""

    name: s.NullableString = s.field("6+", default=None)
    topic_id: s.Uuid = s.field("6+", default=ZERO_UUID)


@s.request(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsRequest:
    """Versions 0 to 5 contain topic names. Version 6 and later contain names or IDs (KIP-516)."""

    topics: list[DeleteTopicState] = s.field("6+", default=[])
    topic_names: list[s.String] = s.field("0-5", default=[])
    timeout_ms: s.Int32 = 0


@s.struct
class DeletableTopicResult:
    """The result for one topic. The name is null if the request contained an unknown ID."""

    name: s.NullableString = s.field(default="", nullable="6+")
    topic_id: s.Uuid = s.field("6+", default=ZERO_UUID)
    error_code: s.Int16 = 0
    error_message: s.NullableString = s.field("5+", default=None)


@s.response(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    responses: list[DeletableTopicResult] = []
