"""Idempotent producers and transactions of one partition, and Kafka's snapshot file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.storage import errors
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.log.producer_state import Duplicate, ProducerState
from kafka_compat.storage.records.batch import BatchHeader, read_header
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, Record, build_batch, build_marker
from kafka_compat.storage.segments.txn_index import AbortedTxn, TransactionIndex
from tests.storage.record_oracle import RecordOracle
from tests.support import java

MAX_SEQUENCE = 2**31 - 1
NOW_MS = 1_000_000
PRODUCER = 7


class Partition:
    """A log that stores only its end offset and its producer state."""

    def __init__(self, state: ProducerState | None = None, end_offset: int = 0) -> None:
        self.state = ProducerState() if state is None else state
        self.end_offset = end_offset

    def append(
        self,
        sequence: int,
        count: int = 1,
        *,
        producer: int = PRODUCER,
        epoch: int = 0,
        transactional: bool = False,
        now_ms: int = NOW_MS,
    ) -> Duplicate | None:
        """Append a batch in the way in which a leader appends a batch from a client."""
        batch = build_batch(
            [Record(timestamp=now_ms)] * count,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        duplicate = self.state.check(read_header(batch), now_ms)
        if duplicate is None:
            self.store(batch)
        return duplicate

    def end(
        self,
        kind: ControlRecordType,
        *,
        producer: int = PRODUCER,
        epoch: int = 0,
        coordinator_epoch: int = 0,
    ) -> AbortedTxn | None:
        """Append a transaction marker from the coordinator."""
        marker = EndTransactionMarker(kind, coordinator_epoch)
        batch = build_marker(marker, producer_id=producer, producer_epoch=epoch, timestamp=NOW_MS)
        assert self.state.check(read_header(batch), NOW_MS, marker) is None
        return self.store(batch)

    def store(self, batch: bytes) -> AbortedTxn | None:
        header = read_header(batch)
        aborted = self.state.apply(header, batch, base_offset=self.end_offset)
        self.end_offset += header.record_count
        return aborted


def test_a_retry_of_any_of_the_last_five_batches_returns_its_offset() -> None:
    partition = Partition(end_offset=100)
    for sequence in range(0, 14, 2):
        assert partition.append(sequence, 2) is None
    for sequence in range(4, 14, 2):
        assert partition.append(sequence, 2) == Duplicate(100 + sequence, 101 + sequence, NOW_MS)
    assert partition.end_offset == 114
    with pytest.raises(errors.OutOfOrderSequence):
        partition.append(2, 2)


@pytest.mark.parametrize(("sequence", "count"), [(3, 1), (5, 1), (0, 1), (0, 4), (1, 2)])
def test_gaps_and_overlaps_are_rejected_as_out_of_order(sequence: int, count: int) -> None:
    partition = Partition()
    partition.append(0, 2)
    with pytest.raises(errors.OutOfOrderSequence):
        partition.append(sequence, count)
    assert partition.append(2) is None


def test_an_unknown_producer_can_start_at_any_sequence() -> None:
    partition = Partition()
    assert partition.append(42, producer=1, epoch=3) is None
    with pytest.raises(errors.OutOfOrderSequence):
        partition.append(44, producer=1, epoch=3)
    assert partition.append(0, producer=2) is None


def test_sequences_wrap_to_zero_after_the_maximum() -> None:
    partition = Partition()
    assert partition.append(MAX_SEQUENCE - 1, 2) is None
    assert partition.append(0) is None
    partition = Partition()
    assert partition.append(MAX_SEQUENCE - 1, 4) is None
    assert partition.append(MAX_SEQUENCE - 1, 4) == Duplicate(0, 3, NOW_MS)
    with pytest.raises(errors.OutOfOrderSequence):
        partition.append(1)
    assert partition.append(2) is None


def test_a_new_epoch_starts_at_sequence_zero_and_fences_the_old_epoch() -> None:
    partition = Partition()
    partition.append(0, 5)
    with pytest.raises(errors.OutOfOrderSequence):
        partition.append(5, epoch=1)
    assert partition.append(0, 5, epoch=1) is None
    with pytest.raises(errors.InvalidProducerEpoch):
        partition.append(5, epoch=0)
    with pytest.raises(errors.InvalidProducerEpoch):
        partition.append(0, 5, epoch=0)
    assert partition.append(0, 5, epoch=1) == Duplicate(5, 9, NOW_MS)


def test_a_marker_with_a_new_epoch_fences_the_old_epoch() -> None:
    partition = Partition()
    partition.append(0, transactional=True)
    partition.end(ControlRecordType.ABORT, epoch=1)
    with pytest.raises(errors.InvalidProducerEpoch):
        partition.append(1, transactional=True)
    with pytest.raises(errors.OutOfOrderSequence):
        partition.append(1, epoch=1)
    assert partition.append(0, epoch=1) is None


def test_a_marker_of_the_same_epoch_does_not_affect_the_sequence() -> None:
    partition = Partition()
    partition.append(0, 3, transactional=True)
    partition.end(ControlRecordType.COMMIT)
    assert partition.append(0, 3, transactional=True) == Duplicate(0, 2, NOW_MS)
    assert partition.append(3, transactional=True) is None


def test_a_marker_of_a_replaced_coordinator_is_fenced() -> None:
    partition = Partition()
    partition.append(0, transactional=True)
    partition.end(ControlRecordType.COMMIT, coordinator_epoch=5)
    with pytest.raises(errors.TransactionCoordinatorFenced):
        partition.end(ControlRecordType.COMMIT, coordinator_epoch=4)
    partition.end(ControlRecordType.COMMIT, coordinator_epoch=5)


def test_non_transactional_records_are_rejected_during_a_transaction() -> None:
    partition = Partition()
    partition.append(0, transactional=True)
    with pytest.raises(errors.InvalidTxnState):
        partition.append(1)
    partition.end(ControlRecordType.COMMIT)
    assert partition.append(1) is None


def test_coordinator_batches_have_no_sequence() -> None:
    partition = Partition()
    for _ in range(3):
        assert partition.append(-1, epoch=1, transactional=True) is None
    with pytest.raises(errors.InvalidProducerEpoch):
        partition.append(-1, epoch=0, transactional=True)


def test_readers_stop_before_the_first_open_transaction() -> None:
    partition = Partition()
    assert partition.state.last_stable_offset(1 << 40) == 1 << 40
    partition.append(0, 10)
    assert partition.state.last_stable_offset(10) == 10
    partition.append(0, 5, producer=1, transactional=True)
    partition.append(0, 5, producer=2, transactional=True)
    assert partition.state.last_stable_offset(20) == 10
    assert partition.state.last_stable_offset(8) == 8
    partition.end(ControlRecordType.COMMIT, producer=1)
    assert partition.state.last_stable_offset(20) == 10, "the marker at offset 20 is not replicated yet"
    assert partition.state.last_stable_offset(21) == 15
    partition.end(ControlRecordType.ABORT, producer=2)
    assert partition.state.last_stable_offset(22) == 22


def test_a_transaction_open_for_too_long_is_found() -> None:
    partition = Partition()
    partition.append(0, producer=1, transactional=True)
    assert not partition.state.has_open_since(NOW_MS)
    assert partition.state.has_open_since(NOW_MS + 1)
    partition.end(ControlRecordType.COMMIT, producer=1)
    partition.append(0, producer=2)
    assert not partition.state.has_open_since(NOW_MS + 1)


def test_aborting_a_transaction_returns_its_index_entry() -> None:
    partition = Partition()
    partition.append(0, 5, producer=1, transactional=True)
    partition.append(0, 5, producer=2, transactional=True)
    assert partition.end(ControlRecordType.ABORT, producer=2) == AbortedTxn(2, 5, 10, last_stable_offset=0)
    assert partition.end(ControlRecordType.ABORT, producer=1) == AbortedTxn(1, 0, 11, last_stable_offset=12)
    assert partition.end(ControlRecordType.ABORT, producer=1) is None, "no snapshot was written"
    partition.append(5, producer=1, transactional=True)
    assert partition.end(ControlRecordType.COMMIT, producer=1) is None


def test_completed_transactions_use_bounded_memory_and_do_not_hold_back_readers() -> None:
    partition = Partition()
    for number in range(3000):
        partition.append(number, transactional=True)
        partition.end(ControlRecordType.COMMIT)
    assert len(partition.state._completed) <= 1000
    assert partition.state.last_stable_offset(partition.end_offset - 1) < partition.end_offset
    assert partition.state.last_stable_offset(partition.end_offset) == partition.end_offset


def test_a_control_batch_emptied_by_compaction_is_ignored() -> None:
    partition = Partition()
    header = read_header(
        build_marker(
            EndTransactionMarker(ControlRecordType.COMMIT, 0), producer_id=1, producer_epoch=0, timestamp=1
        )
    )
    assert partition.state.apply(header.replace(record_count=0, base_offset=5), b"") is None


def test_idle_producers_expire_except_within_a_transaction() -> None:
    partition = Partition(ProducerState(expiration_ms=1000))
    partition.append(0, producer=1)
    partition.append(0, producer=2, transactional=True)
    partition.state.remove_expired(NOW_MS + 999)
    assert set(partition.state.entries) == {1, 2}
    partition.state.remove_expired(NOW_MS + 1000)
    assert set(partition.state.entries) == {2}
    assert partition.append(500, producer=1) is None


def test_expired_producers_are_removed_on_appends_every_ten_minutes() -> None:
    partition = Partition(ProducerState(expiration_ms=1000))
    partition.append(0, producer=1)
    partition.append(0, producer=2, now_ms=NOW_MS + 599_999)
    assert set(partition.state.entries) == {1, 2}
    partition.append(1, producer=2, now_ms=NOW_MS + 600_000)
    assert set(partition.state.entries) == {2}


def test_a_snapshot_keeps_retries_from_being_stored_twice() -> None:
    partition = Partition()
    for sequence in range(3):
        partition.append(sequence, epoch=2)
    restarted = Partition(ProducerState.decode_snapshot(partition.state.encode_snapshot()), 3)
    assert restarted.append(2, epoch=2) == Duplicate(2, 2, NOW_MS)
    with pytest.raises(errors.OutOfOrderSequence):
        restarted.append(1, epoch=2)
    with pytest.raises(errors.InvalidProducerEpoch):
        restarted.append(3, epoch=1)
    assert restarted.append(3, epoch=2) is None


def test_open_transactions_are_restored_from_a_snapshot() -> None:
    partition = Partition(end_offset=50)
    partition.append(0, transactional=True)
    state = ProducerState.decode_snapshot(partition.state.encode_snapshot())
    assert state.last_stable_offset(60) == 50
    restarted = Partition(state, 51)
    assert restarted.end(ControlRecordType.ABORT) == AbortedTxn(PRODUCER, 50, 51, 52)


def busy_partition() -> Partition:
    partition = Partition(end_offset=1000)
    partition.append(0, 3, producer=1)
    partition.append(MAX_SEQUENCE - 1, 4, producer=2, epoch=9)
    partition.append(0, 2, producer=3, transactional=True)
    partition.append(0, 2, producer=4, transactional=True)
    partition.end(ControlRecordType.ABORT, producer=4, epoch=1, coordinator_epoch=6)
    return partition


def test_kafka_reads_our_snapshot_and_writes_an_identical_one(oracle: RecordOracle) -> None:
    for state in (busy_partition().state, ProducerState()):
        snapshot = state.encode_snapshot()
        assert oracle.rewrite_snapshot(snapshot) == snapshot
        assert ProducerState.decode_snapshot(snapshot).encode_snapshot() == snapshot


def test_kafkas_dump_tool_reads_snapshots_and_transaction_indexes(tmp_path: Path) -> None:
    snapshot = tmp_path / "00000000000000001012.snapshot"
    snapshot.write_bytes(busy_partition().state.encode_snapshot())
    index_file = tmp_path / "00000000000000000000.txnindex"
    TransactionIndex(RealFilesystem(), str(index_file)).append(AbortedTxn(4, 1009, 1011, 1007))
    shown = java.run("kafka-dump-log", "--files", f"{snapshot},{index_file}").stdout
    assert (
        "producerId: 2 producerEpoch: 9 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty"
        in shown
    )
    assert "firstSequence: 2147483646 lastSequence: 1 lastOffset: 1006 offsetDelta: 3" in shown
    assert (
        "producerId: 3 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[1007]"
        in shown
    )
    assert "producerId: 4 producerEpoch: 1 coordinatorEpoch: 6" in shown
    assert "version: 0 producerId: 4 firstOffset: 1009 lastOffset: 1011 lastStableOffset: 1007" in shown


@pytest.mark.parametrize("damage", ["cut", "empty", "version", "flip", "longer"])
def test_invalid_snapshots_are_rejected(damage: str) -> None:
    snapshot = busy_partition().state.encode_snapshot()
    damaged = {
        "cut": snapshot[:-1],
        "empty": b"",
        "version": b"\0\2" + snapshot[2:],
        "flip": snapshot[:20] + bytes((snapshot[20] ^ 1,)) + snapshot[21:],
        "longer": snapshot + b"\0",
    }[damage]
    with pytest.raises(errors.CorruptFile):
        ProducerState.decode_snapshot(damaged)


@given(
    st.lists(
        st.tuples(st.integers(1, 2), st.integers(0, 8), st.integers(1, 3), st.integers(0, 1)),
        max_size=40,
    )
)
@settings(deadline=None)
def test_every_sequence_is_stored_once_and_in_order(
    sends: list[tuple[int, int, int, int]],
) -> None:
    partition = Partition()
    stored: dict[tuple[int, int], list[int]] = {}
    for producer, sequence, count, epoch in sends:
        before = partition.end_offset
        try:
            duplicate = partition.append(sequence, count, producer=producer, epoch=epoch)
        except (errors.OutOfOrderSequence, errors.InvalidProducerEpoch):
            assert partition.end_offset == before
            continue
        sequences = stored.setdefault((producer, epoch), [])
        if duplicate is None:
            assert all(known <= epoch for other, known in stored if other == producer)
            sequences += range(sequence, sequence + count)
        else:
            assert set(range(sequence, sequence + count)) <= set(sequences)
    for sequences in stored.values():
        assert sequences == [*range(sequences[0], sequences[0] + len(sequences))]


def test_a_follower_applies_its_leaders_batches_without_sequence_checks() -> None:
    leader, follower = busy_partition(), Partition(end_offset=1000)
    batches = [
        build_batch([Record(timestamp=NOW_MS)] * 3, producer_id=1, producer_epoch=4, base_sequence=9),
        build_batch([Record(timestamp=NOW_MS)], producer_id=1, producer_epoch=3, base_sequence=90),
    ]
    for batch in batches:
        leader.store(batch)
        follower.store(batch)
    entry = follower.state.entries[1]
    assert (entry.producer_epoch, entry.last_sequence) == (3, 90)


def test_producer_state_is_built_from_a_batch_with_stored_offsets() -> None:
    batch = build_batch(
        [Record(timestamp=1)] * 2, base_offset=500, producer_id=1, producer_epoch=0, base_sequence=0
    )
    header: BatchHeader = read_header(batch)
    state = ProducerState()
    state.apply(header, batch)
    assert state.entries[1].batches[-1].first_offset == 500
