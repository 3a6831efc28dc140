"""Lines of standard input, as they come: whoever reads them may have something to do meanwhile."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Iterator
from typing import Final

_PART_BYTES: Final = 64 * 1024
_END_OF_LINE: Final = re.compile(rb"\r\n|\n|\r")


def lines(wait_s: Callable[[], float | None], idle: Callable[[], None]) -> Iterator[str]:
    """Without their ends. After `wait_s()` seconds without input (None: however long it takes) `idle` is
    called.
    """
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):
        # No file is behind it.
        for line in _END_OF_LINE.split(sys.stdin.buffer.read().removesuffix(b"\n")):
            yield line.decode(errors="replace")
        return
    rest = b""
    while True:
        if select.select([descriptor], [], [], wait_s())[0]:
            part = os.read(descriptor, _PART_BYTES)
            if not part:
                break
            # An end of two bytes may come in two parts.
            whole = rest + part
            held = b"\r" if whole.endswith(b"\r") else b""
            *complete, rest = _END_OF_LINE.split(whole.removesuffix(b"\r") if held else whole)
            rest += held
            for line in complete:
                yield line.decode(errors="replace")
        else:
            idle()
    if rest:
        yield rest.removesuffix(b"\r").decode(errors="replace")
