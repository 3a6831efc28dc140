"""A metric as a value: a family with its samples. `prometheus_text` and otlp/encoding.py serialize it. Pure.

A family may be large: ten thousand partitions have a sample each. Its samples are therefore an iterable,
which is gone through once and may be computed on the way, and samples of one partition share their labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
UNTYPED: Final = "untyped"

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Pairs = tuple[tuple[str, str], ...]
"""Names and values of labels."""


class Labels:
    """The labels of samples, in the order of their names."""

    __slots__ = ("_text", "pairs")

    def __init__(self, labels: Mapping[str, str] | Pairs = ()) -> None:
        given = labels if isinstance(labels, tuple) else labels.items()
        self.pairs: Pairs = tuple(sorted(given))
        self._text: str | None = None

    @property
    def text(self) -> str:
        """The labels as Prometheus's text has them: empty, or as `{topic="t"}`."""
        if self._text is None:
            written = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in self.pairs)
            self._text = f"{{{written}}}" if written else ""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self.pairs == other.pairs

    def __hash__(self) -> int:
        return hash(self.pairs)


NO_LABELS: Final = Labels()

Sample = tuple[Labels, float]


class Family(NamedTuple):
    """A family of samples. `kind` is GAUGE, COUNTER or UNTYPED; `samples` can be gone through once."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]
