"""The rules of the share coordinator, in memory."""

from __future__ import annotations

from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.operations import Delete, Initialize, Read, ReadSummary, Write
from kafka_compat.share_coordinator.persister import (
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StoredState,
)
from kafka_compat.share_coordinator.records import Snapshot, Update, coordinator_key, normalized_key
from tests.groups.memory import WALL_MS
from tests.share_coordinator.memory import COLD_MS, KEY, OTHER, TOPIC, LoadedCoordinator

ACKED = StateBatch(10, 19, 2, 1)
OTHER_KEY = SharePartitionKey("group", OTHER, 1)


def write(*batches: StateBatch, start: int = -1, count: int = -1, state: int = 1, leader: int = 0) -> Write:
    return Write(state, leader, start, count, batches)


def test_a_share_partition_must_be_initialized_before_it_is_read_or_written() -> None:
    coordinator = LoadedCoordinator()
    assert coordinator.result(Read(0)).error is ErrorCode.INVALID_REQUEST
    assert coordinator.result(write(ACKED)).error is ErrorCode.INVALID_REQUEST
    assert coordinator.result(ReadSummary(0)).value == StateSummary(0, 0, -1, -1)
    assert coordinator.result(Delete()).error is ErrorCode.NONE
    assert coordinator.log.records == []

    assert coordinator.error(Initialize(1, 10)) is ErrorCode.NONE
    assert coordinator.result(Read(0)).value == StoredState(1, 10, ())
    assert coordinator.result(ReadSummary(0)).value == StateSummary(1, 0, 10, 0)


def test_writes_are_merged_and_the_start_offset_only_rises() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(1, 10))
    assert coordinator.error(write(ACKED, StateBatch(20, 24, 0, 1), count=10)) is ErrorCode.NONE
    assert coordinator.error(write(StateBatch(22, 22, 4, 2), start=15, count=6)) is ErrorCode.NONE
    expected = (
        StateBatch(15, 19, 2, 1),
        StateBatch(20, 21, 0, 1),
        StateBatch(22, 22, 4, 2),
        StateBatch(23, 24, 0, 1),
    )
    assert coordinator.result(Read(0)).value == StoredState(1, 15, expected)
    assert coordinator.error(write(start=12, count=1)) is ErrorCode.NONE
    assert coordinator.result(ReadSummary(0)).value == StateSummary(1, 0, 15, 6)
    assert coordinator.error(write(start=15, count=4)) is ErrorCode.NONE
    assert coordinator.result(ReadSummary(0)).value == StateSummary(1, 0, 15, 6)


def test_epochs_fence_former_leaders_and_states() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(5, -1))
    assert coordinator.error(Read(3)) is ErrorCode.NONE
    assert coordinator.error(Read(2)) is ErrorCode.FENCED_LEADER_EPOCH
    assert coordinator.error(write(ACKED, state=5, leader=2)) is ErrorCode.FENCED_LEADER_EPOCH
    assert coordinator.error(write(ACKED, state=4, leader=3)) is ErrorCode.FENCED_STATE_EPOCH
    assert coordinator.error(write(ACKED, state=6, leader=4)) is ErrorCode.NONE
    # A write does not raise the leader epoch.
    assert coordinator.error(Read(3)) is ErrorCode.NONE
    assert coordinator.error(Initialize(4, 0)) is ErrorCode.FENCED_STATE_EPOCH
    assert coordinator.error(Initialize(5, 0)) is ErrorCode.NONE
    assert coordinator.error(Read(2)) is ErrorCode.FENCED_LEADER_EPOCH


def test_invalid_requests_are_rejected() -> None:
    coordinator = LoadedCoordinator()
    negative = KEY._replace(partition=-1)
    unknown = KEY._replace(partition=2)
    coordinator.ask(Initialize(1, 0))
    for operation in (Initialize(1, 0), Read(0), write(), Delete(), ReadSummary(0)):
        assert coordinator.error(operation, negative) is ErrorCode.INVALID_REQUEST
    for operation in (Initialize(1, 0), Delete(), ReadSummary(0)):
        assert coordinator.error(operation, unknown) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for operation in (Initialize(-1, 0), Read(-1), write(leader=-1), write(state=-1)):
        assert coordinator.error(operation) is ErrorCode.INVALID_REQUEST
    assert coordinator.error(write(StateBatch(5, 4, 2, 1))) is ErrorCode.UNKNOWN_SERVER_ERROR
    coordinator.missing.add(TOPIC)
    for operation in (Initialize(1, 0), Read(0), write(), Delete(), ReadSummary(0)):
        assert coordinator.error(operation) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_snapshot_is_written_after_the_configured_number_of_updates() -> None:
    coordinator = LoadedCoordinator(updates_per_snapshot=2)
    coordinator.ask(Initialize(1, 10))
    for offset in range(10, 16):
        coordinator.ask(write(StateBatch(offset, offset, 2, 1)))
    kinds = [type(record.value) for record in coordinator.log.records]
    assert kinds == [Snapshot, Update, Update, Snapshot, Update, Update, Snapshot]
    last = coordinator.log.records[-1].value
    assert isinstance(last, Snapshot)
    assert last.batches == (StateBatch(10, 15, 2, 1),)
    assert last.snapshot_epoch == 2


def test_cold_share_partitions_get_a_snapshot_and_older_records_are_deleted() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(1, 10))
    coordinator.ask(Initialize(1, 10), OTHER_KEY)
    coordinator.ask(write(ACKED))
    coordinator.advance(COLD_MS)
    (*_, first, second) = coordinator.log.records
    assert first.value == Snapshot(1, 1, 0, 10, 0, WALL_MS, WALL_MS + COLD_MS, (ACKED,))
    assert isinstance(second.value, Snapshot)
    # All share-partitions are cold now.
    coordinator.advance(COLD_MS)
    assert coordinator.log.records == [first, second]
    coordinator.ask(Initialize(2, 10))
    coordinator.advance(COLD_MS)
    assert [record.key for record in coordinator.log.records] == [OTHER_KEY, KEY, KEY, OTHER_KEY]


def test_the_log_is_deleted_up_to_the_end_if_no_state_is_left() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(1, 10))
    coordinator.ask(Delete())
    assert coordinator.log.records[-1].value is None
    coordinator.advance(COLD_MS)
    assert coordinator.log.records == []
    assert coordinator.error(Read(0)) is ErrorCode.INVALID_REQUEST


def test_uncommitted_records_are_not_needed_to_prune_the_log() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(1, 10))
    coordinator.commits = False
    assert coordinator.ask(Initialize(2, 10)) == []
    coordinator.coordinator.prune()
    coordinator.scheduler.advance()
    assert coordinator.log.start_offset == 0


def test_states_of_deleted_topics_are_deleted() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(1, 10))
    coordinator.ask(Initialize(1, 10), OTHER_KEY)
    coordinator.coordinator.forget_topics([TOPIC])
    coordinator.advance(0)
    assert coordinator.log.records[-1] == (KEY, None)
    assert coordinator.result(ReadSummary(0)).value == StateSummary(0, 0, -1, -1)
    assert coordinator.result(Read(0), OTHER_KEY).value == StoredState(1, 10, ())


def test_states_of_topics_deleted_during_loading_are_deleted_later() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(1, 10))
    found = coordinator.coordinator
    found.load(0)
    # A second shard, which is still being loaded.
    found._runtime.load(1, delay=True)
    found.forget_topics([OTHER])
    found._runtime.unload(1)
    coordinator.ask(Initialize(1, 10), OTHER_KEY)
    found.prune()
    coordinator.advance(0)
    assert coordinator.log.records[-1] == (OTHER_KEY, None)


def test_results_wait_until_their_state_is_committed() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(1, 10))
    coordinator.commits = False
    written, read = coordinator.ask(write(ACKED)), coordinator.ask(Read(0))
    assert (written, read) == ([], [])
    coordinator.log.replicate(1)
    assert [result.error for result in written] == [ErrorCode.NONE]
    assert [result.value for result in read] == [StoredState(1, 10, (ACKED,))]


def test_a_write_without_enough_replicas_in_time_is_not_available() -> None:
    coordinator = LoadedCoordinator()
    coordinator.ask(Initialize(1, 10))
    coordinator.commits = False
    results = coordinator.ask(write(ACKED))
    coordinator.scheduler.advance(5_000)
    assert [result.error for result in results] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_another_broker_is_not_the_coordinator() -> None:
    coordinator = LoadedCoordinator()
    coordinator.coordinator.unload(0)
    result = coordinator.result(Read(0))
    assert result.error is ErrorCode.NOT_COORDINATOR
    assert result.message == "Unable to read share group state: This is not the correct coordinator."


def test_the_key_of_a_coordinator_is_checked_and_normalized() -> None:
    key = coordinator_key("a:b", TOPIC, 7)
    assert normalized_key(key) == key
    group, topic, _ = key.rsplit(":", 2)
    assert normalized_key(f"{group}:{topic}==:+07") == key
    for invalid in ("", "a", f"{topic}:1", f" :{topic}:1", "g:topic:1", f"g:{topic}:x", f"g:{topic}:"):
        assert normalized_key(invalid) is None
