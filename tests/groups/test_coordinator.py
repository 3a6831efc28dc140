"""The coordinator of group state machines: lookup of groups, delayed responses, loading and unloading."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch, TransactionalProducer
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.offsets import GroupOffsets
from kafka_compat.groups.records import OffsetRecord, encode_record
from kafka_compat.groups.requests import Commit, LeaveResult, Leaving
from tests.groups.consumer.topics import topic
from tests.groups.memory import (
    WALL_MS,
    Coordinator,
    ManualTimer,
    MemoryLog,
    join_request,
    position,
    stable_member,
    sync_request,
)
from tests.support.steps import result_of


def commit_request(
    offsets: dict[tuple[str, int], Any], member_id: str = "", generation_id: int = -1
) -> Commit:
    return Commit(
        generation_id=generation_id, member_id=member_id, group_instance_id=None, offsets=dict(offsets)
    )


def committed(coordinator: Coordinator, group_id: str, partition: tuple[str, int]) -> int | None:
    error, fetched = coordinator.offsets.fetch(group_id, [partition], require_stable=False)
    assert error is ErrorCode.NONE
    offset, partition_error = fetched[partition]
    assert partition_error is ErrorCode.NONE
    return None if offset is None else offset.offset


def test_a_response_waits_until_its_record_is_committed() -> None:
    coordinator = Coordinator()
    joined: list[Any] = []
    coordinator.classic.join("g", join_request(), joined.append)
    coordinator.scheduler.advance()
    member_id = joined[0].member_id
    coordinator.log.hold = True
    synced: list[Any] = []
    coordinator.classic.sync("g", sync_request(member_id, 1, {member_id: b"x"}), synced.append)
    assert synced == []
    coordinator.log.commit()
    assert synced[0].assignment == b"x"

    answers: list[Any] = []
    request = commit_request({("topic", 0): position(5)}, member_id, 1)
    result_of(coordinator.offsets.commit("g", request, answers.append))
    assert answers == []
    assert committed(coordinator, "g", ("topic", 0)) is None
    _, fetched = coordinator.offsets.fetch("g", [("topic", 0)], require_stable=True)
    assert fetched[("topic", 0)] == (None, ErrorCode.NONE)
    coordinator.log.commit()
    assert answers == [{("topic", 0): ErrorCode.NONE}]
    assert committed(coordinator, "g", ("topic", 0)) == 5


def test_a_commit_that_times_out_gets_an_error_response() -> None:
    """The timeout ensures a response if followers are down or the ISR is below min.insync.replicas."""
    coordinator = Coordinator(offsets_commit_timeout_ms=2_000)
    partition = ("topic", 0)
    coordinator.log.hold = True
    answers: list[Any] = []
    result_of(coordinator.offsets.commit("g", commit_request({partition: position(5)}), answers.append))
    coordinator.scheduler.advance(1_999)
    assert answers == []
    coordinator.scheduler.advance(1)
    assert answers == [{partition: ErrorCode.REQUEST_TIMED_OUT}]
    coordinator.log.commit()
    assert len(answers) == 1

    result_of(coordinator.offsets.commit("g", commit_request({partition: position(6)}), answers.append))
    coordinator.log.commit()
    coordinator.scheduler.advance(10_000)
    assert answers[1:] == [{partition: ErrorCode.NONE}]
    assert committed(coordinator, "g", partition) == 6


@pytest.mark.parametrize(
    ("refusal", "answer"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_a_failed_append_does_not_change_the_committed_offset(refusal: ErrorCode, answer: ErrorCode) -> None:
    coordinator = Coordinator()
    partition = ("topic", 0)
    answers: list[Any] = []
    result_of(coordinator.offsets.commit("g", commit_request({partition: position(1)}), answers.append))
    coordinator.log.refuse = refusal
    result_of(coordinator.offsets.commit("g", commit_request({partition: position(2)}), answers.append))
    assert answers == [{partition: ErrorCode.NONE}, {partition: answer}]
    assert committed(coordinator, "g", partition) == 1


def test_metadata_too_long_for_its_record_is_rejected() -> None:
    coordinator = Coordinator(offset_metadata_max_bytes=100_000)
    answers: list[Any] = []
    too_long = commit_request({("topic", 0): position(1, "m" * 40_000)})
    result_of(coordinator.offsets.commit("g", too_long, answers.append))
    assert answers == [{("topic", 0): ErrorCode.UNKNOWN_SERVER_ERROR}]
    result_of(coordinator.offsets.commit("g", commit_request({("topic", 0): position(2)}), answers.append))
    assert committed(coordinator, "g", ("topic", 0)) == 2


def test_unknown_partitions_are_rejected_individually() -> None:
    coordinator = Coordinator()
    answers: list[Any] = []
    offsets = {("gone", 0): position(1), ("topic", 1): position(2), ("topic", 99): position(3)}
    result_of(coordinator.offsets.commit("g", commit_request(offsets), answers.append))
    result_of(coordinator.offsets.commit("g", commit_request({("gone", 0): position(1)}), answers.append))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers == [
        {("gone", 0): unknown, ("topic", 1): ErrorCode.NONE, ("topic", 99): unknown},
        {("gone", 0): unknown},
    ]


def test_waiting_members_get_a_not_coordinator_error_when_the_shard_moves() -> None:
    coordinator = Coordinator()
    stable_member(coordinator, "g")
    answers: list[Any] = []
    coordinator.classic.join("g", join_request(), answers.append)
    assert answers == []
    shard = coordinator.shard_of("g")
    coordinator.unload(shard)
    assert [answer.error for answer in answers] == [ErrorCode.NOT_COORDINATOR]
    assert coordinator.classic.heartbeat("g", 1, "x", None) is ErrorCode.NOT_COORDINATOR
    coordinator.classic.join("g", join_request(), answers.append)
    assert answers[-1].error is ErrorCode.NOT_COORDINATOR
    assert coordinator.scheduler.pending == 0


def test_a_group_continues_after_its_shard_has_moved() -> None:
    coordinator = Coordinator()
    member = stable_member(coordinator, "g")
    request = commit_request({("topic", 0): position(7, "näher")}, member.member_id, 1)
    result_of(coordinator.offsets.commit("g", request, lambda _: None))

    successor = Coordinator(coordinator.log)
    assert successor.classic.heartbeat("g", 1, member.member_id, None) is ErrorCode.NONE
    synced: list[Any] = []
    successor.classic.sync("g", sync_request(member.member_id, 1), synced.append)
    assert synced[0].assignment == b"all"
    _, fetched = successor.offsets.fetch("g", None, require_stable=True)
    assert fetched == {("topic", 0): (position(7, "näher"), ErrorCode.NONE)}
    successor.scheduler.advance(10_000)
    assert successor.classic.heartbeat("g", 1, member.member_id, None) is ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_during_loading_get_a_coordinator_load_in_progress_error() -> None:
    log = MemoryLog(shard_count=1)
    for number in range(5_000):
        log.append(0, [encode_record(OffsetRecord("g", "topic", number % 10, position(number)))])
    coordinator = Coordinator(log)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    answers: list[Any] = []
    coordinator.classic.join("g", join_request(), answers.append)
    result_of(coordinator.offsets.commit("g", commit_request({("topic", 0): position(1)}), answers.append))
    leaving = [Leaving(member_id="m", group_instance_id=None, reason="")]
    result_of(coordinator.classic.leave("g", leaving, answers.append))
    coordinator.delete_groups(["g"], answers.append)
    assert [answers[0].error, answers[1], answers[2].error, answers[3]] == [
        loading,
        {("topic", 0): loading},
        loading,
        {"g": loading},
    ]
    assert coordinator.offsets.fetch("g", None, require_stable=False) == (loading, {})
    assert coordinator.list_groups(set(), set()) == (loading, [])
    # While the group is loading, members must not conclude that they lost their membership.
    assert coordinator.classic.heartbeat("g", 1, "m", None) is ErrorCode.NONE
    coordinator.classic.sync("g", sync_request("m", 1), answers.append)
    assert answers[-1].error is ErrorCode.REBALANCE_IN_PROGRESS

    coordinator.scheduler.advance()
    assert committed(coordinator, "g", ("topic", 9)) == 4_999


def test_a_shard_that_moves_while_loading_is_dropped() -> None:
    log = MemoryLog(shard_count=1)
    for number in range(2_000):
        log.append(0, [encode_record(OffsetRecord("g", "topic", 0, position(number)))])
    coordinator = Coordinator(log)
    coordinator.unload(0)
    coordinator.scheduler.advance()
    assert coordinator.list_groups(set(), set()) == (ErrorCode.NONE, [])
    assert coordinator.offsets.fetch("g", None, require_stable=False)[0] is ErrorCode.NOT_COORDINATOR


def test_unreadable_records_do_not_hide_other_records(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog(shard_count=1)
    log.append(0, [(b"\0\1\0\x05abc", b"broken"), (b"\0\x09newer", b"?")])
    log.append(0, [encode_record(OffsetRecord("g", "topic", 0, position(4)))])
    assert committed(Coordinator(log), "g", ("topic", 0)) == 4
    assert "Skipped an invalid record" in caplog.text


def test_transactional_offsets_apply_when_the_transaction_commits() -> None:
    def record(offset: int, partition: int) -> tuple[bytes, bytes | None]:
        return encode_record(OffsetRecord("g", "topic", partition, position(offset)))

    log = MemoryLog(shard_count=1)
    log.batches[0] = [
        ReplayedBatch(1, 10, None, [record(1, 0)]),
        ReplayedBatch(2, 11, None, [record(2, 1)]),
        ReplayedBatch(3, 12, None, [record(3, 2)]),
        ReplayedBatch(4, 13, None, [record(4, 3)]),
        ReplayedBatch(5, -1, None, [record(50, 3)]),
        ReplayedBatch(6, 10, True, []),
        ReplayedBatch(7, 11, False, []),
        ReplayedBatch(8, 13, True, []),
    ]
    coordinator = Coordinator(log)
    partitions = [("topic", number) for number in range(4)]
    _, stable = coordinator.offsets.fetch("g", partitions, require_stable=True)
    assert [stable[partition][1].name for partition in partitions] == [
        "NONE",
        "NONE",
        "UNSTABLE_OFFSET_COMMIT",
        "NONE",
    ]
    # A plain commit made after the transaction's offset commit is kept, although the marker comes later.
    assert [committed(coordinator, "g", partition) for partition in partitions] == [1, None, None, 50]


def test_expired_offsets_are_deleted_periodically() -> None:
    coordinator = Coordinator(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=600)
    coordinator.start()
    result_of(coordinator.offsets.commit("g", commit_request({("topic", 0): position(1)}), lambda _: None))
    coordinator.scheduler.advance(999)
    assert committed(coordinator, "g", ("topic", 0)) == 1
    coordinator.scheduler.advance(201)
    assert coordinator.list_groups(set(), set()) == (ErrorCode.NONE, [])
    assert committed(Coordinator(coordinator.log), "g", ("topic", 0)) is None


def test_offsets_of_deleted_topics_are_deleted() -> None:
    coordinator = Coordinator()
    for group_id in ("a", "b"):
        offsets = {("topic", 0): position(1), ("other", 0): position(2)}
        result_of(coordinator.offsets.commit(group_id, commit_request(offsets), lambda _: None))
    coordinator.offsets.forget_topic(topic("topic", 2))
    for restarted in (coordinator, Coordinator(coordinator.log)):
        for group_id in ("a", "b"):
            _, fetched = restarted.offsets.fetch(group_id, None, require_stable=False)
            assert list(fetched) == [("other", 0)]


def test_groups_are_filtered_by_state_and_type() -> None:
    coordinator = Coordinator()
    stable_member(coordinator, "busy")
    request = commit_request({("topic", 0): position(1)})
    result_of(coordinator.offsets.commit("simple", request, lambda _: None))

    def listed(states: set[str], types: set[str]) -> list[str]:
        return sorted(group.group_id for group in coordinator.list_groups(states, types)[1])

    assert listed(set(), set()) == ["busy", "simple"]
    assert listed({"stable"}, set()) == ["busy"]
    assert listed({"empty"}, {"classic"}) == ["simple"]
    assert listed(set(), {"consumer"}) == []


def test_several_groups_are_deleted_with_a_single_response() -> None:
    coordinator = Coordinator()
    stable_member(coordinator, "busy")
    request = commit_request({("topic", 0): position(1)})
    result_of(coordinator.offsets.commit("simple", request, lambda _: None))
    coordinator.log.hold = True
    answers: list[Any] = []
    coordinator.delete_groups(["busy", "simple", "none", "simple"], answers.append)
    assert answers == []
    coordinator.log.commit()
    assert answers == [
        {
            "busy": ErrorCode.NON_EMPTY_GROUP,
            "simple": ErrorCode.NONE,
            "none": ErrorCode.GROUP_ID_NOT_FOUND,
        }
    ]
    assert coordinator.classic.describe("simple") == (ErrorCode.NONE, None)
    coordinator.delete_groups([], answers.append)
    assert answers[-1] == {}


def test_session_timeouts_outside_the_limits_and_empty_group_ids_are_rejected() -> None:
    coordinator = Coordinator(group_min_session_timeout_ms=6_000, group_max_session_timeout_ms=20_000)
    answers: list[Any] = []
    for timeout_ms in (5_999, 6_000, 20_000, 20_001):
        request = join_request(session_timeout_ms=timeout_ms)
        coordinator.classic.join(f"g{timeout_ms}", request, answers.append)
    coordinator.scheduler.advance()
    coordinator.classic.join("", join_request(), answers.append)
    coordinator.classic.join("new", join_request("stranger"), answers.append)
    assert sorted(answer.error.name for answer in answers) == [
        "INVALID_GROUP_ID",
        "INVALID_SESSION_TIMEOUT",
        "INVALID_SESSION_TIMEOUT",
        "NONE",
        "NONE",
        "UNKNOWN_MEMBER_ID",
    ]


def test_a_closed_coordinator_cancels_its_timers_and_rejects_requests() -> None:
    coordinator = Coordinator()
    coordinator.start()
    stable_member(coordinator, "g")
    answers: list[Any] = []
    coordinator.classic.join("g", join_request(), answers.append)
    coordinator.close()
    assert coordinator.scheduler.pending == 0
    coordinator.classic.join("g", join_request(), answers.append)
    assert [answer.error.name for answer in answers] == ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"]


def test_a_wall_clock_jump_does_not_expire_members() -> None:
    coordinator = Coordinator()
    member = stable_member(coordinator, "g")
    coordinator.wall_ms += 365 * 24 * 3_600_000
    coordinator.scheduler.advance(9_000)
    assert coordinator.classic.heartbeat("g", 1, member.member_id, None) is ErrorCode.NONE


def test_an_idle_group_rarely_wakes_the_event_loop() -> None:
    coordinator = Coordinator()
    member = stable_member(coordinator, "g")
    wake_ups = 0
    call_later = coordinator.scheduler.call_later

    def counting(delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        nonlocal wake_ups
        wake_ups += 1
        return call_later(delay_ms, callback)

    coordinator.scheduler.call_later = counting  # type: ignore[method-assign]
    for _ in range(1_000):
        coordinator.scheduler.advance(3_000)
        assert coordinator.classic.heartbeat("g", 1, member.member_id, None) is ErrorCode.NONE
    assert wake_ups <= 1_000 * 3_000 // 7_000 + 2


def test_memory_of_a_transaction_grows_with_the_number_of_its_offsets() -> None:
    registry = SnapshotRegistry()
    offsets = GroupOffsets(registry)
    records = [OffsetRecord("g", "topic", number, position(number)) for number in range(3_000)]
    registry.begin(1)
    tracemalloc.start()
    for record in records:
        offsets.replay(record, 1, 7)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    registry.end()
    assert peak <= 5_000 * len(records)
    offsets.replay_end_marker(7, True)
    assert len(offsets.stored) == len(records)
    assert offsets.is_empty is False
    assert not offsets.pending.current


def test_a_transaction_for_a_group_needs_a_group_id() -> None:
    coordinator = Coordinator()
    answers: list[Any] = []
    request = commit_request({("topic", 0): position(1)})._replace(producer=TransactionalProducer(7, 0))
    result_of(coordinator.offsets.commit("", request, answers.append))
    assert answers == [{("topic", 0): ErrorCode.INVALID_GROUP_ID}]


def test_a_deleted_topic_keeps_offsets_that_were_committed_afterwards() -> None:
    """The topic was created again, and the offsets were stored without a topic ID."""
    offsets = GroupOffsets(SnapshotRegistry())
    for number in range(2):
        value = position(5)._replace(commit_timestamp_ms=WALL_MS + number)
        offsets.replay(OffsetRecord("g", "topic", number, value), 1, -1)
    assert offsets.of_topic(topic("topic", 10), WALL_MS) == [("topic", 0)]


def test_members_of_a_long_list_leave_in_order() -> None:
    coordinator = Coordinator()
    member_id = stable_member(coordinator, "g").member_id
    names = [*(f"unknown-{number}" for number in range(1_200)), member_id, member_id]
    results: list[LeaveResult] = []
    result_of(coordinator.classic.leave("g", [Leaving(name, None, "") for name in names], results.append))
    (result,) = results
    assert [one.member_id for one, _ in result.members] == names
    assert [error for _, error in result.members[-2:]] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
