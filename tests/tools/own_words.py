"""Runs of eight words that our texts share with the strings in Kafka's jars.

`python -m tests.tools.own_words` prints them: one line per run, with the file and line of ours.

Our texts are the string literals of the product, its data files, and the pages. Kafka's are the constants of
the class files in kafka-*.jar. Words are lower case letters and digits; placeholders are no words. A text in
EXCEPTIONS is no finding.
"""

from __future__ import annotations

import ast
import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kafka_compat.tools.options import flags_of, help_of
from tests.support import kafka_jars
from tests.support.servers import PROJECT

RUN: Final = 8
"""How many consecutive words make a finding."""
VERSIONS: Final = (*kafka_jars.BROKER_VERSIONS, kafka_jars.TOOLS_VERSION)
_PACKAGES: Final = ("kafka_compat", "storage", "coordination")
_DATA: Final = (".txt", ".json", ".html", ".js", ".css", ".svg")
_PLACEHOLDERS: Final = re.compile(r"%(?:\.\d+)?[a-z]\b|\{[^{}]*\}|\x01")
_WORD: Final = re.compile(r"[a-z0-9]+")

EXCEPTIONS: Final[dict[str, str]] = {}
"""A run of words that may be equal, to the reason."""


class Text(NamedTuple):
    """One of our texts: the file relative to the project, its first line, and the text."""

    path: str
    line: int
    text: str


class Finding(NamedTuple):
    """A maximal run of words that one of our texts shares with Kafka."""

    path: str
    line: int
    words: str


def words_of(text: str) -> list[str]:
    """The words of a text, without placeholders."""
    return _WORD.findall(_PLACEHOLDERS.sub(" ", text).lower())


def runs_of(texts: Iterator[str]) -> set[str]:
    """Every run of RUN words in these texts."""
    found: set[str] = set()
    for text in texts:
        words = words_of(text)
        for start in range(len(words) - RUN + 1):
            found.add(" ".join(words[start : start + RUN]))
    return found


def texts_of_jars(version: str) -> Iterator[str]:
    """The string constants of that version's classes, each as often as it occurs."""
    for jar in sorted(kafka_jars.jars(version).glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".class"):
                    yield from constants(archive.read(name))


def constants(data: bytes) -> Iterator[str]:
    """The texts with blanks among the UTF-8 entries of a class file's constant pool."""
    (count,) = struct.unpack_from(">H", data, 8)
    place, number = 10, 1
    while number < count:
        tag = data[place]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, place + 1)
            text = data[place + 3 : place + 3 + length]
            if b" " in text:
                yield text.decode("utf-8", "replace")
            place += 3 + length
        else:
            place += {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 15: 4, 16: 3, 19: 3, 20: 3}.get(tag, 5)
            # A long and a double take two numbers.
            number += tag in (5, 6)
        number += 1


def our_texts(root: Path = PROJECT) -> Iterator[Text]:
    """The literals of the product, its data files, and the pages."""
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*")):
            name = str(path.relative_to(root))
            if path.suffix == ".py":
                yield from literals(name, path.read_text(encoding="utf-8"))
            elif path.suffix in _DATA:
                yield from _data(name, path)
    for path in [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]:
        yield Text(str(path.relative_to(root)), 1, path.read_text(encoding="utf-8"))


def literals(name: str, source: str) -> Iterator[Text]:
    """The string literals of a Python file; the pieces of an f-string are one text."""
    inner: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            pieces = [piece for piece in node.values if isinstance(piece, ast.Constant)]
            inner.update(map(id, pieces))
            yield Text(name, node.lineno, " ".join(str(piece.value) for piece in pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield Text(name, node.lineno, node.value)


def _data(name: str, path: Path) -> Iterator[Text]:
    if path.parent.name == "help":
        page = help_of(path.stem)
        yield Text(name, 1, page[0])
        flags = flags_of(path.stem)
        if flags:
            for flag in flags:
                yield Text(name, 1, flag.text)
            return
    yield Text(name, 1, path.read_text(encoding="utf-8"))


def findings(texts: Iterator[Text], theirs: set[str]) -> list[Finding]:
    """The runs of these texts that are among Kafka's and no exceptions."""
    allowed = runs_of(iter(EXCEPTIONS))
    found = []
    for text in texts:
        words = words_of(text.text)
        start = 0
        while start + RUN <= len(words):
            end = start
            while end + RUN <= len(words):
                run = " ".join(words[end : end + RUN])
                if run not in theirs or run in allowed:
                    break
                end += 1
            if end > start:
                found.append(Finding(text.path, text.line, " ".join(words[start : end - 1 + RUN])))
            start = end + 1
    return found


def kafkas_runs() -> set[str]:
    """The runs in the jars of every version."""
    return runs_of(text for version in VERSIONS for text in texts_of_jars(version))


def main() -> int:
    """Print the findings; 1 if there are any."""
    found = findings(our_texts(), kafkas_runs())
    for path, line, words in found:
        print(f"{path}:{line}: {words}")
    print(f"{len(found)} runs of {RUN} words or more", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
