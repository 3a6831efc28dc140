"""Requests of a guest to every served API, for every kind of resource."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import CLUSTER_NAME, ResourceType
from tests.authorization.policies import Resource
from tests.conformance.batches import batch
from tests.conformance.differential import Pair, Side
from tests.conformance.wire import Plain
from tests.support.process import wait_until

TOPIC_CONFIG, BROKER_CONFIG, LOGGER_CONFIG, METRICS_CONFIG = 2, 4, 8, 16
NO_GROUP = "no-group"
_STALE_EPOCH = 0
_AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class Ask(NamedTuple):
    """A request, and the range of API versions that it applies to."""

    api_key: ApiKey
    request: Plain | Side
    low: int = 0
    high: int = 99
    what: str = ""
    neutral: Callable[[Any], Any] = lambda answer: answer
    """Removes differences between the brokers that have nothing to do with authorization."""


@dataclass
class Names:
    """Names of the resources that one round of requests uses, the same on both brokers."""

    topic: str
    other: str
    absent: str
    fresh: str
    automatic: str
    doomed: str
    doomed_too: str
    group: str
    other_group: str
    no_group: str
    transactional_id: str
    other_id: str
    ids: dict[str, dict[str, UUID]] = field(default_factory=dict)
    """Topic ids by topic and side."""
    identity: dict[str, Plain] = field(default_factory=dict)
    """The producer of `transactional_id`, by side."""

    def resources(self) -> list[Resource]:
        """Return the resources that a policy may grant permissions for."""
        topics = (
            self.topic,
            self.other,
            self.absent,
            self.fresh,
            self.automatic,
            self.doomed,
            self.doomed_too,
        )
        groups = (self.group, self.other_group, self.no_group)
        transactional_ids = (self.transactional_id, self.other_id)
        return [
            *(Resource(ResourceType.TOPIC, name) for name in topics),
            *(Resource(ResourceType.GROUP, name) for name in groups),
            *(Resource(ResourceType.TRANSACTIONAL_ID, name) for name in transactional_ids),
            Resource(ResourceType.CLUSTER, CLUSTER_NAME),
        ]


def prepare(admin: Pair) -> Names:
    """Create topics with records, groups with offsets and an open transaction on both brokers."""
    names = Names(
        topic=admin.topic(2),
        other=admin.topic(1),
        absent=admin.name("absent"),
        fresh=admin.name("fresh"),
        automatic=admin.name("automatic"),
        doomed=admin.topic(1),
        doomed_too=admin.topic(1),
        group=admin.name("group"),
        other_group=admin.name("group"),
        no_group=admin.name(NO_GROUP),
        transactional_id=admin.name("id"),
        other_id=admin.name("id"),
    )
    for topic in (names.topic, names.other, names.doomed_too):
        names.ids[topic] = admin.ids(topic)
    records = [{"name": topic, "partition_data": [{"index": 0, "records": batch(2)}]} for topic in names.ids]
    for answer in admin.both(ApiKey.PRODUCE, 8, {"acks": -1, "timeout_ms": 10_000, "topic_data": records}):
        assert _codes(answer) == {0}, answer
    for group in (names.group, names.other_group):
        _settled(admin, ApiKey.FIND_COORDINATOR, 3, {"key": group, "key_type": 0})
        _settled(admin, ApiKey.OFFSET_COMMIT, 7, _commit(names, group))
    identity = {"transactional_id": names.transactional_id, "transaction_timeout_ms": 60_000}
    _settled(admin, ApiKey.FIND_COORDINATOR, 3, {"key": names.transactional_id, "key_type": 1})
    given = _settled(admin, ApiKey.INIT_PRODUCER_ID, 4, identity)
    for side, answer in zip(admin.sides, given, strict=True):
        names.identity[side] = {key: answer[key] for key in ("producer_id", "producer_epoch")}
    _settled(
        admin, ApiKey.ADD_PARTITIONS_TO_TXN, 3, _to_transaction(names, names.transactional_id, [names.topic])
    )
    return names


def _settled(admin: Pair, api_key: ApiKey, version: int, request: Plain | Side) -> list[Plain]:
    """Repeat a request until the coordinators are available."""
    answers: list[Plain] = []

    def answered() -> bool:
        answers[:] = admin.both(api_key, version, request)
        codes = {code for answer in answers for code in _codes(answer)}
        assert codes <= {0} | _AGAIN, answers
        return codes == {0}

    wait_until(answered, 30, api_key.name)
    return answers


def _codes(answer: Any) -> set[int]:
    return set(codes_in(answer))


def codes_in(answer: Any) -> Iterator[int]:
    """Yield every error code of a response."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name.endswith("error_code"):
                yield value
            else:
                yield from codes_in(value)
    elif isinstance(answer, list):
        for item in answer:
            yield from codes_in(item)


def _commit(names: Names, group: str, topics: tuple[str, ...] = ()) -> Plain:
    partitions = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": "m"}]
    wanted = topics or (names.topic, names.other)
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": topic, "partitions": partitions} for topic in wanted],
    }


def _to_transaction(names: Names, transactional_id: str, topics: list[str]) -> Side:
    def sided(side: str) -> Plain:
        identity = names.identity[side]
        return {
            "v3_and_below_transactional_id": transactional_id,
            "v3_and_below_producer_id": identity["producer_id"],
            "v3_and_below_producer_epoch": identity["producer_epoch"],
            "v3_and_below_topics": [{"name": topic, "partitions": [0]} for topic in topics],
        }

    return sided


def everything(names: Names) -> Iterator[Ask]:
    """Yield one round of requests. Requests that create or delete resources come last."""
    yield from _records(names)
    yield from _metadata(names)
    yield from _groups(names)
    yield from _transactions(names)
    yield from _administration(names)
    yield from _between_brokers(names)
    yield from _making_and_deleting(names)


def _records(names: Names) -> Iterator[Ask]:
    topics = (names.topic, names.other, names.absent)
    for acks in (-1, 1):
        data = [{"name": name, "partition_data": [{"index": 0, "records": batch(1)}]} for name in topics]
        yield Ask(ApiKey.PRODUCE, {"acks": acks, "timeout_ms": 9000, "topic_data": data}, low=3)
    unknown = {"acks": 2, "timeout_ms": 9000, "topic_data": data[:2]}
    yield Ask(ApiKey.PRODUCE, unknown, low=3, what="unknown acks")
    for transactional_id in (names.transactional_id, names.other_id, None):
        yield Ask(
            ApiKey.PRODUCE, _transactional_produce(names, transactional_id), low=3, what="transactional"
        )
    wanted = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 9999} for index in (0, 1)]
    limits = {"max_wait_ms": 20, "min_bytes": 1, "max_bytes": 99_999, "replica_id": -1}
    by_name = [{"topic": name, "partitions": wanted} for name in topics]
    yield Ask(ApiKey.FETCH, {**limits, "topics": by_name}, high=12, neutral=_by_partition)

    def by_id(side: str) -> Plain:
        known = [{"topic_id": ids[side], "partitions": wanted} for ids in names.ids.values()]
        return {**limits, "topics": [*known, {"topic_id": UUID(int=77), "partitions": wanted}]}

    yield Ask(ApiKey.FETCH, by_id, low=13, neutral=_by_partition)
    follower = {**limits, "replica_id": 7}
    as_follower = {**follower, "topics": by_name}
    yield Ask(ApiKey.FETCH, as_follower, high=12, what="follower", neutral=_by_partition)
    yield Ask(
        ApiKey.FETCH,
        lambda side: by_id(side) | {"replica_id": 7, "replica_state": {"replica_id": 7, "replica_epoch": -1}},
        low=13,
        high=15,  # Later versions report the current leader (KIP-951).
        what="follower",
        neutral=_by_partition,
    )
    places = [{"partition_index": index, "timestamp": -1} for index in (0, 1, 0)]
    for replica_id in (-1, 7):
        asked = {
            "replica_id": replica_id,
            "topics": [{"name": name, "partitions": places} for name in topics],
        }
        yield Ask(ApiKey.LIST_OFFSETS, asked)
    epochs = [{"partition": index, "leader_epoch": 0} for index in (0, 9)]
    yield Ask(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        {"replica_id": -1, "topics": [{"topic": name, "partitions": epochs} for name in topics]},
    )
    yield Ask(
        ApiKey.DESCRIBE_PRODUCERS,
        {"topics": [{"name": name, "partition_indexes": [1, 9]} for name in (*topics, "a/b", "")]},
    )


def _by_partition(answer: Any) -> Any:
    """Apache Kafka lists denied and unknown partitions in the order of the request, ours the denied last."""
    found = [
        {**item, "topic": topic["topic"], "topic_id": topic["topic_id"]}
        for topic in answer.pop("responses")
        for item in topic["partitions"]
    ]
    return answer | {"partitions": sorted(found, key=lambda item: item["error_code"])}


def _transactional_produce(names: Names, transactional_id: str | None) -> Side:
    def sided(side: str) -> Plain:
        identity = names.identity[side]
        records = batch(
            1,
            producer_id=identity["producer_id"],
            producer_epoch=identity["producer_epoch"],
            base_sequence=0,
            transactional=True,
        )
        topics = [
            {"name": names.other, "partition_data": [{"index": 0, "records": records}]},
            {"name": names.topic, "partition_data": [{"index": 1, "records": batch(1)}]},
        ]
        return {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 9000, "topic_data": topics}

    return sided


def _metadata(names: Names) -> Iterator[Ask]:
    operations = {
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
        "allow_auto_topic_creation": False,
    }
    topics = (names.topic, names.other, names.absent, "__consumer_offsets", "a/b")
    by_name = [{"name": name} for name in topics]
    yield Ask(ApiKey.METADATA, {"topics": by_name, **operations}, low=4)
    yield Ask(ApiKey.METADATA, {"topics": by_name, "allow_auto_topic_creation": False}, low=4)
    yield Ask(ApiKey.METADATA, {"topics": None, **operations}, low=1)
    yield Ask(ApiKey.METADATA, {"topics": []}, high=0)

    def by_id(side: str) -> Plain:
        ids = [names.ids[names.topic][side], names.ids[names.other][side], UUID(int=77)]
        return {"topics": [{"topic_id": one, "name": None} for one in ids], **operations}

    yield Ask(ApiKey.METADATA, by_id, low=12)
    for asked in (True, False):
        yield Ask(ApiKey.DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": asked})
    for kind, keys in (
        (0, (names.group, names.other_group, names.no_group)),
        (1, (names.transactional_id, names.other_id)),
    ):
        yield Ask(ApiKey.FIND_COORDINATOR, {"key_type": kind, "coordinator_keys": list(keys)}, low=4)
        for key in keys:
            yield Ask(ApiKey.FIND_COORDINATOR, {"key_type": kind, "key": key}, low=1, high=3)
    yield Ask(ApiKey.FIND_COORDINATOR, {"key": names.group}, high=0)


def _groups(names: Names) -> Iterator[Ask]:
    topics = (names.topic, names.other, names.absent)
    for group in (names.group, names.no_group):
        yield Ask(ApiKey.OFFSET_COMMIT, _commit(names, group, topics))
        positions = [{"name": topic, "partition_indexes": [0, 1]} for topic in topics]
        wanted: Plain = {"group_id": group, "topics": positions}
        yield Ask(ApiKey.OFFSET_FETCH, wanted, high=0)
        yield Ask(ApiKey.OFFSET_FETCH, wanted, low=1, high=1, neutral=_without_denied_groups)
        yield Ask(ApiKey.OFFSET_FETCH, wanted, low=2, high=7)
        yield Ask(ApiKey.OFFSET_FETCH, {"group_id": group, "topics": None}, low=2, high=7)
        protocols = [{"name": "p", "metadata": b""}]
        yield Ask(
            ApiKey.JOIN_GROUP,
            {
                "group_id": group,
                "session_timeout_ms": 600_000,
                "rebalance_timeout_ms": 10_000,
                "member_id": "",
                "protocol_type": "consumer",
                "protocols": protocols,
            },
            low=4,
        )
        member = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
        yield Ask(ApiKey.SYNC_GROUP, {**member, "protocol_type": "consumer", "protocol_name": "p"})
        yield Ask(ApiKey.SYNC_GROUP, member, low=5, what="without protocol")
        yield Ask(ApiKey.HEARTBEAT, member)
        yield Ask(ApiKey.LEAVE_GROUP, {"group_id": group, "member_id": "nobody"}, high=2)
        leaving = [{"member_id": "nobody", "group_instance_id": None}]
        yield Ask(ApiKey.LEAVE_GROUP, {"group_id": group, "members": leaving}, low=3)
    several = [
        {"group_id": group, "topics": wanted}
        for group in (names.group, names.other_group, names.no_group)
        for wanted in ([{"name": topic, "partition_indexes": [0]} for topic in topics], None)
    ]
    for part in (several[::2], several[1::2]):
        yield Ask(ApiKey.OFFSET_FETCH, {"groups": part, "require_stable": False}, low=8)
    groups = [names.group, names.other_group, names.no_group]
    for asked in (True, False):
        yield Ask(ApiKey.DESCRIBE_GROUPS, {"groups": groups, "include_authorized_operations": asked})
    yield Ask(ApiKey.LIST_GROUPS, {}, neutral=_without_empty_groups)


def _without_denied_groups(answer: Any) -> Any:
    """Apache Kafka omits denied groups from version 1 responses, as if they had no offsets. Our broker
    returns the error for each partition, as in version 0."""
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    answer["topics"] = [topic for topic in answer["topics"] if set(codes_in(topic)) != {code}]
    return answer


def _without_empty_groups(answer: Any) -> Any:
    """When any topic is deleted, Apache Kafka removes groups that only a member without an id has joined."""
    answer["groups"] = [item for item in answer["groups"] if not item["group_id"].startswith(NO_GROUP)]
    return answer


def _transactions(names: Names) -> Iterator[Ask]:
    topics = [names.topic, names.other]
    ids = (names.transactional_id, names.other_id)

    def of(side: str, transactional_id: str, **more: Any) -> Plain:
        return {"transactional_id": transactional_id, **names.identity[side], **more}

    yield Ask(ApiKey.DESCRIBE_TRANSACTIONS, {"transactional_ids": list(ids)}, neutral=_without_start)
    yield Ask(ApiKey.LIST_TRANSACTIONS, {})
    yield Ask(ApiKey.LIST_TRANSACTIONS, {"state_filters": ["Ongoing", "Nonsense"]})
    for one in ids:
        for some in (topics, [*topics, names.absent], [names.topic, "__consumer_offsets"]):
            yield Ask(ApiKey.ADD_PARTITIONS_TO_TXN, _to_transaction(names, one, some), high=3)
        for group in (names.group, names.other_group):
            yield Ask(
                ApiKey.ADD_OFFSETS_TO_TXN,
                lambda side, one=one, group=group: of(side, one, group_id=group),  # type: ignore[misc]
            )
            offsets = _commit(names, group, (*topics, names.absent))["topics"]
            yield Ask(
                ApiKey.TXN_OFFSET_COMMIT,
                lambda side, one=one, group=group, offsets=offsets: of(  # type: ignore[misc]
                    side, one, group_id=group, topics=offsets
                ),
            )
    for verify_only in (True, False):
        yield Ask(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            lambda side, only=verify_only: {  # type: ignore[misc]
                "transactions": [
                    of(
                        side,
                        names.transactional_id,
                        verify_only=only,
                        topics=[{"name": name, "partitions": [0]} for name in topics],
                    )
                ]
            },
            low=4,
        )
    yield Ask(
        ApiKey.WRITE_TXN_MARKERS,
        {
            "markers": [
                {
                    "producer_id": 77,
                    "producer_epoch": 0,
                    "transaction_result": True,
                    "coordinator_epoch": 0,
                    "topics": [{"name": names.absent, "partition_indexes": [0]}],
                }
            ]
        },
    )
    for one in reversed(ids):
        yield Ask(ApiKey.END_TXN, lambda side, one=one: of(side, one, committed=True))  # type: ignore[misc]
    yield Ask(ApiKey.INIT_PRODUCER_ID, {"transactional_id": None, "transaction_timeout_ms": 1000})
    for transactional_id in ("", names.other_id):
        yield Ask(
            ApiKey.INIT_PRODUCER_ID,
            {"transactional_id": transactional_id, "transaction_timeout_ms": 10_000},
        )
    yield Ask(
        ApiKey.INIT_PRODUCER_ID,
        {"transactional_id": None, "transaction_timeout_ms": 1000, "producer_id": 1, "producer_epoch": -1},
        low=3,
    )


def _without_start(answer: Any) -> Any:
    for state in answer["transaction_states"]:
        assert abs(state["transaction_start_time_ms"] - time.time() * 1000) < 600_000 or (
            state["transaction_start_time_ms"] <= 0
        )
        state["transaction_start_time_ms"] = state["transaction_start_time_ms"] > 0
    return answer


def _administration(names: Names) -> Iterator[Ask]:
    keys = ["retention.ms", "num.io.threads"]
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        for kind, name in (
            (TOPIC_CONFIG, names.topic),
            (TOPIC_CONFIG, names.other),
            (TOPIC_CONFIG, names.absent),
            (BROKER_CONFIG, "1"),
            (BROKER_CONFIG, ""),
            (LOGGER_CONFIG, "x"),
        )
    ]
    yield Ask(ApiKey.DESCRIBE_CONFIGS, {"resources": resources})
    invalid = {"resource_type": TOPIC_CONFIG, "resource_name": "a/b", "configuration_keys": None}
    yield Ask(ApiKey.DESCRIBE_CONFIGS, {"resources": [invalid]})
    for kind, name, config in (
        (TOPIC_CONFIG, names.topic, "retention.ms"),
        (TOPIC_CONFIG, names.absent, "retention.ms"),
        (TOPIC_CONFIG, names.other, "no.such.setting"),
        (BROKER_CONFIG, "", "log.retention.ms"),
        (BROKER_CONFIG, "77", "log.retention.ms"),
        (BROKER_CONFIG, "", "broker.id"),
        (LOGGER_CONFIG, "1", "no.such.logger"),
    ):
        for value in ("INFO" if kind == LOGGER_CONFIG else "123456", None):
            setting = {"name": config, "value": value}
            resource = {"resource_type": kind, "resource_name": name, "configs": [setting]}
            yield Ask(ApiKey.ALTER_CONFIGS, {"resources": [resource], "validate_only": True})
            resource = {**resource, "configs": [{**setting, "config_operation": 0}]}
            yield Ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [resource], "validate_only": True})
    setting = {"name": "retention.ms", "value": "5"}
    for some in ((names.topic, names.other), (names.other, names.absent)):
        several = [
            {"resource_type": TOPIC_CONFIG, "resource_name": name, "configs": [setting]} for name in some
        ]
        yield Ask(ApiKey.ALTER_CONFIGS, {"resources": several, "validate_only": True})
    twice = {"resource_type": TOPIC_CONFIG, "resource_name": names.topic, "configs": [setting, setting]}
    yield Ask(ApiKey.ALTER_CONFIGS, {"resources": [twice], "validate_only": True}, what="a setting twice")
    yield Ask(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        {"dirs": [{"path": "/no/such/folder", "topics": [{"name": names.topic, "partitions": [0]}]}]},
    )
    yield Ask(ApiKey.DESCRIBE_LOG_DIRS, {"topics": [{"topic": names.other, "partitions": [0]}]})
    for topics in ([{"topic": names.topic, "partitions": [0, 9]}], []):
        asked: Plain = {"election_type": 0, "topic_partitions": topics, "timeout_ms": 9000}
        yield Ask(ApiKey.ELECT_LEADERS, asked)
    moved = [{"name": names.topic, "partitions": [{"partition_index": 0, "replicas": [7]}]}]
    yield Ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, {"topics": moved, "timeout_ms": 9000})
    listed = [{"name": names.topic, "partition_indexes": [0]}]
    for wanted in (listed, None):
        yield Ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, {"topics": wanted, "timeout_ms": 9000})
    yield Ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False})
    quota = {
        "entity": [{"entity_type": "user", "entity_name": "u"}],
        "ops": [{"key": "producer_byte_rate", "value": 5.0, "remove": False}],
    }
    yield Ask(ApiKey.ALTER_CLIENT_QUOTAS, {"entries": [quota], "validate_only": True})
    # The request names a user: if a request for all users is denied, Apache Kafka fails and never responds.
    yield Ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": [{"name": "nobody"}]})
    deletion = {"name": "nobody", "mechanism": 1}
    yield Ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": [deletion], "upsertions": []})
    feature = {"feature": "f", "max_version_level": 1, "allow_downgrade": False, "upgrade_type": 1}
    yield Ask(ApiKey.UPDATE_FEATURES, {"feature_updates": [feature], "timeout_ms": 9000})
    yield Ask(ApiKey.CREATE_DELEGATION_TOKEN, {"renewers": [], "max_lifetime_ms": 1000})
    yield Ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, {"owners": None})
    yield Ask(ApiKey.RENEW_DELEGATION_TOKEN, {"hmac": b"1", "renew_period_ms": 1})
    yield Ask(ApiKey.EXPIRE_DELEGATION_TOKEN, {"hmac": b"1", "expiry_time_period_ms": 1})


def _between_brokers(names: Names) -> Iterator[Ask]:
    """Yield inter-broker requests with stale epochs, so that authorized requests change nothing."""
    controller = {"controller_id": 1, "controller_epoch": -1, "broker_epoch": _STALE_EPOCH}
    state = {"partition_index": 0, "controller_epoch": 0, "leader": 1, "isr": [1], "replicas": [1]}
    yield Ask(
        ApiKey.LEADER_AND_ISR,
        {
            **controller,
            "ungrouped_partition_states": [{**state, "topic_name": names.topic}],
            "topic_states": [{"topic_name": names.topic, "partition_states": [state]}],
        },
    )
    yield Ask(
        ApiKey.STOP_REPLICA,
        {
            **controller,
            "ungrouped_partitions": [{"topic_name": names.topic, "partition_index": 0}],
            "topics": [{"name": names.topic, "partition_indexes": [0]}],
            "topic_states": [{"topic_name": names.topic, "partition_states": [{"partition_index": 0}]}],
        },
    )
    yield Ask(ApiKey.UPDATE_METADATA, controller, low=5)
    yield Ask(ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": 77, "broker_epoch": _STALE_EPOCH})
    yield Ask(ApiKey.ALTER_PARTITION, {"broker_id": 77, "broker_epoch": _STALE_EPOCH, "topics": []})
    yield Ask(ApiKey.ALLOCATE_PRODUCER_IDS, {"broker_id": 77, "broker_epoch": _STALE_EPOCH})


def _making_and_deleting(names: Names) -> Iterator[Ask]:
    topics = (names.topic, names.other, names.absent)
    counts = [{"name": name, "count": 3, "assignments": None} for name in topics]
    twice = [*counts, counts[0]]
    for some in (counts, twice):
        asked = {"topics": some, "validate_only": True, "timeout_ms": 9000}
        yield Ask(ApiKey.CREATE_PARTITIONS, asked)
    for name, count in ((names.topic, 1), (names.fresh, 1), (names.absent, 0)):
        made = [{"name": name, "num_partitions": count, "replication_factor": 1, "configs": []}]
        yield Ask(ApiKey.CREATE_TOPICS, {"topics": made, "validate_only": True, "timeout_ms": 9000}, low=1)
    several = [
        {"name": name, "num_partitions": 1, "replication_factor": 1}
        for name in (names.topic, names.fresh, names.absent, names.absent, "__cluster_metadata")
    ]
    yield Ask(ApiKey.CREATE_TOPICS, {"topics": several, "validate_only": True, "timeout_ms": 9000}, low=1)
    yield Ask(
        ApiKey.METADATA,
        {"topics": [{"name": names.automatic}], "allow_auto_topic_creation": True},
        neutral=_made_or_denied,
    )
    deleted = [{"partition_index": 0, "offset": 1}, {"partition_index": 9, "offset": 1}]
    yield Ask(
        ApiKey.DELETE_RECORDS,
        {"topics": [{"name": name, "partitions": deleted} for name in topics], "timeout_ms": 9000},
    )
    forgotten = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in topics]
    for group in (names.group, names.no_group):
        yield Ask(ApiKey.OFFSET_DELETE, {"group_id": group, "topics": forgotten})
    groups = [names.other_group, names.no_group, names.no_group]
    yield Ask(ApiKey.DELETE_GROUPS, {"groups_names": groups})
    made = [{"name": names.fresh, "num_partitions": 1, "replication_factor": 1}]
    yield Ask(ApiKey.CREATE_TOPICS, {"topics": made, "timeout_ms": 15_000})
    by_name = [names.doomed, names.absent]
    yield Ask(ApiKey.DELETE_TOPICS, {"topic_names": by_name, "timeout_ms": 15_000}, high=5)
    yield Ask(
        ApiKey.DELETE_TOPICS,
        {"topics": [{"name": name} for name in by_name], "timeout_ms": 15_000},
        low=6,
    )
    yield Ask(
        ApiKey.DELETE_TOPICS,
        lambda side: {
            "topics": [
                {"name": None, "topic_id": one} for one in (names.ids[names.doomed_too][side], UUID(int=77))
            ],
            "timeout_ms": 15_000,
        },
        low=6,
        what="by id",
    )


def _made_or_denied(answer: Any) -> Any:
    """Accept temporary errors while the broker is creating a topic."""
    (topic,) = answer["topics"]
    waits = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic["error_code"] in waits:
        topic["error_code"] = 0
    if topic["error_code"] == 0:
        topic["partitions"], topic["topic_id"] = [], None
    return answer
