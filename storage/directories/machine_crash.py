"""Detection of machine crashes, after which a log directory may have lost writes that were not synced.

When a process ends, even by kill -9, no writes are lost, because they are in the page cache. A machine crash
may lose any unsynced write. If the end of one segment is lost but a later segment is kept, the log has a
hole. A file in each log directory distinguishes the two cases: it contains the ID of the boot during which
the logs were last opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import Filesystem

BOOT_MARKER = ".kafka_compat_boot"


def may_have_lost_writes(filesystem: Filesystem, directory: str) -> bool:
    """Whether the machine has restarted since the last `mark_boot`. Return False if this is unknown,
    because the directory has no boot marker or the system has no boot IDs.
    """
    path = f"{directory}/{BOOT_MARKER}"
    if not filesystem.exists(path):
        return False
    marked, present = filesystem.read_file(path).decode("ascii", "replace"), filesystem.boot_id()
    return marked != present and bool(present)


def mark_boot(filesystem: Filesystem, directory: str) -> None:
    """Record the ID of the current boot durably. Call this before anything is written to the logs."""
    content = filesystem.boot_id().encode()
    path = f"{directory}/{BOOT_MARKER}"
    if not filesystem.exists(path) or filesystem.read_file(path) != content:
        filesystem.write_file_atomically(path, content)
