"""Leader epochs of a log and their start offsets (KIP-101, KIP-279), stored in `leader-epoch-checkpoint`.

Epochs and start offsets are both strictly increasing. A follower queries the end offset of an epoch to find
the offset up to which its log matches the leader's log.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

from kafka_compat.storage.directories.checkpoints import decode_number
from kafka_compat.storage.errors import CorruptFile

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1
_VERSION: Final = 0


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


_BEGINNING: Final = (EpochEntry(0, 0),)
"""Entries with only the first epoch, which are shared because most logs have only this epoch."""


class LeaderEpochs:
    """The leader epochs of one log. The owner stores `encode()` when `changed` is set."""

    __slots__ = ("changed", "entries", "latest_epoch")

    def __init__(self, entries: tuple[EpochEntry, ...] = ()) -> None:
        self.entries = entries
        """The entries, oldest first."""
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH
        """The newest epoch, or -1 if there is none."""
        self.changed = False
        """Whether the entries differ from the leader-epoch-checkpoint, so that the next flush stores them."""

    def _set(self, entries: tuple[EpochEntry, ...]) -> None:
        self.entries = entries
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH
        self.changed = True

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` begins at `start_offset`, and return whether this changed the entries.

        Entries that are not before the new one, by epoch or by start offset, are dropped.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} cannot start at {start_offset}")
        entries = self.entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        kept = len(entries)
        while kept and (entries[kept - 1].epoch >= epoch or entries[kept - 1].start_offset >= start_offset):
            kept -= 1
        if not kept and epoch == 0 and start_offset == 0:
            self._set(_BEGINNING)
        else:
            self._set((*entries[:kept], EpochEntry(epoch, start_offset)))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest known epoch up to `epoch`, and the end offset of that epoch.

        Returns (-1, -1) if `epoch` is -1 or above all known epochs. If `epoch` is below all known epochs,
        returns `epoch` and the start offset of the first known epoch.
        """
        if epoch == UNDEFINED_EPOCH or not self.entries or epoch > self.latest_epoch:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        following = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        end_offset = self.entries[following].start_offset
        return (self.entries[following - 1].epoch if following else epoch), end_offset

    def epoch_for(self, offset: int) -> int:
        """Return the epoch in which the record at `offset` was appended, or -1 if it is unknown."""
        following = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[following - 1].epoch if following else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove epochs that begin at `end_offset` or later, and return whether there were any."""
        entries = self.entries
        if not entries or entries[-1].start_offset < end_offset:
            return False
        self._set(tuple([entry for entry in entries if entry.start_offset < end_offset]))
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove the epochs before the log start `start_offset`. Return whether the entries changed."""
        following = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if not following:
            return False
        first = EpochEntry(self.entries[following - 1].epoch, start_offset)
        changed = following > 1 or first != self.entries[0]
        if changed:
            self._set((first, *self.entries[following:]))
        return changed

    def clear(self) -> None:
        self._set(())

    def encode(self) -> bytes:
        """Encode the checkpoint file: its version, the number of entries, then `epoch start-offset` lines."""
        lines = [f"{entry.epoch} {entry.start_offset}\n" for entry in self.entries]
        return f"{_VERSION}\n{len(lines)}\n{''.join(lines)}".encode()

    @classmethod
    def decode(cls, content: bytes) -> LeaderEpochs:
        """Decode a checkpoint file. Raises CorruptFile if a line is missing, malformed or out of order."""
        entries: list[EpochEntry] = []
        try:
            version, count, *lines = content.decode("ascii").splitlines()
            if int(version) != _VERSION:
                raise CorruptFile(f"a leader epoch checkpoint has the unknown version {version}")
            for line in lines:
                epoch_text, offset_text = line.split()
                epoch, start_offset = decode_number(epoch_text, 32), decode_number(offset_text, 64)
                last = entries[-1] if entries else EpochEntry(-1, -1)
                if epoch <= last.epoch or start_offset <= last.start_offset:
                    raise CorruptFile(f"a leader epoch checkpoint is out of order at {line!r}")
                entries.append(EpochEntry(epoch, start_offset))
            if len(lines) != int(count):
                raise CorruptFile(f"a leader epoch checkpoint announces {count} entries but has {len(lines)}")
        except ValueError as error:
            raise CorruptFile(f"a malformed leader epoch checkpoint: {error}") from None
        return cls(tuple(entries))
