"""Random samples of the project's prose, for review by a technical editor.

`python -m tests.docs.samples [--count 100] [--seed N]` prints numbered sentences, in equal parts from eight
kinds of text: pages, log messages, documentation of settings, help of commands, the web console, first lines
of docstrings, comments, and names of tests. Without --seed, each run selects different sentences and prints
its seed.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.docs.markdown import paragraphs
from tests.support.servers import PROJECT

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
WORDS_MIN = 3
NO_PROSE = ("#!", "# ---", "# type", "# noqa")
"""Prefixes of comments that are not prose."""
Sample = tuple[str, str]
"""The location, as file:line, and the text."""


def sources(*roots: str) -> Iterator[tuple[Path, str]]:
    """Yield the Python files below these directories, with their text."""
    for root in roots or ("kafka_compat", "storage", "coordination"):
        for path in sorted((PROJECT / root).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.relative_to(PROJECT).parents if parent.name):
                yield path, path.read_text()


def pages() -> Iterator[Sample]:
    """Yield the sentences of the pages, without code, headings and text generated from docstrings."""
    files = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", PROJECT / "CHANGELOG.md"]
    files += [path for path in (PROJECT / "docs").rglob("*.md") if path.parent.name != "parts"]
    for path in sorted(files):
        for line, text in paragraphs(path.read_text()):
            for sentence in re.split(r"(?<=[.:?!])\s+(?=[A-Z`])", text):
                yield f"{path.relative_to(PROJECT)}:{line}", sentence


def log_messages() -> Iterator[Sample]:
    for path, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                first = node.args[0]
                if (
                    node.func.attr in LEVELS
                    and isinstance(first, ast.Constant)
                    and isinstance(first.value, str)
                ):
                    yield f"{path.relative_to(PROJECT)}:{node.lineno}", first.value


def settings() -> Iterator[Sample]:
    """Yield the documentation of the settings."""
    for path, text in sources("kafka_compat/config"):
        for number, line in enumerate(text.splitlines(), 1):
            name, mark, documented = line.partition(" # ")
            if mark and re.match(r"[a-z][a-z.]+ ", name):
                yield f"{path.relative_to(PROJECT)}:{number}", f"{name.split()[0]}: {documented}"


def command_help() -> Iterator[Sample]:
    for path in sorted((PROJECT / "kafka_compat" / "tools" / "help").glob("*.txt")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.relative_to(PROJECT)}:{number}", line.strip()
    for path, text in sources():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.keyword) or node.arg not in ("help", "description", "epilog"):
                continue
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                yield f"{path.relative_to(PROJECT)}:{node.value.lineno}", node.value.value


def page_texts() -> Iterator[Sample]:
    for path in sorted((PROJECT / "kafka_compat" / "page" / "templates").rglob("*.html")):
        text = re.sub(r"\{#.*?#\}", "", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"\{[{%].*?[%}]\}", "…", text, flags=re.DOTALL)
        for piece in re.split(r"<(?!/?(?:b|i|em|code|a|strong|span)\b)[^>]*>", text):
            yield str(path.relative_to(PROJECT)), re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", piece)).strip()


def docstrings() -> Iterator[Sample]:
    for path, text in sources():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if found := ast.get_docstring(node):
                line = getattr(node, "lineno", 1)
                yield f"{path.relative_to(PROJECT)}:{line}", re.split(r"\n\s*\n", found)[0]


def comments() -> Iterator[Sample]:
    for path, _ in sources():
        with path.open("rb") as stream:
            run: list[str] = []
            for token in tokenize.tokenize(stream.readline):
                if token.type == tokenize.COMMENT and not token.string.startswith(
                    ("#!", "# ---", "# type", "# noqa")
                ):
                    run.append(token.string.lstrip("# "))
                    line = token.start[0]
                elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT) and run:
                    yield f"{path.relative_to(PROJECT)}:{line}", " ".join(run)
                    run = []


def names_of_tests() -> Iterator[Sample]:
    for path, text in sources("tests"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(PROJECT)}:{node.lineno}", node.name


KINDS: dict[str, Callable[[], Iterator[Sample]]] = {
    "page": pages,
    "log message": log_messages,
    "setting": settings,
    "help": command_help,
    "console": page_texts,
    "docstring": docstrings,
    "comment": comments,
    "test name": names_of_tests,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.samples", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    print(f"seed {options.seed}")
    number = 0
    for place, (kind, draw) in enumerate(KINDS.items()):
        share = (options.count * (place + 1)) // len(KINDS) - (options.count * place) // len(KINDS)
        found = [
            (where, text)
            for where, text in draw()
            if len(re.findall(r"[a-z]+", text.lower().removeprefix("test_"))) >= WORDS_MIN
        ]
        for where, text in chance.sample(found, share):
            number += 1
            print(f"{number}. [{kind}] {where}\n   {' '.join(text.split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
