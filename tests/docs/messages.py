"""What the broker's log may say at WARN and above, read from its sources. Pure but for reading them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.sources import sources

_OTHERS = ("testing/", "pipelines/", "tools/", "cli/pipeline")
"""Programs beside the broker."""
_SPECIFIER = re.compile(r"%(\.\d+)?[a-z]")
_LETTERS_MIN = 12
"""What has fewer is made of what others say: `%s: %s`."""


def messages() -> Iterator[tuple[str, str]]:
    """Each message with `…` for what is filled in, and the file that has it."""
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
    """Without what a page may write otherwise: marks of code, and how much is left open."""
    return re.sub(r"[…:\s.-]+", " ", message.replace("`", "").replace("…-…", "…")).strip(" ")
