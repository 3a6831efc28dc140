"""Serialize families in Prometheus's text format, version 0.0.4. No I/O.

prometheus-client is too slow for the number of samples: see the figures in docs/design/decisions/0015.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.family import Family

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_AT_ONCE: Final = 100
"""Number of samples between two yields, which take about 100 µs."""
_PIECE_CHARACTERS: Final = 1 << 16


def text_of(families: Iterable[Family]) -> Iterator[str]:
    """Yield the families in text format, in chunks of whole lines."""
    for name, kind, about, samples in families:
        yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
        for some in batched(samples, _AT_ONCE):
            yield "".join([f"{name}{labels.text} {value}\n" for labels, value in some])


def next_piece(text: Iterator[str]) -> Steps[bytes]:
    """Return the next lines as bytes, or empty bytes at the end."""
    found: list[str] = []
    size = 0
    for some in text:
        found.append(some)
        size += len(some)
        if size >= _PIECE_CHARACTERS:
            break
        yield None
    return "".join(found).encode()
