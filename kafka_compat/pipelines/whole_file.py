"""Write files atomically: readers never see part of a file, even after a crash or power failure."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: bytes) -> None:
    """Write or replace the file atomically. A crash may leave a file `_NAME`, which the next write reuses."""
    scratch = path.with_name(f"_{path.name}")
    scratch.write_bytes(content)
    sync(scratch)
    os.replace(scratch, path)
    sync(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    write_whole(path, json.dumps(value, indent=1).encode())


def holds_more_than(directory: Path, names: Collection[str]) -> bool:
    """Return whether `directory` contains files other than `names`, or exists but is not a directory. A crash
    during the creation of a job's directory may leave the files in `names`.
    """
    if not directory.exists():
        return False
    return not directory.is_dir() or any(path.name not in names for path in directory.iterdir())


def sync(path: Path) -> None:
    """Sync a file's content, or the names in a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
