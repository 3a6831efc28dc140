"""The project's own Python sources."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import kafka_compat
from kafka_compat.protocol.codec import COMPILED_CODECS

PACKAGE = Path(next(iter(kafka_compat.__path__)))
GENERATED = {str(Path(*name.split(".")[1:]).with_suffix(".py")) for name in COMPILED_CODECS.values()}
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
