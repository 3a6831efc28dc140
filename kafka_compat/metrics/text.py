"""Prometheus's text format, version 0.0.4. Pure.

Written here, and not by prometheus-client, because of the many samples: docs/design/decisions/0015 has
the figures.
"""

from __future__ import annotations

from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LINES_OF_A_PIECE: Final = 1000
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def escaped(value: str) -> str:
    """The value of a label, between its quotes."""
    return value.translate(_ESCAPES)


class Family:
    """A family of samples, written as they come. `kind` is its type, as the format has it. `written=False`:
    of this scrape nobody wants it.
    """

    __slots__ = ("_lines", "_name", "_pieces", "_written")

    def __init__(self, name: str, help_text: str, kind: str = "gauge", *, written: bool = True) -> None:
        self._name = name
        self._written = written
        self._lines = [f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"]
        self._pieces: list[bytes] = []

    def add(self, labels: str, value: float) -> None:
        """A sample; `labels` is empty or as `{topic="t"}`, with its values escaped."""
        if not self._written:
            return
        lines = self._lines
        lines.append(f"{self._name}{labels} {value}\n")
        if len(lines) >= _LINES_OF_A_PIECE:
            # Bytes, and not so many small strings: that is a third of the memory.
            self._seal()

    def pieces(self) -> list[bytes]:
        """The family as text."""
        if not self._written:
            return []
        self._seal()
        return self._pieces

    def _seal(self) -> None:
        self._pieces.append("".join(self._lines).encode())
        self._lines.clear()
