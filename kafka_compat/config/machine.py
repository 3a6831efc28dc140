"""What the machine, or the container on it, has."""

from __future__ import annotations

import contextlib
import os
import sys

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes() -> int:
    """The memory that this process may use: the machine's, or less if its cgroup (v2 or v1) says so."""
    found = sys.maxsize
    with contextlib.suppress(ValueError, OSError):
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        try:
            with open(path) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdecimal():
            found = min(found, int(text))
    return found
