"""Responses list their topics, partitions, groups and resources in the order of genuine Kafka 3.9.1's.

Each request names many things that exist, in no sorted order, and unknown ones among them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.differential import Pair, Side
from tests.conformance.group_requests import join, ready_group
from tests.conformance.record_requests import fill
from tests.conformance.transactional import Transactional
from tests.conformance.wire import Plain
from tests.support.process import wait_until

MIXED = (4, 0, 6, 2, 5, 1, 3)
PARTITIONS = (2, 0, 7, 1)
"""Of a topic that has three."""
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8


def mixed(names: list[str]) -> list[str]:
    """Seven names out of order."""
    return [names[place] for place in MIXED]


@pytest.fixture(scope="module")
def topics(our_address: str, genuine_address: str) -> Iterator[list[str]]:
    """Seven topics of three partitions, out of order, with one more that is unknown in the middle."""
    pair = Pair(our_address, genuine_address)
    names = [pair.topic(3) for _ in MIXED]
    for name in names:
        fill(pair, name, batch(3), batch(2))
        fill(pair, name, batch(3), partition=1)
    found = mixed(names)
    found.insert(3, pair.name("absent"))
    yield found
    pair.close()


def by_partition(topics: list[str], name: str = "name", **fields: Any) -> list[Plain]:
    """Every topic with PARTITIONS, each with these fields."""
    partitions = [{"partition_index": index, **fields} for index in PARTITIONS]
    return [{name: topic, "partitions": partitions} for topic in topics]


def by_index(topics: list[str], name: str = "name", indexes: str = "partition_indexes") -> list[Plain]:
    return [{name: topic, indexes: list(PARTITIONS)} for topic in topics]


def ids_of(pair: Pair, topics: list[str]) -> dict[str, dict[str, uuid.UUID]]:
    """By topic and side; an unknown topic has an id that no topic has."""
    nowhere = dict.fromkeys(pair.sides, uuid.UUID(int=77))
    return {name: nowhere if name.startswith("absent") else pair.ids(name) for name in topics}


def test_created_and_deleted_topics_are_returned_in_kafkas_order(pair: Pair) -> None:
    names = mixed([pair.name() for _ in MIXED])
    settings = ("retention.ms", "cleanup.policy", "flush.ms", "index.interval.bytes", "segment.bytes")
    values = ("60000", "compact", "5", "1024", "1048576")
    configs = [{"name": name, "value": value} for name, value in zip(settings, values, strict=True)]
    wanted = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    wanted[2]["num_partitions"], wanted[4]["name"] = 0, "a/b"
    wanted.append(wanted[1])
    checked = {"topics": wanted, "timeout_ms": 15_000, "validate_only": True}
    pair.same(ApiKey.CREATE_TOPICS, checked, pair.versions(ApiKey.CREATE_TOPICS, 1))
    made = [{**one, "configs": configs} for one in wanted]
    pair.same(ApiKey.CREATE_TOPICS, {"topics": made, "timeout_ms": 15_000}, (5,))
    counts = [{"name": name, "count": 2, "assignments": None} for name in names]
    counts[1]["count"] = 1
    counts.insert(3, {"name": pair.name("absent"), "count": 2, "assignments": None})
    more = {"topics": [*counts, counts[0]], "timeout_ms": 15_000}
    pair.same(ApiKey.CREATE_PARTITIONS, more | {"validate_only": True})
    pair.same(ApiKey.CREATE_PARTITIONS, more, (3,))
    names.insert(3, pair.name("absent"))
    pair.same(ApiKey.DELETE_TOPICS, {"topic_names": names, "timeout_ms": 15_000}, (5,))


def test_topics_deleted_by_id_are_returned_in_kafkas_order(pair: Pair) -> None:
    names = mixed([pair.topic() for _ in MIXED])
    ids = {name: pair.ids(name) for name in names}

    def by_id(side: str) -> Plain:
        return {"topics": [{"topic_id": ids[name][side]} for name in names], "timeout_ms": 15_000}

    pair.same(ApiKey.DELETE_TOPICS, by_id, (6,))


def test_topics_and_partitions_in_metadata_are_returned_in_kafkas_order(
    pair: Pair, topics: list[str]
) -> None:
    asked = [{"name": name} for name in [*topics[:5], "a/b", *topics[5:]]]
    request = {"topics": asked, "allow_auto_topic_creation": False}
    pair.same(ApiKey.METADATA, request, pair.versions(ApiKey.METADATA, 4))
    ids = ids_of(pair, topics)

    def by_id(side: str) -> Plain:
        return {"topics": [{"topic_id": ids[name][side], "name": None} for name in topics]}

    pair.same(ApiKey.METADATA, by_id, (12,))
    wide = pair.topic(20)
    pair.same(ApiKey.METADATA, {"topics": [{"name": wide}], "allow_auto_topic_creation": False})


def test_produced_partitions_are_returned_in_kafkas_order(pair: Pair, topics: list[str]) -> None:
    partitions = [{"index": index, "records": batch(1)} for index in PARTITIONS]
    data = [{"name": name, "partition_data": partitions} for name in topics]
    request = {"acks": -1, "timeout_ms": 10_000, "topic_data": data}
    pair.same(ApiKey.PRODUCE, request, pair.versions(ApiKey.PRODUCE, 3))


def fetched(topics: list[str]) -> list[Plain]:
    partitions = [
        {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in PARTITIONS
    ]
    return [{"topic": topic, "partitions": partitions} for topic in topics]


def test_fetched_partitions_are_returned_in_kafkas_order(pair: Pair, topics: list[str]) -> None:
    request = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 24, "session_epoch": -1}
    pair.same(ApiKey.FETCH, request | {"topics": fetched(topics)}, pair.versions(ApiKey.FETCH, 4, 12))
    ids = ids_of(pair, topics)

    def by_id(side: str) -> Plain:
        named = [{**wanted, "topic_id": ids[wanted["topic"]][side]} for wanted in fetched(topics)]
        return request | {"topics": named}

    pair.same(ApiKey.FETCH, by_id, pair.versions(ApiKey.FETCH, 13))


@pytest.mark.parametrize("version", [7, 12])
def test_partitions_of_a_fetch_session_are_returned_in_kafkas_order(pair: Pair, version: int) -> None:
    names = mixed([pair.topic(3) for _ in MIXED])
    base = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 24}
    full = {**base, "session_id": 0, "session_epoch": 0, "topics": fetched(names)}
    opened = pair.both(ApiKey.FETCH, version, full)
    ids = {side: answer["session_id"] for side, answer in zip(pair.sides, opened, strict=True)}
    epoch = 0

    def again(wanted: list[Plain], forgotten: list[Plain]) -> None:
        nonlocal epoch
        epoch += 1
        request = {**base, "session_epoch": epoch, "topics": wanted, "forgotten_topics_data": forgotten}
        pair.same(ApiKey.FETCH, lambda side: {**request, "session_id": ids[side]}, (version,))

    again([], [])
    for places in ((1, 4, 2), (6, 0), (3, 5, 1)):
        for place in places:
            fill(pair, names[place], batch(1), partition=place % 3)
        again([], [])
        again([], [])
    for number, name in enumerate(names):
        fill(pair, name, batch(1), partition=number % 3)
    again(fetched(names[2:4]), by_index(names[4:5], "topic", "partitions"))
    again([], [])


def test_listed_offsets_are_returned_in_kafkas_order(pair: Pair, topics: list[str]) -> None:
    wanted = by_partition(topics, timestamp=-1, max_num_offsets=3)
    pair.same(ApiKey.LIST_OFFSETS, {"replica_id": -1, "topics": wanted})
    epochs = [{"partition": index, "leader_epoch": 0} for index in PARTITIONS]
    by_epoch = [{"topic": topic, "partitions": epochs} for topic in topics]
    pair.same(ApiKey.OFFSET_FOR_LEADER_EPOCH, {"replica_id": -1, "topics": by_epoch})
    producers = {"topics": by_index([*topics[:5], "a/b", *topics[5:]])}
    pair.same(ApiKey.DESCRIBE_PRODUCERS, producers)


def test_partitions_of_a_delete_records_request_are_returned_in_kafkas_order(
    pair: Pair, topics: list[str]
) -> None:
    request = {"topics": by_partition(topics, offset=0), "timeout_ms": 5000}
    pair.same(ApiKey.DELETE_RECORDS, request)


def test_log_directories_are_returned_in_kafkas_order(pair: Pair, topics: list[str]) -> None:
    asked = [{"topic": topic, "partitions": list(PARTITIONS)} for topic in topics]
    pair.same(ApiKey.DESCRIBE_LOG_DIRS, {"topics": asked})
    moved = [{"name": topic, "partitions": list(PARTITIONS)} for topic in topics]
    directories = [{"path": path, "topics": moved} for path in ("/no/such/b", "/no/such/a")]
    pair.same(ApiKey.ALTER_REPLICA_LOG_DIRS, {"dirs": directories})


def test_committed_offsets_are_returned_in_kafkas_order(pair: Pair, topics: list[str]) -> None:
    for version in pair.versions(ApiKey.OFFSET_COMMIT, 1):
        group = ready_group(pair)
        committed = by_partition(topics, committed_offset=1, committed_metadata="m")
        pair.same(ApiKey.OFFSET_COMMIT, {"group_id": group, "topics": committed}, (version,))
    wanted = by_index(topics)
    one: Plain = {"group_id": group, "require_stable": False}
    for asked in (wanted, None):
        versions = pair.versions(ApiKey.OFFSET_FETCH, 1 if asked else 2, 7)
        pair.same(ApiKey.OFFSET_FETCH, one | {"topics": asked}, versions)
    groups = [ready_group(pair) for _ in MIXED]
    versions = pair.versions(ApiKey.OFFSET_FETCH, 8)
    for asked in (wanted, None):
        several = [{"group_id": name, "topics": asked} for name in mixed([*groups[1:], group])]
        pair.same(ApiKey.OFFSET_FETCH, {"groups": several, "require_stable": False}, versions)
    deleted = [{"partition_index": index} for index in PARTITIONS]
    forgotten = [{"name": topic, "partitions": deleted} for topic in topics]
    pair.same(ApiKey.OFFSET_DELETE, {"group_id": group, "topics": forgotten})


def test_groups_are_returned_in_kafkas_order(pair: Pair) -> None:
    groups = [ready_group(pair) for _ in MIXED]
    for group in groups[:4]:
        joined = pair.both(ApiKey.JOIN_GROUP, 3, join(group))
        assert [answer["error_code"] for answer in joined] == [0, 0]
    names = mixed(groups)
    names.insert(3, "")
    pair.same(ApiKey.DESCRIBE_GROUPS, {"groups": names})
    pair.same(ApiKey.FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": names}, (4, 5, 6))
    strangers = [{"member_id": name, "group_instance_id": None} for name in names]
    pair.same(ApiKey.LEAVE_GROUP, {"group_id": groups[0], "members": strangers}, (3, 4, 5))
    pair.same(ApiKey.DELETE_GROUPS, {"groups_names": names})


def await_coordinators(pair: Pair, ids: list[str]) -> None:
    """Wait until no transactional id's part of the transaction log is still loaded."""

    def loaded() -> bool:
        answers = pair.both(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ids})
        return all(state["error_code"] == 105 for answer in answers for state in answer["transaction_states"])

    wait_until(loaded, 30, "the transaction coordinators")


def test_partitions_of_a_transaction_are_returned_in_kafkas_order(pair: Pair, topics: list[str]) -> None:
    one = Transactional(pair)
    group = ready_group(pair)
    known = [name for name in topics if not name.startswith("absent")]
    one.init()
    ids = mixed([f"{one.id}-{number}" for number in MIXED])
    await_coordinators(pair, ids)
    pair.same(ApiKey.DESCRIBE_TRANSACTIONS, {"transactional_ids": ids})
    offsets = by_partition(topics, committed_offset=1, committed_metadata="m")

    def adding(names: list[str], version: int, partitions: tuple[int, ...]) -> Side:
        def sided(side: str) -> Plain:
            wanted = [{"name": name, "partitions": list(partitions)} for name in names]
            found = one.identity(side)
            if version >= 4:
                return {"transactions": [{**found, "topics": wanted, "verify_only": False}]}
            old = {f"v3_and_below_{field}": value for field, value in found.items()}
            return old | {"v3_and_below_topics": wanted}

        return sided

    for version in (0, 3, 4):
        pair.same(ApiKey.ADD_PARTITIONS_TO_TXN, adding(topics, version, PARTITIONS), (version,))
        added = adding(known, version, (2, 0, 1))
        pair.same(ApiKey.ADD_PARTITIONS_TO_TXN, added, (version,))
        # In the order of the request, unless a partition is refused.
        ours, genuine = pair.both(ApiKey.ADD_PARTITIONS_TO_TXN, version, added)
        assert ours == genuine
    pair.same(ApiKey.ADD_OFFSETS_TO_TXN, lambda side: one.identity(side) | {"group_id": group}, (3,))
    pair.same(
        ApiKey.TXN_OFFSET_COMMIT,
        lambda side: one.identity(side) | {"group_id": group, "topics": offsets},
        (0, 3),
    )
    described = {"transactional_ids": [ids[0], one.id, ids[1]]}
    answers = pair.both(ApiKey.DESCRIBE_TRANSACTIONS, 0, described)
    shown = [[state["transactional_id"] for state in answer["transaction_states"]] for answer in answers]
    assert shown[0] == shown[1]
    one.end(False)
    one.settle()
    markers = [
        {
            "producer_id": producer_id,
            "producer_epoch": 0,
            "transaction_result": False,
            "topics": by_index(topics),
            "coordinator_epoch": 0,
        }
        for producer_id in (4000, 3000, 3500)
    ]
    pair.same(ApiKey.WRITE_TXN_MARKERS, {"markers": markers})


def resources(topics: list[str], **fields: Any) -> list[Plain]:
    places = [(TOPIC, name) for name in topics]
    places[2:2] = [(BROKER, "77"), (BROKER, "")]
    places[6:6] = [(TOPIC, "a/b"), (BROKER_LOGGER, "77")]
    return [{"resource_type": kind, "resource_name": name, **fields} for kind, name in places]


def test_configs_are_returned_in_kafkas_order(pair: Pair, topics: list[str]) -> None:
    keys = ["segment.bytes", "retention.ms", "flush.ms", "cleanup.policy", "max.message.bytes", "no.such"]
    request = {"resources": resources(topics, configuration_keys=keys), "include_synonyms": True}
    pair.same(ApiKey.DESCRIBE_CONFIGS, request)
    setting = {"name": "retention.ms", "value": "60000", "config_operation": 0}
    replaced = [{name: value for name, value in setting.items() if name != "config_operation"}]
    changed = {"resources": resources(topics, configs=[setting]), "validate_only": True}
    pair.same(ApiKey.INCREMENTAL_ALTER_CONFIGS, changed)
    changed = {"resources": resources(topics, configs=replaced), "validate_only": True}
    pair.same(ApiKey.ALTER_CONFIGS, changed)


def test_elections_and_reassignments_are_returned_in_kafkas_order(pair: Pair, topics: list[str]) -> None:
    chosen = [{"topic": topic, "partitions": list(PARTITIONS)} for topic in topics]
    for election_type in (0, 1):
        request = {"election_type": election_type, "topic_partitions": chosen, "timeout_ms": 10_000}
        pair.same(ApiKey.ELECT_LEADERS, request)
    for replicas in ([1], [7], None):
        moved = {"topics": by_partition(topics, replicas=replicas), "timeout_ms": 10_000}
        pair.same(ApiKey.ALTER_PARTITION_REASSIGNMENTS, moved)
    pair.same(ApiKey.LIST_PARTITION_REASSIGNMENTS, {"topics": by_index(topics), "timeout_ms": 10_000})


def test_features_are_returned_in_kafkas_order(pair: Pair) -> None:
    updates = [
        {"feature": f"feature-{number}", "max_version_level": 1, "upgrade_type": 1} for number in MIXED
    ]
    pair.same(ApiKey.UPDATE_FEATURES, {"feature_updates": updates}, (1,))


def test_quotas_are_returned_in_kafkas_order(pair: Pair) -> None:
    users = mixed([pair.name("user") for _ in MIXED])
    ops = [
        {"key": key, "value": 5.0, "remove": False}
        for key in ("request_percentage", "producer_byte_rate", "consumer_byte_rate")
    ]
    entries = [
        {
            "entity": [
                {"entity_type": "user", "entity_name": user},
                {"entity_type": "client-id", "entity_name": "c"},
            ],
            "ops": ops,
        }
        for user in users
    ]
    pair.same(ApiKey.ALTER_CLIENT_QUOTAS, {"entries": entries, "validate_only": False})
    component = {"entity_type": "client-id", "match_type": 0, "match": "c"}
    others = {"entity_type": "user", "match_type": 2, "match": None}
    pair.same(ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [component, others], "strict": False})
    removed = [{**entry, "ops": [{**op, "remove": True} for op in ops]} for entry in entries]
    pair.same(ApiKey.ALTER_CLIENT_QUOTAS, {"entries": removed, "validate_only": False})


def test_scram_credentials_are_returned_in_kafkas_order(pair: Pair) -> None:
    users = mixed([pair.name("user") for _ in MIXED])
    new = {"iterations": 4096, "salt": b"salt", "salted_password": b"x" * 32}
    upsertions = [{"name": user, "mechanism": mechanism, **new} for user in users for mechanism in (2, 1)]
    deletions = [{"name": pair.name("absent"), "mechanism": 1} for _ in MIXED]
    request = {"upsertions": upsertions, "deletions": deletions}
    pair.same(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request)
    asked = [{"name": user} for user in [*users[:3], pair.name("absent"), "", *users[3:]]]
    pair.same(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": asked})
