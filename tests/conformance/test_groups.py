"""APIs for groups and their offsets, in every version, compared with Apache Kafka 3.9.1."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.differential import Pair
from tests.conformance.group_requests import join, ready_group
from tests.conformance.record_requests import fill
from tests.conformance.wire import Plain


def commit_request(group: str, topic: str, *parts: Plain, **more: Any) -> Plain:
    return {"group_id": group, "topics": [{"name": topic, "partitions": list(parts)}], **more}


def part(index: int, offset: int, metadata: str | None = "", **more: Any) -> Plain:
    return {"partition_index": index, "committed_offset": offset, "committed_metadata": metadata, **more}


def fetch_offsets(group: str, topics: dict[str, list[int]] | None, *, stable: bool = False) -> Plain:
    """Return an OffsetFetch request with the fields of versions 0 to 7 and of version 8 and later."""
    listed = None
    if topics is not None:
        listed = [{"name": name, "partition_indexes": indexes} for name, indexes in topics.items()]
    groups = [{"group_id": group, "topics": listed}]
    return {"group_id": group, "topics": listed, "groups": groups, "require_stable": stable}


def test_find_coordinator_responses_match_kafkas_in_every_version(pair: Pair) -> None:
    group = ready_group(pair)
    pair.same(ApiKey.FIND_COORDINATOR, {"key": group, "coordinator_keys": [group]})
    several = {"key_type": 0, "coordinator_keys": [group, f"{group}-2", group]}
    pair.same(ApiKey.FIND_COORDINATOR, several, pair.versions(ApiKey.FIND_COORDINATOR, 4))
    for key_type in (3, 7, -1):
        request = {"key": group, "coordinator_keys": [group], "key_type": key_type}
        pair.same(ApiKey.FIND_COORDINATOR, request, pair.versions(ApiKey.FIND_COORDINATOR, 1, 5))


def test_offsets_are_committed_and_fetched_in_every_version(pair: Pair) -> None:
    topic = pair.topic(3)
    for version in pair.versions(ApiKey.OFFSET_COMMIT, 1):
        group = ready_group(pair)
        parts = (part(0, 10, "note"), part(1, 20, None), part(2, 30, "é", committed_leader_epoch=0))
        answer = pair.same(ApiKey.OFFSET_COMMIT, commit_request(group, topic, *parts), (version,))
        assert {found["error_code"] for found in answer["topics"][0]["partitions"]} == {0}
        pair.same(
            ApiKey.OFFSET_FETCH,
            fetch_offsets(group, {topic: [0, 1, 2]}),
            pair.versions(ApiKey.OFFSET_FETCH, 1),
        )
        pair.same(ApiKey.OFFSET_FETCH, fetch_offsets(group, None), pair.versions(ApiKey.OFFSET_FETCH, 2))


def test_requests_for_missing_offsets_get_kafkas_responses(pair: Pair) -> None:
    topic, group = pair.topic(), ready_group(pair)
    absent = pair.name("absent")
    for asked in ({topic: [0, 5]}, {absent: [0]}, {}):
        for stable in (False, True):
            pair.same(
                ApiKey.OFFSET_FETCH,
                fetch_offsets(group, asked, stable=stable),
                pair.versions(ApiKey.OFFSET_FETCH, 1),
            )
    pair.same(ApiKey.OFFSET_FETCH, fetch_offsets(group, None), pair.versions(ApiKey.OFFSET_FETCH, 2))


def test_invalid_commits_are_rejected(pair: Pair) -> None:
    topic, group = pair.topic(), ready_group(pair)
    versions = pair.versions(ApiKey.OFFSET_COMMIT, 2)
    absent = pair.name("absent")
    pair.same(ApiKey.OFFSET_COMMIT, commit_request(group, topic, part(0, 1), part(7, 1)), versions)
    pair.same(ApiKey.OFFSET_COMMIT, commit_request(group, absent, part(0, 1)), versions)
    pair.same(ApiKey.OFFSET_COMMIT, commit_request("", topic, part(0, 1)), versions)
    by_stranger = {"member_id": "stranger", "generation_id_or_member_epoch": 3}
    pair.same(ApiKey.OFFSET_COMMIT, commit_request(group, topic, part(0, 1), **by_stranger), versions)
    pair.same(ApiKey.OFFSET_COMMIT, commit_request(group, topic, part(0, -1)), versions)
    nothing: Plain = {"group_id": group, "topics": []}
    pair.same(ApiKey.OFFSET_COMMIT, nothing, versions)


def test_requests_for_unknown_groups_get_kafkas_responses(pair: Pair) -> None:
    group = ready_group(pair)
    pair.same(ApiKey.DESCRIBE_GROUPS, {"groups": [group, ""]})
    pair.same(ApiKey.DESCRIBE_GROUPS, {"groups": [group], "include_authorized_operations": True})
    pair.same(ApiKey.DELETE_GROUPS, {"groups_names": [group, ""]})
    member = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
    pair.same(ApiKey.HEARTBEAT, member)
    pair.same(ApiKey.SYNC_GROUP, member | {"protocol_type": "consumer", "protocol_name": "range"})
    pair.same(ApiKey.HEARTBEAT, member | {"group_instance_id": "static"}, pair.versions(ApiKey.HEARTBEAT, 3))
    leaving = {"group_id": group, "member_id": "nobody", "members": [{"member_id": "nobody"}]}
    pair.same(ApiKey.LEAVE_GROUP, leaving)
    static = {"group_id": group, "members": [{"member_id": "", "group_instance_id": "static"}]}
    pair.same(ApiKey.LEAVE_GROUP, static, pair.versions(ApiKey.LEAVE_GROUP, 3))
    removed = {"group_id": group, "topics": [{"name": pair.topic(), "partitions": [{"partition_index": 0}]}]}
    pair.same(ApiKey.OFFSET_DELETE, removed)


def test_requests_with_an_empty_group_id_get_kafkas_responses(pair: Pair) -> None:
    member = {"group_id": "", "generation_id": 1, "member_id": "nobody", "members": [{"member_id": "nobody"}]}
    ready_group(pair)
    pair.same(ApiKey.HEARTBEAT, {name: member[name] for name in ("group_id", "generation_id", "member_id")})
    pair.same(ApiKey.LEAVE_GROUP, {name: member[name] for name in ("group_id", "member_id", "members")})
    pair.same(ApiKey.OFFSET_FETCH, fetch_offsets("", None), pair.versions(ApiKey.OFFSET_FETCH, 2))


def _pick(pair: Pair, answers: list[Plain], field: str = "member_id") -> dict[str, str]:
    return {side: answer[field] for side, answer in zip(pair.sides, answers, strict=True)}


def _joined(pair: Pair, version: int, group: str, **more: Any) -> dict[str, str]:
    """Join the group, and return the member id on each side. From version 4 on, the member requests its id
    first.
    """
    answers = pair.both(ApiKey.JOIN_GROUP, version, join(group, **more))
    if answers[0]["error_code"] == 79:
        assert answers[1]["error_code"] == 79
        ids = _pick(pair, answers)
        answers = pair.both(
            ApiKey.JOIN_GROUP, version, lambda side: join(group, **more | {"member_id": ids[side]})
        )
    assert [answer["error_code"] for answer in answers] == [0, 0], answers
    return _pick(pair, answers)


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_syncs_and_leaves_in_every_version(pair: Pair, version: int) -> None:
    """Join, sync, heartbeat, describe, list, commit, delete a group in use, leave, and delete the group."""
    group, topic = ready_group(pair), pair.topic()
    fill(pair, topic, batch(3))
    ids = _joined(pair, version, group)
    again = pair.same(ApiKey.JOIN_GROUP, lambda side: join(group, member_id=ids[side]), (version,))
    generation = again["generation_id"]

    def me(**more: Any) -> Any:
        return lambda side: {"group_id": group, "generation_id": generation, "member_id": ids[side], **more}

    def assigned(side: str) -> Plain:
        mine = {"member_id": ids[side], "assignment": b"what I do"}
        return me(assignments=[mine], protocol_type="consumer", protocol_name="range")(side)  # type: ignore[no-any-return]

    sync, heartbeat = min(version, 5), min(version, 4)
    synced = pair.same(ApiKey.SYNC_GROUP, assigned, (sync,))
    assert (synced["error_code"], synced["assignment"]) == (0, b"what I do")
    pair.same(ApiKey.SYNC_GROUP, assigned, (sync,))
    pair.same(ApiKey.HEARTBEAT, me(), (heartbeat,))
    if version >= 5:
        wrong = me(assignments=[], protocol_type="connect", protocol_name="range")
        assert pair.same(ApiKey.SYNC_GROUP, wrong, (5,))["error_code"] == 23
    pair.same(ApiKey.DESCRIBE_GROUPS, {"groups": [group]}, pair.versions(ApiKey.DESCRIBE_GROUPS))
    _same_listing(pair, group)

    def committing(side: str) -> Plain:
        member = {"generation_id_or_member_epoch": generation, "member_id": ids[side]}
        return commit_request(group, topic, part(0, 2), **member)

    pair.same(ApiKey.OFFSET_COMMIT, committing, (min(max(version, 1), 9),))
    pair.same(ApiKey.OFFSET_COMMIT, commit_request(group, topic, part(0, 2)), (2,))
    pair.same(ApiKey.DELETE_GROUPS, {"groups_names": [group]})
    removal = {"group_id": group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}
    pair.same(ApiKey.OFFSET_DELETE, removal)
    left = pair.same(
        ApiKey.LEAVE_GROUP,
        lambda side: {"group_id": group, "member_id": ids[side], "members": [{"member_id": ids[side]}]},
        (min(version, 5),),
    )
    assert left["error_code"] == 0
    pair.same(ApiKey.HEARTBEAT, me(), (heartbeat,))
    pair.same(ApiKey.DESCRIBE_GROUPS, {"groups": [group]}, pair.versions(ApiKey.DESCRIBE_GROUPS))
    _same_listing(pair, group)
    pair.same(ApiKey.OFFSET_DELETE, removal)
    pair.same(ApiKey.DELETE_GROUPS, {"groups_names": [group]}, (1,))
    pair.same(ApiKey.DELETE_GROUPS, {"groups_names": [group]}, (1,))


def _same_listing(pair: Pair, group: str) -> None:
    """Check that both brokers list the group identically, with and without filters."""
    for version in pair.versions(ApiKey.LIST_GROUPS):
        for states in ([], ["Stable"], ["Empty"], ["Nonsense"]):
            for types in ([], ["classic"], ["consumer"]):
                request = {"states_filter": states, "types_filter": types}
                found = [
                    [entry for entry in answer["groups"] if entry["group_id"] == group]
                    for answer in pair.both(ApiKey.LIST_GROUPS, version, request)
                ]
                assert found[0] == found[1], (version, request)


def test_a_static_member_rejoins_without_a_rebalance_and_fences_the_old_member(pair: Pair) -> None:
    """Rejoining with the same instance id replaces the member without a rebalance, and fences the old one."""
    group = ready_group(pair)
    instance = {"group_instance_id": "instance-1"}
    old = _joined(pair, 5, group, **instance)

    def assigned(side: str) -> Plain:
        mine = {"member_id": old[side], "assignment": b"x"}
        return {
            "group_id": group,
            "generation_id": 1,
            "member_id": old[side],
            "assignments": [mine],
            **instance,
        }

    pair.same(ApiKey.SYNC_GROUP, assigned, (3,))
    answers = pair.both(ApiKey.JOIN_GROUP, 5, join(group, **instance))
    assert [answer["error_code"] for answer in answers] == [0, 0]
    assert answers[0]["generation_id"] == answers[1]["generation_id"]
    new = _pick(pair, answers)
    for ids, expected in ((old, 82), (new, None)):
        common = {"group_id": group, "generation_id": answers[0]["generation_id"], **instance}
        beats = {side: {**common, "member_id": ids[side]} for side in ids}
        beat = pair.same(ApiKey.HEARTBEAT, beats.__getitem__, (3,))
        assert expected is None or beat["error_code"] == expected
    pair.same(ApiKey.DESCRIBE_GROUPS, {"groups": [group]}, (4, 5))
    removal = {
        "group_id": group,
        "members": [{"member_id": "", **instance}, {"member_id": "", "group_instance_id": "?"}],
    }
    pair.same(ApiKey.LEAVE_GROUP, removal, (3,))
    pair.same(ApiKey.DESCRIBE_GROUPS, {"groups": [group]}, (5,))


def test_a_second_member_causes_a_rebalance(pair: Pair) -> None:
    """While the second member waits, the first receives REBALANCE_IN_PROGRESS in its heartbeat response; then
    both join the same generation.
    """
    group = ready_group(pair)
    first = _joined(pair, 3, group)

    def of_first(generation: int, **more: Any) -> Any:
        return lambda side: {"group_id": group, "generation_id": generation, "member_id": first[side], **more}

    def synced(side: str) -> Plain:
        found: Plain = of_first(1, assignments=[{"member_id": first[side], "assignment": b"all"}])(side)
        return found

    pair.same(ApiKey.SYNC_GROUP, synced, (3,))
    pair.same(ApiKey.HEARTBEAT, of_first(1), (3,))
    other = Pair(*pair.addresses)
    try:
        for side, connection in other.sides.items():
            connection.begin(ApiKey.JOIN_GROUP, 3, join(group))
            while pair.sides[side].ask(ApiKey.HEARTBEAT, 3, of_first(1)(side))["error_code"] == 0:
                pass
        pair.same(ApiKey.HEARTBEAT, of_first(1), (3,))
        pair.same(ApiKey.DESCRIBE_GROUPS, {"groups": [group]}, (5,))
        answers = pair.both(ApiKey.JOIN_GROUP, 3, lambda side: join(group, member_id=first[side]))
        seconds = [connection.finish(ApiKey.JOIN_GROUP, 3) for connection in other.sides.values()]
        for mine in (answers, seconds):
            assert (mine[0]["error_code"], mine[0]["generation_id"]) == (0, 2)
            assert (mine[1]["error_code"], mine[1]["generation_id"]) == (0, 2)
        assert [len(answer["members"]) for answer in answers] == [2, 2], "the first member is the leader"
        assert [len(answer["members"]) for answer in seconds] == [0, 0]
    finally:
        other.close()


def test_a_group_record_larger_than_max_message_bytes_is_not_stored(pair: Pair) -> None:
    group = ready_group(pair)
    ids = _joined(pair, 3, group)

    def assigned(side: str) -> Plain:
        mine = {"member_id": ids[side], "assignment": bytes(2 << 20)}
        return {"group_id": group, "generation_id": 1, "member_id": ids[side], "assignments": [mine]}

    assert pair.same(ApiKey.SYNC_GROUP, assigned, (2,))["error_code"] == -1
    probe = {
        side: {"group_id": group, "generation_id": 1, "member_id": member} for side, member in ids.items()
    }
    pair.same(ApiKey.HEARTBEAT, lambda side: probe[side], (2,))
    notes = [part(index, 1, "n" * 4000) for index in range(300)]
    topic = pair.topic(300)
    answer = pair.same(ApiKey.OFFSET_COMMIT, commit_request(ready_group(pair), topic, *notes), (7,))
    assert {found["error_code"] for found in answer["topics"][0]["partitions"]} == {28}
