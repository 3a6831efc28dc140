"""DeleteTopics (API key 20): delete topics by name or id."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Int16,
    Int32,
    NullableString,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class DeleteTopicState:
    """A topic by its name or, with a null name, by its id."""

    name: NullableString = field("6+", default=None)
    topic_id: Uuid = field("6+", default=ZERO_UUID)


@request(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsRequest:
    """Names until version 5, names or ids since version 6 (KIP-516)."""

    topics: list[DeleteTopicState] = field("6+", default=[])
    topic_names: list[String] = field("0-5", default=[])
    timeout_ms: Int32 = 0


@struct
class DeletableTopicResult:
    """What became of one topic; its name is null when an unknown id was asked for."""

    name: NullableString = field(default="", nullable="6+")
    topic_id: Uuid = field("6+", default=ZERO_UUID)
    error_code: Int16 = 0
    error_message: NullableString = field("5+", default=None)


@response(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsResponse:
    """One result per topic."""

    throttle_time_ms: Int32 = field("1+", default=0)
    responses: list[DeletableTopicResult] = []
