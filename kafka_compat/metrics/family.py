"""A metric family with its samples, as serialized by prometheus_text and otlp/encoding.py. No I/O.

A family may have a sample for each of ten thousand partitions. The samples are therefore an iterable, which
is read once and may compute samples lazily. Samples of one partition share their labels.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
UNTYPED: Final = "untyped"

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Pairs = tuple[tuple[str, str], ...]
"""Label names and values."""


class Labels:
    """A set of labels for samples."""

    __slots__ = ("pairs", "text")

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        written = [
            f'{name}="{value if value.isalnum() else value.translate(_ESCAPES)}"' for name, value in pairs
        ]
        self.text = f"{{{','.join(written)}}}" if written else ""
        """The labels in Prometheus's text format: empty, or such as `{topic="t"}`."""

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Self:
        """Create labels, sorted by name."""
        return cls(tuple(sorted(labels.items())))

    def with_number(self, name: str, number: int) -> "Labels":
        """Return these labels (at least one) with an additional label. Optimized for many partitions."""
        found, value = Labels.__new__(Labels), str(number)
        found.pairs = ((name, value), *self.pairs)
        found.text = f'{{{name}="{value}",{self.text[1:]}'
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self.pairs == other.pairs

    def __hash__(self) -> int:
        return hash(self.text)


NO_LABELS: Final = Labels(())

Sample = tuple[Labels, float]


class Family(NamedTuple):
    """A family of samples. `kind` is GAUGE, COUNTER or UNTYPED; `samples` can be iterated once."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]
