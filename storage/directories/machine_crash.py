"""Detection of machine crashes, after which a log directory may have lost writes that were not synced.

A process that ends, even by kill -9, loses no writes: the kernel holds them. A machine crash may lose any
unsynced write, such as the end of one segment or all of the next, which leaves a hole in the log. A file in
each directory distinguishes the two cases: it contains the ID of the boot in which the logs were last opened.
"""

from __future__ import annotations

from kafka_compat.storage.filesystem import Filesystem

BOOT_MARKER = ".kafka_compat_boot"


def may_have_lost_writes(filesystem: Filesystem, directory: str) -> bool:
    """Whether the machine was restarted since `mark_boot`. False if this is unknown: in a directory last
    written by another Kafka or on a system without boot IDs.
    """
    path = f"{directory}/{BOOT_MARKER}"
    if not filesystem.exists(path):
        return False
    marked, present = filesystem.read_file(path).decode("ascii", "replace"), filesystem.boot_id()
    return marked != present and bool(present)


def mark_boot(filesystem: Filesystem, directory: str) -> None:
    """Record the current boot durably, before anything is written to the logs."""
    content = filesystem.boot_id().encode()
    path = f"{directory}/{BOOT_MARKER}"
    if not filesystem.exists(path) or filesystem.read_file(path) != content:
        filesystem.write_file_atomically(path, content)
