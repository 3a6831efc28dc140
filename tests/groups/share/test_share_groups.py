"""Share groups in memory: initialization and its failures, sessions, the other protocols, and failover."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import Commit, GroupType, Join, Leaving, OffsetAndMetadata, Sync
from kafka_compat.groups.share.heartbeat import ShareHeartbeat
from kafka_compat.share_coordinator.persister import SharePartitionKey
from tests.groups.consumer.topics import topic_id
from tests.groups.share.histories import MAX_SIZE, Ours
from tests.groups.sides import Plain
from tests.support.steps import result_of

TOPICS = {"a": 2, "b": 1}
RETRY_MS = 30_000
SESSION_MS = 45_000


@pytest.fixture
def ours() -> Ours:
    return Ours("g", TOPICS, {name: topic_id(name) for name in TOPICS})


def join(ours: Ours, member_id: str, *names: str) -> Plain:
    return ours.heartbeat({"member_id": member_id, "member_epoch": 0, "subscribed_topic_names": names})


def stay(ours: Ours, member_id: str, epoch: int) -> Plain:
    return ours.heartbeat({"member_id": member_id, "member_epoch": epoch})


def leave(ours: Ours, member_id: str) -> Plain:
    return ours.heartbeat({"member_id": member_id, "member_epoch": -1})


def assigned(answer: Plain) -> dict[str, list[int]]:
    names = {topic_id(name): name for name in "abc"}
    return {
        names[each["topic_id"]]: sorted(each["partitions"])
        for each in answer["assignment"]["topic_partitions"]
    }


def starts(ours: Ours) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the state epoch and the start offset of each state at the share coordinator."""
    names = {topic_id(name): name for name in "abc"}
    return {
        (names[key.topic_id], key.partition): (state.state_epoch, state.start_offset)
        for key, state in ours.persister.states.items()
    }


def test_partitions_are_assigned_when_their_states_are_initialized(ours: Ours) -> None:
    ours.persister.hold = True
    assert assigned(join(ours, "m", "a")) == {}
    first = stay(ours, "m", 2)
    assert (first["member_epoch"], first["assignment"]) == (2, None)
    ours.persister.release()
    assert starts(ours) == {("a", 0): (2, -1), ("a", 1): (2, -1)}
    second = stay(ours, "m", 2)
    assert (second["member_epoch"], assigned(second)) == (3, {"a": [0, 1]})


def test_partitions_that_are_added_to_a_topic_begin_at_offset_0(ours: Ours) -> None:
    join(ours, "m", "a")
    stay(ours, "m", 2)
    ours.put("a", topic_id("a"), 3)
    stay(ours, "m", 3)
    assert starts(ours)["a", 2] == (4, 0)
    assert assigned(stay(ours, "m", 4)) == {"a": [0, 1, 2]}


def test_a_failed_initialization_is_attempted_again_with_the_next_heartbeat(ours: Ours) -> None:
    ours.persister.refuse = ErrorCode.COORDINATOR_NOT_AVAILABLE
    join(ours, "m", "a")
    ours.persister.refuse = None
    assert stay(ours, "m", 2)["assignment"] is None
    assert starts(ours) == {("a", 0): (2, -1), ("a", 1): (2, -1)}
    assert assigned(stay(ours, "m", 2)) == {"a": [0, 1]}


def test_a_lost_initialization_is_attempted_again_after_an_interval(ours: Ours) -> None:
    ours.persister.hold = True
    join(ours, "m", "a")
    ours.scheduler.advance(RETRY_MS - 1)
    stay(ours, "m", 2)
    assert len(ours.persister.waiting) == 2
    ours.scheduler.advance(1)
    stay(ours, "m", 2)
    assert len(ours.persister.waiting) == 4
    ours.persister.release()
    assert assigned(stay(ours, "m", 2)) == {"a": [0, 1]}


def test_several_members_share_a_partition_if_there_are_more_members_than_partitions(ours: Ours) -> None:
    join(ours, "m", "b")
    stay(ours, "m", 2)
    assert assigned(join(ours, "n", "b")) == {"b": [0]}
    assert stay(ours, "m", 3)["member_epoch"] == 4
    assert {member[1] for member in _members(ours)} == {4}


def _members(ours: Ours) -> list[tuple[str, int]]:
    return [(each["member_id"], each["member_epoch"]) for each in ours.describe()["members"]]


def test_a_member_whose_session_ends_is_fenced(ours: Ours) -> None:
    join(ours, "m", "a")
    ours.scheduler.advance(SESSION_MS)
    assert ours.describe()["group_state"] == "Empty"
    assert stay(ours, "m", 2)["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
    assert join(ours, "m", "a")["member_epoch"] == 4


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"member_id": "m", "member_epoch": 0}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "m", "member_epoch": 0, "subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "m", "member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "", "member_epoch": 1}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "m", "member_epoch": 1, "rack_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "m", "member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_id": "m", "member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_invalid_heartbeats_are_rejected_and_leave_no_group(
    ours: Ours, request_: Plain, error: ErrorCode
) -> None:
    assert ours.heartbeat(request_)["error_code"] == error
    assert ours.coordinator.group_ids() == []


def test_wrong_epochs_unknown_members_and_too_many_members_are_rejected(ours: Ours) -> None:
    join(ours, "m", "a")
    assert stay(ours, "m", 3)["error_code"] == ErrorCode.FENCED_MEMBER_EPOCH
    assert stay(ours, "m", 1)["error_code"] == ErrorCode.FENCED_MEMBER_EPOCH
    assert stay(ours, "n", 1)["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(ours, "n")["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
    for number in range(MAX_SIZE - 1):
        assert not join(ours, f"n{number}", "a")["error_code"]
    assert join(ours, "another", "a")["error_code"] == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_requests_of_other_protocols_are_rejected_by_a_share_group(ours: Ours) -> None:
    join(ours, "m", "a")
    answers: list[Any] = []
    coordinator = ours.coordinator
    classic = Join("", None, "c", "/h", 10_000, 10_000, "consumer", (("range", b""),), "", False, False)
    coordinator.classic.join("g", classic, answers.append)
    coordinator.classic.sync("g", Sync(1, "m", None, None, None, {}), answers.append)
    result_of(coordinator.classic.leave("g", [Leaving("m", None, "")], answers.append))
    commit = Commit(-1, "", None, {("a", 0): OffsetAndMetadata(1, -1, "", 1, -1)})
    result_of(coordinator.offsets.commit("g", commit, answers.append))
    result_of(coordinator.offsets.delete("g", [("a", 0)], answers.append))
    assert [answers[0].error, answers[1].error, answers[2].members[0][1]] == [
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert answers[3:] == [{("a", 0): ErrorCode.GROUP_ID_NOT_FOUND}, ErrorCode.GROUP_ID_NOT_FOUND]
    assert coordinator.classic.heartbeat("g", 2, "m", None) == ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.classic.describe("g") == (ErrorCode.NONE, None)
    assert coordinator.consumer.describe("g") == (ErrorCode.GROUP_ID_NOT_FOUND, None)
    ((group,), _) = coordinator.list_groups({"stable"}, {"share"})[::-1]
    assert (group.type, group.protocol_type) == (GroupType.SHARE, "share")


def test_a_share_member_cannot_join_a_group_of_another_type(ours: Ours) -> None:
    answers: list[Any] = []
    classic = Join("", None, "c", "/h", 10_000, 10_000, "consumer", (("range", b""),), "", False, False)
    ours.coordinator.classic.join("g", classic, answers.append)
    assert join(ours, "m", "a")["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
    assert ours.alter({"a": {0: 1}}) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_deleting_a_group_deletes_its_states_first(ours: Ours) -> None:
    join(ours, "m", "a")
    assert ours.delete_group() == ErrorCode.NON_EMPTY_GROUP
    leave(ours, "m")
    ours.persister.refuse = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ours.delete_group() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ours.describe()["group_state"] == "Empty"
    ours.persister.refuse = None
    assert ours.delete_group() == ErrorCode.NONE
    assert starts(ours) == {}
    assert ours.describe() == {"error_code": ErrorCode.GROUP_ID_NOT_FOUND}
    assert ours.coordinator.group_ids() == []


def test_a_group_without_members_never_expires(ours: Ours) -> None:
    join(ours, "m", "a")
    leave(ours, "m")
    ours.coordinator.start()
    ours.scheduler.advance(8 * 24 * 3_600_000)
    assert ours.coordinator.group_ids() == ["g"]
    joined = join(ours, "m", "a")
    assert (joined["error_code"], assigned(joined)) == (ErrorCode.NONE, {"a": [0, 1]})
    assert starts(ours) == {("a", 0): (2, -1), ("a", 1): (2, -1)}


def test_altered_offsets_create_the_group_and_are_replaced_by_its_next_members(ours: Ours) -> None:
    altered = (ErrorCode.NONE, [("a", [(0, 0), (7, 3)]), ("zz", [(0, 3)])])
    assert ours.alter({"a": {0: 5, 7: 1}, "zz": {0: 1}}) == altered
    assert starts(ours) == {("a", 0): (1, 5)}
    join(ours, "m", "a")
    assert starts(ours) == {("a", 0): (1, 5), ("a", 1): (2, 0)}
    assert ours.alter({"a": {0: 6}}) == (ErrorCode.NON_EMPTY_GROUP, [])
    assert ours.delete_offsets(["a"]) == (ErrorCode.NON_EMPTY_GROUP, [])
    leave(ours, "m")
    assert ours.delete_offsets(["a", "b", "zz"]) == (ErrorCode.NONE, [("a", 0), ("b", 3), ("zz", 3)])
    assert starts(ours) == {}


def test_the_states_of_a_deleted_topic_are_forgotten(ours: Ours) -> None:
    join(ours, "m", "a", "b")
    stay(ours, "m", 2)
    ours.delete("a")
    assert assigned(stay(ours, "m", 3)) == {"b": [0]}
    states = ours.coordinator.share.initialized_partitions("g")[1]
    assert list(states) == [topic_id("b")]


def test_another_coordinator_loads_the_same_state(ours: Ours) -> None:
    join(ours, "m", "a", "b")
    stay(ours, "m", 2)
    join(ours, "n", "b")
    described = ours.describe()
    ours.coordinator.unload(0)
    assert stay(ours, "m", 3)["error_code"] == ErrorCode.NOT_COORDINATOR
    ours.coordinator = ours.successor()
    ours.scheduler.advance()
    assert ours.describe() == described
    assert stay(ours, "m", 3)["member_epoch"] == 4
    assert stay(ours, "m", 4)["assignment"] is None


def test_requests_that_wait_for_the_share_coordinator_end_when_the_group_is_lost(ours: Ours) -> None:
    join(ours, "m", "a")
    leave(ours, "m")
    ours.persister.hold = True
    answers: list[Any] = []
    ours.coordinator.share.delete_offsets("g", ["a"], answers.append)
    ours.coordinator.unload(0)
    assert answers == []
    ours.persister.release()
    assert [each.error for each in answers] == [ErrorCode.NOT_COORDINATOR]


def test_heartbeats_with_uncommitted_records_wait(ours: Ours) -> None:
    ours.log.hold = True
    answers: list[Any] = []
    respond: Callable[[Any], None] = answers.append
    ours.coordinator.share.heartbeat("g", ShareHeartbeat("m", 0, "c", "/h", None, ("a",)), respond)
    assert (answers, ours.describe()) == ([], {"error_code": ErrorCode.GROUP_ID_NOT_FOUND})
    assert SharePartitionKey("g", topic_id("a"), 0) in ours.persister.states
    ours.log.commit()
    assert [each.member_epoch for each in answers] == [2]
