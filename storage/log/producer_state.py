"""State of the idempotent and transactional producers of one partition (KIP-98). No I/O.

A batch is written only if it passes `check`, which applies these rules:
- a batch whose epoch is below the producer's epoch is fenced (InvalidProducerEpoch);
- a batch with the epoch and sequences of any of the producer's last five batches is a retry (Duplicate), and
  one with earlier sequences may be (EarlierSequence);
- an unknown producer may begin with any sequence, because retention may have removed its earlier batches;
- a higher epoch begins at sequence 0, and the same epoch continues where its last batch ended, with 0 after
  2^31 - 1 (otherwise OutOfOrderSequence);
- batches of coordinators have no sequence (-1), and only their epoch is checked;
- while a transaction is open, its producer may not write outside the transaction (InvalidTxnState);
- a marker from a coordinator that has been replaced is rejected (TransactionCoordinatorFenced).

`apply` records a written batch without these checks, because followers and restarting brokers replay a log.
"""

import struct
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from kafka_compat.storage.errors import (
    CorruptFile,
    EarlierSequence,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from kafka_compat.storage.records.batch import (
    CONTROL_FLAG,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
    add_sequence,
)
from kafka_compat.storage.records.crc import crc32c
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, read_marker
from kafka_compat.storage.segments.txn_index import AbortedTxn

BATCHES_RETAINED: Final = 5
EXPIRATION_MS: Final = 86_400_000
_EXPIRATION_CHECK_MS: Final = 600_000
_COMPLETED_MAX: Final = 1000
_EARLIER_MAX: Final = 1 << 30
"""Sequences that are lower by less than this are earlier, since sequences begin again at 0."""
NO_OFFSET: Final = -1

_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEAD: Final = struct.Struct(">hIi")
_SNAPSHOT_CRC_START: Final = 6
_SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")


class Duplicate(NamedTuple):
    """The offsets and largest timestamp (ms) of the stored batch that a retry repeats."""

    base_offset: int
    last_offset: int
    timestamp: int


class ProducerBatch(NamedTuple):
    """One of the most recent batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return add_sequence(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


_NO_BATCH: Final = ProducerBatch(NO_SEQUENCE, NO_OFFSET, 0, NO_TIMESTAMP)


class ProducerEntry:
    """The state of one producer ID in a partition. Unknown numbers are -1."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches: deque[ProducerBatch] = deque(maxlen=BATCHES_RETAINED)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def enter_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


_NO_ENTRIES: Final[dict[int, ProducerEntry]] = {}
_NO_OFFSETS: Final[dict[int, int]] = {}


class ProducerState:
    """The producers of one partition, their open transactions, and recently completed ones."""

    __slots__ = ("_completed", "_entries", "_expiration_ms", "_expire_at_ms", "_ongoing")

    def __init__(self, *, expiration_ms: int = EXPIRATION_MS) -> None:
        self._expiration_ms = expiration_ms
        self._expire_at_ms = 0
        # To save memory, partitions without producers share this empty object.
        self._entries = _NO_ENTRIES
        # Maps the first offset of each open transaction to its producer ID, and the first offset of each
        # completed transaction to its marker's offset.
        self._ongoing = _NO_OFFSETS
        self._completed = _NO_OFFSETS

    @property
    def entries(self) -> Mapping[int, ProducerEntry]:
        """The producer entries by producer ID."""
        return MappingProxyType(self._entries)

    def check(
        self,
        header: BatchHeader,
        now_ms: int,
        marker: EndTransactionMarker | None = None,
        *,
        sequenced: bool = True,
    ) -> Duplicate | None:
        """Check a batch with a producer ID by the rules in the module docstring. Return None if the batch may
        be written, or the stored batch if it is a retry. Raises a ProducerError if the batch is rejected.

        `marker` is the marker in a control batch. Batches that are not `sequenced` come from a coordinator
        and have no sequence numbers. Every ten minutes, `check` also removes inactive producers.
        """
        if now_ms >= self._expire_at_ms:
            self._expire_at_ms = now_ms + _EXPIRATION_CHECK_MS
            self.remove_expired(now_ms)
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        producer_epoch, sequence = header.producer_epoch, header.base_sequence if sequenced else NO_SEQUENCE
        if producer_epoch == entry.producer_epoch and sequence >= 0 and entry.batches:
            last = entry.batches[-1]
            if sequence != (last.last_sequence + 1) & MAX_SEQUENCE:
                last_sequence = add_sequence(sequence, header.last_offset_delta)
                for batch in entry.batches:
                    if batch.last_sequence == last_sequence and batch.first_sequence == sequence:
                        return Duplicate(batch.first_offset, batch.last_offset, batch.timestamp)
                text = f"producer {header.producer_id} sent sequence {sequence} after {last.last_sequence}"
                if (last.last_sequence - last_sequence) & MAX_SEQUENCE < _EARLIER_MAX:
                    raise EarlierSequence(text, entry.batches[0].first_offset)
                raise OutOfOrderSequence(text)
        elif producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(
                f"epoch {producer_epoch} of producer {header.producer_id} is fenced by {entry.producer_epoch}"
            )
        elif sequence > 0 and entry.producer_epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} must begin epoch {producer_epoch} at 0, not {sequence}"
            )
        if header.attributes & CONTROL_FLAG:
            if marker is not None and marker.coordinator_epoch < entry.coordinator_epoch:
                raise TransactionCoordinatorFenced(
                    f"coordinator epoch {marker.coordinator_epoch} is older than {entry.coordinator_epoch}"
                )
        elif entry.current_txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_FLAG:
            raise InvalidTxnState(f"producer {header.producer_id} has an open transaction")
        return None

    def apply(
        self, header: BatchHeader, batch: Buffer, *, base_offset: int | None = None
    ) -> AbortedTxn | None:
        """Record a written batch with a producer ID. `batch` contains its bytes.

        `base_offset` is the base offset of the batch, or None if it is the base offset in `header`.
        Returns the entry for the transaction index if the batch is the marker of an aborted transaction with
        records in this partition.
        """
        if base_offset is None:
            base_offset = header.base_offset
        entry = self._entries.get(header.producer_id)
        if entry is None:
            entry = ProducerEntry(header.producer_id)
            self._add(entry)
        if header.attributes & CONTROL_FLAG:
            # If the cleaner has emptied a control batch, the log no longer contains its transaction.
            marker = read_marker(batch) if header.record_count else None
            return None if marker is None else self._end_transaction(entry, header, base_offset, marker)
        if header.producer_epoch != entry.producer_epoch:
            entry.enter_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        sequence = header.base_sequence
        last_sequence = sequence if sequence < 0 else (sequence + delta) & MAX_SEQUENCE
        timestamp = header.max_timestamp
        entry.batches.append(ProducerBatch(last_sequence, base_offset + delta, delta, timestamp))
        entry.last_timestamp = timestamp
        if header.attributes & TRANSACTIONAL_FLAG and entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = base_offset
            self._begin_transaction(base_offset, header.producer_id)
        return None

    def _add(self, entry: ProducerEntry) -> None:
        if not self._entries:
            self._entries = {}
        self._entries[entry.producer_id] = entry

    def _begin_transaction(self, first_offset: int, producer_id: int) -> None:
        if not self._ongoing:
            self._ongoing = {}
        self._ongoing[first_offset] = producer_id

    def _end_transaction(
        self, entry: ProducerEntry, header: BatchHeader, marker_offset: int, marker: EndTransactionMarker
    ) -> AbortedTxn | None:
        first_offset = entry.current_txn_first_offset
        entry.enter_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        entry.current_txn_first_offset = NO_OFFSET
        if first_offset < 0:
            return None
        self._ongoing.pop(first_offset, None)
        if not self._completed:
            self._completed = {}
        self._completed[first_offset] = marker_offset
        if len(self._completed) > _COMPLETED_MAX:
            # Merge all completed transactions into one, to limit memory if no consumer reads for a long time.
            self._completed = {min(self._completed): marker_offset}
        if marker.type is not ControlRecordType.ABORT:
            return None
        last_stable_offset = min(self._ongoing, default=marker_offset + 1)
        return AbortedTxn(entry.producer_id, first_offset, marker_offset, last_stable_offset)

    # Visibility to consumers

    def has_open_since(self, time_ms: int) -> bool:
        """Whether there is an open transaction whose last record is older than `time_ms`."""
        return any(
            entry is not None and entry.last_timestamp < time_ms
            for entry in map(self._entries.get, self._ongoing.values())
        )

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the offset up to which a read_committed consumer may read.

        Completed transactions whose markers are below `high_watermark` are dropped, because the high
        watermark never decreases.
        """
        if self._completed:
            self._completed = {
                first: marker for first, marker in self._completed.items() if marker >= high_watermark
            }
        if not self._ongoing and not self._completed:
            return high_watermark
        return min(*self._ongoing, *self._completed, high_watermark)

    # Expiry

    def forget_sequences(self) -> None:
        """Let each producer restart its sequence in its current epoch."""
        for entry in self._entries.values():
            entry.batches.clear()

    def remove_expired(self, now_ms: int) -> None:
        """Remove producers that have no open transaction and were inactive for producer.id.expiration.ms."""
        horizon_ms = now_ms - self._expiration_ms
        expired = [
            entry.producer_id
            for entry in self._entries.values()
            if entry.current_txn_first_offset < 0 and entry.last_timestamp <= horizon_ms
        ]
        for producer_id in expired:
            del self._entries[producer_id]

    # Snapshots

    def encode_snapshot(self) -> bytes:
        """Encode a `.snapshot` file in Kafka's version 1.

        The file contains only the last batch of each producer. After a restart, retries of earlier batches
        are found in the log or rejected as out of order, but never stored twice.
        """
        encoded = bytearray(_SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, 0, len(self._entries)))
        for entry in self._entries.values():
            last = entry.batches[-1] if entry.batches else _NO_BATCH
            encoded += _SNAPSHOT_ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        struct.pack_into(">I", encoded, 2, crc32c(memoryview(encoded)[_SNAPSHOT_CRC_START:]))
        return bytes(encoded)

    @classmethod
    def decode_snapshot(cls, content: bytes, *, expiration_ms: int = EXPIRATION_MS) -> Self:
        """Decode a `.snapshot` file. Raises CorruptFile if it is invalid."""
        try:
            version, crc, count = _SNAPSHOT_HEAD.unpack_from(content)
        except struct.error:
            raise CorruptFile(f"a producer snapshot of {len(content)} bytes is truncated") from None
        if version != _SNAPSHOT_VERSION:
            raise CorruptFile(f"a producer snapshot has the unknown version {version}")
        if crc32c(memoryview(content)[_SNAPSHOT_CRC_START:]) != crc:
            raise CorruptFile(f"the CRC of a producer snapshot is not {crc}")
        if len(content) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
            raise CorruptFile(f"a producer snapshot of {len(content)} bytes does not contain {count} entries")
        state = cls(expiration_ms=expiration_ms)
        for (
            producer_id,
            producer_epoch,
            last_sequence,
            last_offset,
            offset_delta,
            timestamp,
            coordinator_epoch,
            current_txn_first_offset,
        ) in _SNAPSHOT_ENTRY.iter_unpack(memoryview(content)[_SNAPSHOT_HEAD.size :]):
            entry = ProducerEntry(
                producer_id, producer_epoch, coordinator_epoch, timestamp, current_txn_first_offset
            )
            if last_offset >= 0:
                entry.batches.append(ProducerBatch(last_sequence, last_offset, offset_delta, timestamp))
            state._add(entry)
            if current_txn_first_offset >= 0:
                state._begin_transaction(current_txn_first_offset, producer_id)
        return state
