"""Parts of a Markdown page: links, headings, paragraphs and code blocks. No I/O."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from typing import NamedTuple

_FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


class Block(NamedTuple):
    """A code block: its language (empty if none is given) and its text."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the code blocks of the page, in order."""
    return [Block(found[1], found[2]) for found in _FENCE.finditer(page)]


def links(page: str) -> Iterator[str]:
    """Yield the targets of the page's links, except links to other hosts and links in code blocks."""
    for target in _LINK.findall(_CODE.sub("", _FENCE.sub("", page))):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: str) -> set[str]:
    """Return the anchors of the page's headings, in the format that GitHub and our site use."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", page)):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        plain = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 0
        while (anchor := f"{plain}-{number}" if number else plain) in found:
            number += 1
        found.add(anchor)
    return found


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, list item and table cell of the page with its line number, without code blocks
    and headings.
    """
    plain = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), page)
    number = 1
    for part in re.split(r"(\n(?=\s*(?:[-*|#<]|\d+\. |\n)))", plain):
        text = " ".join(part.split())
        if text and not text.startswith(("#", "<", "|--")):
            for cell in text.strip("|").split(" | ") if text.startswith("|") else [text.lstrip("-* ")]:
                yield number + (len(part) - len(part.lstrip("\n"))), cell.strip()
        number += part.count("\n")


def wrapped(page: str, columns: int = 100) -> str:
    """Return the page with its paragraphs wrapped at `columns`. Code blocks, tables and headings are not
    changed.
    """
    parts = []
    for part in re.split(r"(^ *```.*?^ *```$)", page, flags=re.MULTILINE | re.DOTALL):
        is_example = part.lstrip().startswith("```")
        parts.append(
            part if is_example else re.sub(r"(?m)^(?![|#\n]).+(\n(?![|#\n]).+)*", _filled(columns), part)
        )
    return "".join(parts)


def _filled(columns: int) -> Callable[[re.Match[str]], str]:
    """Return a function that wraps one paragraph."""
    return lambda found: textwrap.fill(
        found[0].replace("\n", " "), columns, break_long_words=False, break_on_hyphens=False
    )
