"""What a page of Markdown holds: its links, its headings, its examples. Pure."""

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
    """An example: its language (empty where none is named) and its text."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """The page's examples, in their order."""
    return [Block(found[1], found[2]) for found in _FENCE.finditer(page)]


def links(page: str) -> Iterator[str]:
    """Where the page's links lead, but for those to other hosts; an example has none."""
    for target in _LINK.findall(_CODE.sub("", _FENCE.sub("", page))):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: str) -> set[str]:
    """What comes after # in links to the page's headings, as GitHub makes it and our site."""
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
    """The page's paragraphs, items and cells of tables with their lines; no examples and no headings."""
    plain = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), page)
    number = 1
    for part in re.split(r"(\n(?=\s*(?:[-*|#<]|\d+\. |\n)))", plain):
        text = " ".join(part.split())
        if text and not text.startswith(("#", "<", "|--")):
            for cell in text.strip("|").split(" | ") if text.startswith("|") else [text.lstrip("-* ")]:
                yield number + (len(part) - len(part.lstrip("\n"))), cell.strip()
        number += part.count("\n")


def wrapped(page: str, columns: int = 100) -> str:
    """The page with its paragraphs in lines of so many columns; examples, tables and headings stay."""
    parts = []
    for part in re.split(r"(^ *```.*?^ *```$)", page, flags=re.MULTILINE | re.DOTALL):
        is_example = part.lstrip().startswith("```")
        parts.append(
            part if is_example else re.sub(r"(?m)^(?![|#\n]).+(\n(?![|#\n]).+)*", _filled(columns), part)
        )
    return "".join(parts)


def _filled(columns: int) -> Callable[[re.Match[str]], str]:
    """Of one paragraph."""
    return lambda found: textwrap.fill(
        found[0].replace("\n", " "), columns, break_long_words=False, break_on_hyphens=False
    )
