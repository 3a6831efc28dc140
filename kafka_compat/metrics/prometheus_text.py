"""Families as Prometheus's text format, version 0.0.4. Pure.

Written here, and not by prometheus-client, because of the many samples: docs/design/decisions/0015 has
the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.family import Family

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_AT_ONCE: Final = 100
"""Lines of a step: some 100 µs."""
_LINES_OF_A_PIECE: Final = 1000


def lines(families: Iterable[Family]) -> Iterator[str]:
    """The text, line by line."""
    for name, kind, about, samples in families:
        yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
        for labels, value in samples:
            yield f"{name}{labels.text} {value}\n"


def next_piece(text: Iterator[str]) -> Steps[bytes]:
    """The next lines as bytes; empty after the last one."""
    found: list[str] = []
    for some in batched(islice(text, _LINES_OF_A_PIECE), _AT_ONCE):
        found += some
        yield None
    return "".join(found).encode()
