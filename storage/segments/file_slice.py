"""Slices of segment files, which responses contain instead of their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.storage.errors import CorruptRecord

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import File

SENDFILE_BYTES_MIN: Final = 32 * 1024
"""Minimum size in bytes of slices that are sent by sendfile. For smaller slices, a read is cheaper."""


class FileSlice:
    """Whole batches in a segment file. The file stays open and readable as long as a slice exists, even if
    the file is deleted.
    """

    __slots__ = ("_data", "file", "position", "size_bytes")

    def __init__(self, file: File, position: int, size_bytes: int) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self._data = b""

    @property
    def fd(self) -> int:
        """The file descriptor, for sendfile."""
        return self.file.fileno()

    def load(self) -> None:
        """Read a small slice in advance, to make a later `read` quick. Raises the same errors as `read`."""
        if self.size_bytes < SENDFILE_BYTES_MIN:
            self._data = self.read()

    def unload(self) -> None:
        """Release the data read by `load`."""
        self._data = b""

    def read(self) -> bytes:
        """Read the slice. Raises CorruptRecord if the file ends before the end of the slice."""
        if self._data:
            return self._data
        data = self.file.pread(self.size_bytes, self.position)
        if len(data) < self.size_bytes:
            raise CorruptRecord(f"a segment ends {self.size_bytes - len(data)} bytes before its last batch")
        return data
