"""The project's own Python sources."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import kafka_compat
from kafka_compat.protocol.codec import HOT_APIS

PACKAGE = Path(next(iter(kafka_compat.__path__)))
GENERATED = {f"protocol/messages/{api}_schema.py" for api in HOT_APIS}
"""Generated sources next to the extensions of the compiled build."""


def sources() -> Iterator[tuple[str, str]]:
    """Yield the path, relative to the package, and the text of each file that is not generated."""
    # storage and coordination are directories beside the package, and are linked into it.
    for folder, _, names in os.walk(PACKAGE, followlinks=True):
        for name in names:
            path = Path(folder, name)
            inside = str(path.relative_to(PACKAGE))
            if name.endswith(".py") and inside not in GENERATED:
                yield inside, path.read_text()
