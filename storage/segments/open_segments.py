"""Cache of open segments, which limits the number of file descriptors and loaded indexes of all logs.

A segment that opens its files on demand is registered here. If the limit is exceeded, a segment that was not
used recently is closed (clock algorithm: a segment that was used since the hand last passed it is skipped
once). Closing only drops references: a slice that is being sent keeps its file open, and a closed segment
reopens when it is used.

Rules
1. Active segments may use up to half of the descriptors that `ulimit -n` allows.
2. Sealed segments, which keep indexes in memory while they are open, have a separate, lower limit. Therefore
   a consumer of old records neither fills the memory nor causes the segments of producers to be closed.
3. If opening a file fails for lack of descriptors (EMFILE, ENFILE), segments are closed and the call is
   retried. Segments are also closed to free descriptors for connections, down to the number reserved for
   files.

Segments are opened and closed in several threads: by the event loop, flushes and lookups by timestamp.
"""

from __future__ import annotations

import errno
import resource
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import Buffer, File, FileLock, Filesystem

SEALED_MAX: Final = 512
SEALED_MIN: Final = 8
ACTIVE_MIN: Final = 16
SPARED_AT_ONCE: Final = 16
"""The number of segments to close when no descriptor is available."""

OUT_OF_DESCRIPTORS: Final = frozenset((errno.EMFILE, errno.ENFILE))

T = TypeVar("T")


class Closable(Protocol):
    """Interface of a segment in the cache."""

    sealed: bool
    used: bool
    """Whether the segment was used since the clock algorithm last examined it."""

    def release(self) -> None:
        """Release all resources that can be reopened, without opening any file."""


def soft_limit() -> int:
    """Return the current descriptor limit of this process (`ulimit -n`)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


class OpenSegments:
    """The open segments of one broker. `descriptors_max` returns the descriptor limit. It is called whenever
    a segment is opened, because the limit may be raised at runtime.
    """

    def __init__(self, descriptors_max: Callable[[], int] = soft_limit) -> None:
        self._descriptors_max = descriptors_max
        self._lock = threading.Lock()
        self._active: OrderedDict[Closable, None] = OrderedDict()
        self._sealed: OrderedDict[Closable, None] = OrderedDict()

    @property
    def active_count(self) -> int:
        return len(self._active)

    @property
    def sealed_count(self) -> int:
        return len(self._sealed)

    @property
    def active_max(self) -> int:
        return max(self._descriptors_max() // 2, ACTIVE_MIN)

    @property
    def sealed_max(self) -> int:
        return min(max(self._descriptors_max() // 8, SEALED_MIN), SEALED_MAX)

    def note(self, segment: Closable) -> None:
        """Register `segment` after it opened a file or index, was sealed or became active. Close other
        segments if the limit is exceeded.
        """
        with self._lock:
            if segment.sealed:
                ring, bound = self._sealed, self.sealed_max
                self._active.pop(segment, None)
            else:
                ring, bound = self._active, self.active_max
                self._sealed.pop(segment, None)
            if segment not in ring:
                segment.used = False
                while len(ring) >= bound:
                    _close_one(ring)
                ring[segment] = None

    def forget(self, segment: Closable) -> None:
        """Unregister `segment`, without releasing its resources."""
        with self._lock:
            self._active.pop(segment, None)
            self._sealed.pop(segment, None)

    def spare_all_but(self, kept: int) -> bool:
        """Close segments if more than `kept` are open, to free descriptors. Return whether any was closed."""
        return self.active_count + self.sealed_count > kept and self.spare() > 0

    def spare(self) -> int:
        """Close up to SPARED_AT_ONCE segments, sealed segments first, and return the number closed."""
        with self._lock:
            closed = 0
            for ring in (self._sealed, self._active):
                while ring and closed < SPARED_AT_ONCE:
                    _close_one(ring)
                    closed += 1
            return closed


def _close_one(ring: OrderedDict[Closable, None]) -> None:
    while True:
        segment, _ = ring.popitem(last=False)
        if not segment.used:
            segment.release()
            return
        segment.used = False
        ring[segment] = None


class SparingFilesystem:
    """A file system that closes segments (`spare`) and retries if a call fails for lack of descriptors.

    If `spare` returns 0, no segment is left to close and the error is raised.
    """

    def __init__(self, filesystem: Filesystem, spare: Callable[[], int]) -> None:
        self._filesystem = filesystem
        self._spare = spare
        # Pass these methods through unchanged, because they need no descriptor.
        self.rename, self.link, self.unlink = filesystem.rename, filesystem.link, filesystem.unlink
        self.mkdir, self.rmdir, self.exists = filesystem.mkdir, filesystem.rmdir, filesystem.exists
        self.is_directory, self.file_size = filesystem.is_directory, filesystem.file_size
        self.stamp, self.modified_ms = filesystem.stamp, filesystem.modified_ms
        self.set_modified_ms, self.boot_id = filesystem.set_modified_ms, filesystem.boot_id

    def _again(self, call: Callable[[], T]) -> T:
        while True:
            try:
                return call()
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not self._spare():
                    raise

    def open(self, path: str) -> File:
        return self._again(lambda: self._filesystem.open(path))

    def create(self, path: str) -> File:
        return self._again(lambda: self._filesystem.create(path))

    def read_file(self, path: str) -> bytes:
        return self._again(lambda: self._filesystem.read_file(path))

    def write_file(self, path: str, content: Buffer) -> None:
        self._again(lambda: self._filesystem.write_file(path, content))

    def write_file_atomically(self, path: str, content: Buffer) -> None:
        self._again(lambda: self._filesystem.write_file_atomically(path, content))

    def sync_file(self, path: str) -> None:
        self._again(lambda: self._filesystem.sync_file(path))

    def sync_directory(self, path: str) -> None:
        self._again(lambda: self._filesystem.sync_directory(path))

    def unshare(self, path: str) -> None:
        self._again(lambda: self._filesystem.unshare(path))

    def listdir(self, path: str) -> list[str]:
        return self._again(lambda: self._filesystem.listdir(path))

    def lock(self, path: str) -> FileLock | None:
        return self._again(lambda: self._filesystem.lock(path))
