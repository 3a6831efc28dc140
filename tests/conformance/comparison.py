"""What differs between our response and a genuine broker's to the same request.

Lists are compared in order, except those in UNORDERED. A message must be there exactly when genuine Kafka
has one, except for the errors in MESSAGES_OF_OURS, and must have its words, except for those in OWN_WORDS.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey

ZERO_UUID = uuid.UUID(int=0)

_BY_PARTITION: Final = "a Scala Map by topic and partition"
_REFUSED_FIRST: Final = "the refused partitions, then a Scala Map of the others by topic and partition"
_ALL_OR_NONE: Final = "a Scala Map of errors when one of the partitions is refused; otherwise as requested"
_CONFIGS: Final = "a Scala Map by name"
_ACLS: Final = "a Scala Set"

UNORDERED: Final[dict[tuple[ApiKey, str], str]] = {
    (ApiKey.PRODUCE, "responses"): _BY_PARTITION,
    (ApiKey.PRODUCE, "partition_responses"): _BY_PARTITION,
    (ApiKey.METADATA, "topics"): "a Scala Set of the names, those that exist first",
    (ApiKey.METADATA, "partitions"): "a Scala LongMap by partition",
    (ApiKey.OFFSET_COMMIT, "topics"): _REFUSED_FIRST,
    (ApiKey.OFFSET_COMMIT, "partitions"): _REFUSED_FIRST,
    (ApiKey.OFFSET_FETCH, "topics"): _BY_PARTITION,
    (ApiKey.OFFSET_FETCH, "partitions"): _BY_PARTITION,
    (ApiKey.JOIN_GROUP, "members"): "a Scala Map by member id",
    (ApiKey.DESCRIBE_GROUPS, "members"): "a Scala Map by member id",
    (ApiKey.LIST_GROUPS, "groups"): "a Java ConcurrentHashMap by group",
    (ApiKey.DELETE_GROUPS, "results"): "a Scala Map by group",
    (ApiKey.CREATE_TOPICS, "configs"): _CONFIGS,
    (ApiKey.DELETE_RECORDS, "topics"): _BY_PARTITION,
    (ApiKey.DELETE_RECORDS, "partitions"): _BY_PARTITION,
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_topic_v3_and_below"): _ALL_OR_NONE,
    (ApiKey.ADD_PARTITIONS_TO_TXN, "topic_results"): _ALL_OR_NONE,
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_partition"): _ALL_OR_NONE,
    (ApiKey.WRITE_TXN_MARKERS, "markers"): "a Java ConcurrentHashMap by producer id",
    (ApiKey.WRITE_TXN_MARKERS, "topics"): _BY_PARTITION,
    (ApiKey.WRITE_TXN_MARKERS, "partitions"): _BY_PARTITION,
    (ApiKey.TXN_OFFSET_COMMIT, "topics"): _REFUSED_FIRST,
    (ApiKey.TXN_OFFSET_COMMIT, "partitions"): _REFUSED_FIRST,
    (ApiKey.DESCRIBE_ACLS, "resources"): _ACLS,
    (ApiKey.DESCRIBE_ACLS, "acls"): _ACLS,
    (ApiKey.DELETE_ACLS, "matching_acls"): _ACLS,
    (ApiKey.DESCRIBE_CONFIGS, "configs"): _CONFIGS,
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "results"): _BY_PARTITION,
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "partitions"): _BY_PARTITION,
    (ApiKey.DESCRIBE_LOG_DIRS, "topics"): "a Java ConcurrentHashMap by topic and partition",
    (ApiKey.DESCRIBE_LOG_DIRS, "partitions"): "a Java ConcurrentHashMap by topic and partition",
    (ApiKey.CREATE_PARTITIONS, "results"): "a Scala Map by topic",
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, "tokens"): "a Java ConcurrentHashMap by token id",
    (ApiKey.ELECT_LEADERS, "replica_election_results"): _BY_PARTITION,
    (ApiKey.ELECT_LEADERS, "partition_result"): _BY_PARTITION,
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "responses"): _BY_PARTITION,
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "partitions"): _BY_PARTITION,
    (ApiKey.OFFSET_DELETE, "topics"): _REFUSED_FIRST,
    (ApiKey.OFFSET_DELETE, "partitions"): _REFUSED_FIRST,
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "entries"): "a Scala Map by entity",
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "values"): "a Java Properties by key",
    (ApiKey.ALTER_CLIENT_QUOTAS, "entries"): "a Java HashMap by entity",
    (ApiKey.ALTER_CLIENT_QUOTAS, "entity"): "a Java HashMap by type",
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "results"): "a Scala Map by user",
    (ApiKey.UPDATE_FEATURES, "results"): "a Scala Map by feature",
}
"""Lists that genuine Kafka sends in the order of a hash map, by API and field, to the map."""

_SINCE_KRAFT: Final = "Kafka 4.1 has one, 3.9.1 with ZooKeeper has not"

_OF_THE_BATCH: Final = "says what is wrong with a malformed batch, for authors of clients"

MESSAGES_OF_OURS: Final[dict[tuple[ApiKey, int], str]] = {
    (ApiKey.PRODUCE, ErrorCode.CORRUPT_MESSAGE): _OF_THE_BATCH,
    (ApiKey.PRODUCE, ErrorCode.INVALID_RECORD): _OF_THE_BATCH,
    (ApiKey.DELETE_TOPICS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): _SINCE_KRAFT,
    (ApiKey.DELETE_TOPICS, ErrorCode.UNKNOWN_TOPIC_ID): _SINCE_KRAFT,
    (ApiKey.DELETE_TOPICS, ErrorCode.INVALID_REQUEST): _SINCE_KRAFT,
}
"""Errors whose message only our response has, by API and error code, to the reason."""

OWN_WORDS: Final = {
    r"This most likely occurs because of a request being malformed": "does not name the problem",
    r"Invalid magic found in record: ": "the same in our words",
    r"Record size -?\d+ is less than": "the same in our words",
    r"This server does not host this topic ID": "the same in our words",
    r"You may not specify both topic name and topic id": "the same in our words",
    r".*HashMap\(": "a Scala collection as it prints itself",
    r".*%20": "a name as it stands in ZooKeeper",
    r"Request Request\(": "a whole request as it prints itself",
    r"Unexpected node id. Expected \d+, but received \d+$": "names itself as the broker it did not expect",
}
"""Genuine Kafka's messages for which ours has other words, as patterns from their start, to the reason."""

_OWN_WORDS = re.compile("|".join(OWN_WORDS))
_TIME = re.compile(r"\d{13,}")


def whole_batches(records: bytes) -> bytes:
    """The records up to the last whole batch: a cut one at the end is legal, and clients ignore it."""
    end = 0
    while end + 12 <= len(records):
        after = end + 12 + int.from_bytes(records[end + 8 : end + 12], "big")
        if after > len(records):
            break
        end = after
    return records[:end]


def _without_times(message: str | None) -> str | None:
    return message if message is None else _TIME.sub("(time)", message)


_MASKS: dict[str, Callable[[Any], Any]] = {
    "topic_id": lambda value: value != ZERO_UUID,
    "cluster_id": lambda value: value is not None,
    "host": lambda value: bool(value),
    "port": lambda value: value > 0,
    "error_message": _without_times,
    "batch_index_error_message": _without_times,
    "log_dir": lambda value: bool(value),
    "total_bytes": lambda value: value > 0,
    "usable_bytes": lambda value: value > 0,
    "session_id": lambda value: value != 0,
    "producer_id": lambda value: value >= 0,
    "member_id": lambda value: bool(value),
    "leader": lambda value: bool(value),
    "client_host": lambda value: bool(value),
    "records": lambda value: value if value is None else whole_batches(value),
}
"""Ids and places that every broker chooses for itself: only whether they are there is compared. Messages lose
their times.
"""


def neutral(answer: Any, api_key: ApiKey, name: str = "") -> Any:
    """The answer without what brokers choose for themselves; `name` is its field's."""
    if name in _MASKS:
        return _MASKS[name](answer)
    if isinstance(answer, dict):
        return {field: neutral(value, api_key, field) for field, value in answer.items()}
    if isinstance(answer, list):
        return in_order([neutral(item, api_key) for item in answer], api_key, name)
    return answer


def in_order(items: list[Any], api_key: ApiKey, name: str) -> list[Any]:
    """The items of the list `name` as they came, or sorted where their order has no meaning."""
    return sorted(items, key=repr) if (api_key, name) in UNORDERED else items


def differences(ours: Any, genuine: Any, api_key: ApiKey, path: str = "") -> Iterator[str]:
    """Where two neutral answers differ, one line each."""
    if isinstance(ours, dict) and isinstance(genuine, dict):
        for field in genuine:
            if field != "error_message" or not _messages_may_differ(ours, genuine, api_key):
                yield from differences(ours.get(field), genuine[field], api_key, f"{path}.{field}")
    elif isinstance(ours, list) and isinstance(genuine, list) and len(ours) == len(genuine):
        for index, (mine, theirs) in enumerate(zip(ours, genuine, strict=True)):
            yield from differences(mine, theirs, api_key, f"{path}[{index}]")
    elif ours != genuine:
        yield f"{path}: ours {_short(ours)}, genuine {_short(genuine)}"


def _messages_may_differ(ours: Any, genuine: Any, api_key: ApiKey) -> bool:
    mine, theirs = ours.get("error_message"), genuine["error_message"]
    if not mine and not theirs and ours.get("error_code") == ErrorCode.NONE:
        return True  # null with KRaft, and empty with ZooKeeper, of some APIs
    if theirs is None:
        return (api_key, ours.get("error_code")) in MESSAGES_OF_OURS
    return bool(mine) and _OWN_WORDS.match(theirs) is not None


def _short(value: Any) -> str:
    text = f"{len(value)} bytes {value[:80].hex()}" if isinstance(value, bytes) else repr(value)
    return text if len(text) < 300 else f"{text[:300]}…"
