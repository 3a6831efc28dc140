"""Whether a log directory may have lost what was written and not synced.

The end of a process alone, kill -9 included, loses nothing of that: the kernel has it. The end of the
machine may lose any of it, the end of one segment as well as the whole of the next, so that a log has a
hole which was never there before. A file in each directory tells the two apart: it holds the boot in which
the logs were opened last.
"""

from __future__ import annotations

from kafka_compat.storage.filesystem import Filesystem

BOOT_MARKER = ".kafka_compat_boot"


def may_have_lost_writes(filesystem: Filesystem, directory: str) -> bool:
    """Whether the machine was restarted since `mark_boot`. False when that is unknown: in a directory
    that another Kafka wrote to last, or on a system that does not tell one boot from another.
    """
    path = f"{directory}/{BOOT_MARKER}"
    if not filesystem.exists(path):
        return False
    marked, present = filesystem.read_file(path).decode("ascii", "replace"), filesystem.boot_id()
    return marked != present and bool(present)


def mark_boot(filesystem: Filesystem, directory: str) -> None:
    """Note the present boot, durably, before anything is written to the logs."""
    content = filesystem.boot_id().encode()
    path = f"{directory}/{BOOT_MARKER}"
    if not filesystem.exists(path) or filesystem.read_file(path) != content:
        filesystem.write_file_atomically(path, content)
