"""A metadata log on a simulated disk, and a model of what it must contain."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from kafka_compat.coordination.raft.effects import AppendLeaderChange
from kafka_compat.coordination.raft.values import OffsetAndEpoch, ReplicaKey
from kafka_compat.coordination.replicated_store.record_frames import frame
from kafka_compat.quorum.batches import read_fetched
from kafka_compat.quorum.metadata_log import MetadataLog
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.testing.simulation.filesystem import SimulatedFilesystem
from tests.storage.log_support import Clock

DIRECTORY = "/data"
VOTERS = tuple(ReplicaKey(node_id) for node_id in (1, 2, 3))


@dataclass
class Model:
    """The batches that a log must contain: base offset, end offset, epoch and bytes of each."""

    start: OffsetAndEpoch = OffsetAndEpoch(0, 0)  # noqa: RUF009
    batches: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    flushed_end: int = 0

    @property
    def end(self) -> int:
        return self.batches[-1][1] if self.batches else self.start.offset

    @property
    def epoch(self) -> int:
        return self.batches[-1][2] if self.batches else self.start.epoch

    def copy(self) -> Model:
        return replace(self, batches=list(self.batches))

    def epoch_before(self, offset: int) -> int:
        """Return the epoch of the last record before a batch."""
        epoch = self.start.epoch
        for base, _, batch_epoch, _ in self.batches:
            if base < offset:
                epoch = batch_epoch
        return epoch


def opened(disk: SimulatedFilesystem) -> MetadataLog:
    """Open the log, with small segments."""
    return MetadataLog.open(DIRECTORY, Clock(), disk, segment_bytes=600)


def content(log: MetadataLog) -> list[tuple[int, int, int, bytes]]:
    """Return all batches of a log from its start on."""
    found = []
    offset = log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, log.end_offset, 1)
        assert part is not None
        data = part.read()
        fetched = read_fetched(data, offset)
        (batch,) = fetched.batches
        assert fetched.data == data
        found.append((batch.base_offset, batch.last_offset + 1, batch.epoch, data))
        offset = batch.last_offset + 1
    return found


class Workload:
    """Random operations on a log, and on its model. If the power fails during an operation, `model` is the
    state before it, and `after` the state after it.
    """

    def __init__(self, log: MetadataLog, model: Model, chance: random.Random) -> None:
        self.log = log
        self.model = model
        self.after = model
        self.is_appending = False
        """Whether the last operation was an append that did not return. Its first batches may be on disk."""
        self.chance = chance

    def step(self) -> None:
        """Perform a random operation."""
        operation = self.chance.choice(
            [self.append] * 5
            + [self.append_fetched] * 3
            + [self.lead] * 2
            + [self.flush] * 4
            + [self.truncate] * 2
            + [self.snapshot, self.install, self.move_start]
        )
        self.after = self.model.copy()
        operation()
        self.model = self.after

    def append(self) -> None:
        records = [frame(1000, 0, self.chance.randbytes(self.chance.randrange(60))) for _ in range(3)]
        model = self.after
        self._appended(lambda: self.log.append_records(model.end, model.epoch, records))

    def append_fetched(self) -> None:
        model = self.after
        base, data, epoch = model.end, b"", model.epoch
        for _ in range(self.chance.randint(1, 3)):
            epoch += self.chance.choice((0, 0, 1))
            records = [Record(timestamp=1, value=frame(1000, 0, b"x"))] * self.chance.randint(1, 3)
            data += build_batch(records, base_offset=base, leader_epoch=epoch)
            base += len(records)
        self._appended(lambda: self.log.append_fetched(data))

    def lead(self) -> None:
        model = self.after
        change = AppendLeaderChange(model.end, model.epoch + 1, 1, VOTERS, VOTERS[:2])
        self._appended(lambda: self.log.append_leader_change(change))

    def _appended(self, append: object) -> None:
        base = self.after.end
        assert callable(append)
        self.is_appending = True
        append()
        self.is_appending = False
        self.after.batches += [batch for batch in content(self.log) if batch[0] >= base]

    def flush(self) -> None:
        self.log.flush()
        self.after.flushed_end = self.after.end

    def truncate(self) -> None:
        choices = [batch[0] for batch in self.after.batches] + [self.after.end]
        # Records in a snapshot are committed, and therefore never removed.
        latest = self.log.checkpoints.latest or OffsetAndEpoch(0, 0)
        offset = self.chance.choice([offset for offset in choices[-4:] if offset >= latest.offset])
        self.after.batches = [batch for batch in self.after.batches if batch[0] < offset]
        self.after.flushed_end = min(self.after.flushed_end, offset)
        # While the truncation is under way, the batches that it removes may be there or not.
        self.model.flushed_end = min(self.model.flushed_end, offset)
        self.log.truncate(offset)

    def snapshot(self) -> None:
        """Take a snapshot of this node's log."""
        latest = self.log.checkpoints.latest or OffsetAndEpoch(0, 0)
        ends = [batch[1] for batch in self.after.batches if latest.offset < batch[1]]
        if ends:
            offset = self.chance.choice(ends)
            snapshot = OffsetAndEpoch(offset, self.after.epoch_before(offset))
            with self.log.checkpoints.write(snapshot, timestamp_ms=1) as writing:
                writing.add(frame(1010, 0, b"state"))
                writing.complete()
            # Only committed records are in a snapshot: they are not truncated.
            self.log.flush()
            self.after.flushed_end = self.after.end
            self.move_start()

    def move_start(self) -> None:
        latest = self.log.checkpoints.latest
        if latest is not None and self.after.start.offset < latest.offset <= self.after.end:
            self.log.move_start(latest.offset)
            self.after.start = latest
            self.after.batches = [batch for batch in self.after.batches if batch[0] >= latest.offset]
            for _ in self.log.delete_files():
                pass
            self.log.checkpoints.delete_old()

    def install(self) -> None:
        """Receive a snapshot from a leader, and install it."""
        snapshot = OffsetAndEpoch(self.after.end + self.chance.randint(1, 9), self.after.epoch + 1)
        with self.log.checkpoints.write(snapshot, timestamp_ms=1) as writing:
            writing.add(frame(1010, 0, b"state"))
            self.after.start, self.after.batches, self.after.flushed_end = snapshot, [], snapshot.offset
            writing.complete()
        self.log.install(snapshot)
