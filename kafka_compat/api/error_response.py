"""Error responses to requests that failed as a whole, for every served API and version.

Each response is identical to that of Kafka's `AbstractRequest.getErrorResponse`. If the response has a
top-level error code, that code is set. If it has one entry per topic, partition, group or resource, each
entry named in the request reports the error. `ECHOES` maps the arrays of requests to arrays of responses;
all other responses have their own functions. A test compares all responses with those of Kafka's classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import response_class
from kafka_compat.protocol.schema import ArrayOf, Message, fields_of

NOTHING: Mapping[str, Any] = {}
ITSELF = ""
"""Field name that stands for the request element itself, if the element is a plain value."""


class Echo(NamedTuple):
    """A response array, with one element for each request element. `of` is the name of the request array, or
    a function that returns its elements.

    `fields` maps each copied field of the response to a field of the request. `unlike` contains values that
    differ from the defaults of the response class. `low` and `high` are the first and last versions that have
    the array.
    """

    into: str
    of: str | Callable[[Any], Iterable[Any]]
    fields: Mapping[str, str] = NOTHING
    inner: Echo | None = None
    unlike: Mapping[str, Any] = NOTHING
    low: int = 0
    high: int = 0x7FFF


class _Replica(NamedTuple):
    topic_name: str
    partition_index: int


def _to_lead_or_follow(request: Any) -> Iterable[_Replica]:
    for state in request.ungrouped_partition_states:
        yield _Replica(state.topic_name, state.partition_index)
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield _Replica(topic.topic_name, state.partition_index)


def _to_stop(request: Any) -> Iterable[_Replica]:
    for partition in request.ungrouped_partitions:
        yield _Replica(partition.topic_name, partition.partition_index)
    for topic in request.topics:
        for index in topic.partition_indexes:
            yield _Replica(topic.name, index)
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield _Replica(topic.topic_name, state.partition_index)


def _topics_to_move(request: Any) -> Iterable[Any]:
    return (topic for wanted in request.dirs for topic in wanted.topics)


def _users(request: Any) -> Iterable[str]:
    return sorted({item.name for item in (*request.deletions, *request.upsertions)})


_NAMED = {"name": "name"}
_INDEXED = {"partition_index": "partition_index"}
_REPLICA = {"topic_name": "topic_name", "partition_index": "partition_index"}
_INDEX = {"partition_index": ITSELF}
_RESOURCE = {"resource_type": "resource_type", "resource_name": "resource_name"}
_NO_RECORDS = b""
_TOPICS_OF_INDEXED = Echo("topics", "topics", _NAMED, Echo("partitions", "partitions", _INDEXED))
_TOPICS_WITH_IDS = Echo(
    "topics", "topics", {"name": "name", "topic_id": "topic_id"}, Echo("partitions", "partitions", _INDEXED)
)

_SHARE_STATE = (
    Echo(
        "results",
        "topics",
        {"topic_id": "topic_id"},
        Echo("partitions", "partitions", {"partition": "partition"}),
    ),
)

ECHOES: dict[ApiKey, tuple[Echo, ...]] = {
    ApiKey.PRODUCE: (
        Echo(
            "responses",
            "topic_data",
            {"name": "name", "topic_id": "topic_id"},
            Echo("partition_responses", "partition_data", {"index": "index"}, unlike={"base_offset": -1}),
        ),
    ),
    ApiKey.FETCH: (
        Echo(
            "responses",
            "topics",
            {"topic": "topic", "topic_id": "topic_id"},
            Echo(
                "partitions",
                "partitions",
                {"partition_index": "partition"},
                unlike={"high_watermark": -1, "records": _NO_RECORDS},
            ),
            high=12,
        ),
    ),
    ApiKey.LIST_OFFSETS: (_TOPICS_OF_INDEXED,),
    ApiKey.METADATA: (Echo("topics", "topics", {"name": "name", "topic_id": "topic_id"}),),
    ApiKey.OFFSET_COMMIT: (_TOPICS_WITH_IDS,),
    ApiKey.OFFSET_FETCH: (
        Echo(
            "topics",
            "topics",
            _NAMED,
            Echo("partitions", "partition_indexes", _INDEX, unlike={"committed_offset": -1}),
            high=1,
        ),
        Echo("groups", "groups", {"group_id": "group_id"}, low=8),
    ),
    ApiKey.FIND_COORDINATOR: (
        Echo("coordinators", "coordinator_keys", {"key": ITSELF}, unlike={"node_id": -1, "port": -1}, low=4),
    ),
    ApiKey.DESCRIBE_GROUPS: (Echo("groups", "groups", {"group_id": ITSELF}),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Echo("groups", "group_ids", {"group_id": ITSELF}),),
    ApiKey.CREATE_TOPICS: (Echo("topics", "topics", _NAMED),),
    ApiKey.DELETE_TOPICS: (
        Echo("responses", "topic_names", {"name": ITSELF}, high=5),
        Echo("responses", "topics", {"name": "name", "topic_id": "topic_id"}, low=6),
    ),
    ApiKey.DELETE_RECORDS: (
        Echo(
            "topics",
            "topics",
            _NAMED,
            Echo("partitions", "partitions", _INDEXED, unlike={"low_watermark": -1}),
        ),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        Echo(
            "topics",
            "topics",
            {"topic": "topic"},
            Echo("partitions", "partitions", {"partition": "partition"}),
        ),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Echo(
            "results_by_topic_v3_and_below",
            "v3_and_below_topics",
            _NAMED,
            Echo("results_by_partition", "partitions", _INDEX),
            high=3,
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        Echo(
            "markers",
            "markers",
            {"producer_id": "producer_id"},
            Echo("topics", "topics", _NAMED, Echo("partitions", "partition_indexes", _INDEX)),
        ),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (_TOPICS_WITH_IDS,),
    ApiKey.CREATE_ACLS: (Echo("results", "creations"),),
    ApiKey.DELETE_ACLS: (Echo("filter_results", "filters"),),
    ApiKey.DESCRIBE_CONFIGS: (Echo("results", "resources", _RESOURCE),),
    ApiKey.ALTER_CONFIGS: (Echo("responses", "resources", _RESOURCE),),
    ApiKey.CREATE_PARTITIONS: (Echo("results", "topics", _NAMED),),
    ApiKey.DELETE_GROUPS: (Echo("results", "groups_names", {"group_id": ITSELF}),),
    ApiKey.ELECT_LEADERS: (
        Echo(
            "replica_election_results",
            "topic_partitions",
            {"topic": "topic"},
            Echo("partition_result", "partitions", {"partition_id": ITSELF}),
        ),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Echo("responses", "resources", _RESOURCE),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        Echo("responses", "topics", _NAMED, Echo("partitions", "partitions", _INDEXED)),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (
        Echo("topics", "topics", _NAMED, Echo("partitions", "partition_indexes", _INDEX)),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: (
        Echo(
            "entries",
            "entries",
            inner=Echo("entity", "entity", {"entity_type": "entity_type", "entity_name": "entity_name"}),
        ),
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Echo("results", "users"),),
    ApiKey.DESCRIBE_PRODUCERS: (
        Echo("topics", "topics", _NAMED, Echo("partitions", "partition_indexes", _INDEX)),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Echo("transaction_states", "transactional_ids", {"transactional_id": ITSELF}),
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (Echo("topics", "topics", _NAMED),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        Echo("results", _topics_to_move, {"topic_name": "name"}, Echo("partitions", "partitions", _INDEX)),
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (Echo("results", _users, {"user": ITSELF}),),
    ApiKey.STOP_REPLICA: (Echo("partition_errors", _to_stop, _REPLICA),),
    ApiKey.LEADER_AND_ISR: (
        Echo("partition_errors", _to_lead_or_follow, _REPLICA, high=4),
        Echo(
            "topics",
            "topic_states",
            {"topic_id": "topic_id"},
            Echo("partition_errors", "partition_states", _INDEXED),
            low=5,
        ),
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: (Echo("groups", "group_ids", {"group_id": ITSELF}),),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (Echo("groups", "groups", {"group_id": "group_id"}),),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SHARE_STATE,
}
"""Maps each API to the arrays of its error response. APIs with only a top-level error code are not listed."""

_UNLIKE: dict[ApiKey, Mapping[str, Any]] = {
    ApiKey.FIND_COORDINATOR: {"node_id": -1, "port": -1},
    ApiKey.INIT_PRODUCER_ID: {"producer_epoch": -1},
    ApiKey.CREATE_DELEGATION_TOKEN: {
        "principal_type": "User",
        "principal_name": "ANONYMOUS",
        "token_requester_principal_type": "User",
        "token_requester_principal_name": "ANONYMOUS",
        "issue_timestamp_ms": -1,
        "expiry_timestamp_ms": -1,
        "max_timestamp_ms": -1,
    },
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"entries": None},
}
"""Top-level fields whose value in an error response differs from the default of the response class."""

_WITH_STANDARD_MESSAGE = frozenset(
    (
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.FIND_COORDINATOR,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    )
)
"""APIs that always send the error code's standard message, without details."""

_WITHOUT_MESSAGE = frozenset(
    (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.DELETE_GROUPS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_GROUP_HEARTBEAT,
    )
)

_WITHOUT_STANDARD_MESSAGE = frozenset(
    (
        ApiKey.ELECT_LEADERS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    )
)
"""APIs that omit a message that is only the code's standard text."""


def error_response(
    api_key: ApiKey, version: int, request: Any, code: ErrorCode, message: str = ""
) -> Message | None:
    """Return the response to `request` in which every entry reports the error `code`.

    `message` adds details to the error, except to UNKNOWN_SERVER_ERROR. Returns None if the request expects
    no response (acks=0); the caller must then close the connection.
    """
    if api_key is ApiKey.PRODUCE and request.acks == 0:
        return None
    text: str | None = None if code is ErrorCode.UNKNOWN_SERVER_ERROR else message or None
    if api_key in _WITH_STANDARD_MESSAGE or (api_key is ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS and not text):
        text = STANDARD_MESSAGES.get(code, code.name)
    elif api_key in _WITHOUT_MESSAGE or (
        api_key in _WITHOUT_STANDARD_MESSAGE and text == STANDARD_MESSAGES.get(code)
    ):
        text = None
    response = _failed(response_class(api_key), code, text)
    for name, value in _UNLIKE.get(api_key, NOTHING).items():
        setattr(response, name, value)
    for echo in ECHOES.get(api_key, ()):
        if echo.low <= version <= echo.high:
            setattr(response, echo.into, _echoed(type(response), echo, request, code, text))
    special = _SPECIAL.get(api_key)
    if special is not None:
        special(response, version, request)
    return response


def _failed(cls: type[Message], code: ErrorCode, text: str | None) -> Message:
    message = cls()
    for spec in fields_of(cls):
        if spec.name in ("error_code", "partition_error_code"):
            setattr(message, spec.name, code)
        elif spec.name == "error_message":
            setattr(message, spec.name, text)
    return message


def _echoed(cls: type[Message], echo: Echo, request: Any, code: ErrorCode, text: str | None) -> list[Message]:
    element = _element(cls, echo.into)
    answers = []
    source = getattr(request, echo.of) if isinstance(echo.of, str) else echo.of(request)
    for asked in source or ():
        answer = _failed(element, code, text)
        for name, known_as in echo.fields.items():
            setattr(answer, name, getattr(asked, known_as) if known_as else asked)
        for name, value in echo.unlike.items():
            setattr(answer, name, value)
        if echo.inner is not None:
            setattr(answer, echo.inner.into, _echoed(element, echo.inner, asked, code, text))
        answers.append(answer)
    return answers


def _element(cls: type[Message], name: str) -> type[Message]:
    for spec in fields_of(cls):
        if spec.name == name and isinstance(spec.type, ArrayOf) and isinstance(spec.type.element, type):
            return spec.type.element
    raise LookupError(f"{cls.__name__} has no array of structs {name}")


def _produce(response: Any, version: int, request: Any) -> None:
    response.responses = [topic for topic in response.responses if topic.partition_responses]


def _fetch(response: Any, version: int, request: Any) -> None:
    response.session_id = request.session_id


def _metadata(response: Any, version: int, request: Any) -> None:
    for topic in response.topics:
        if topic.name is None:
            topic.name = ""


def _join_group(response: Any, version: int, request: Any) -> None:
    if version >= 7:
        response.protocol_name = None


_SPECIAL: dict[ApiKey, Callable[[Any, int, Any], None]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.METADATA: _metadata,
    ApiKey.JOIN_GROUP: _join_group,
}
