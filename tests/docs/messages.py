"""The broker's log messages at WARN and above, collected from its sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.sources import sources

_OTHERS = ("testing/", "pipelines/", "tools/", "cli/pipeline")
"""Programs other than the broker."""
_SPECIFIER = re.compile(r"%(\.\d+)?[a-z]")
_LETTERS_MIN = 12
"""Shorter messages only join other texts: `%s: %s`."""


def messages() -> Iterator[tuple[str, str]]:
    """Yield each message, with `…` in place of its arguments, and the file that contains it."""
    for path, text in sources():
        if path.startswith(_OTHERS):
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Name(id="log" | "logger"),
                        attr="warning" | "error" | "exception" | "critical",
                    ),
                    args=[ast.Constant(value=str(message)), *_],
                ):
                    if len(re.sub(r"[^a-z]", "", _SPECIFIER.sub("", message))) >= _LETTERS_MIN:
                        yield normal(_SPECIFIER.sub("…", message)), path


def normal(message: str) -> str:
    """Return the message without details that a page may write differently: code marks and the number of
    placeholders.
    """
    return re.sub(r"[…:\s.-]+", " ", message.replace("`", "").replace("…-…", "…")).strip(" ")
