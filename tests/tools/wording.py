"""Outputs of Kafka's commands without their wording, since ours say the same in our own words.

sentences.txt maps Kafka's sentences to ours: a line with Kafka's sentence, where "…" stands for omitted words
and {} for a value, then an indented line with ours. Texts of error codes become the names of the codes.
Of a help, only the flags remain, with their arguments and defaults, and which are required.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from kafka_compat.errors import ErrorCode
from kafka_compat.tools.failure import failure_of
from kafka_compat.tools.options import help_of
from tests.support import kafka_jars
from tests.tools.own_words import constants

_SENTENCES: Final = Path(__file__).parent / "sentences.txt"
_HELP: Final = Path(help_of.__code__.co_filename).parent / "help"
_DESCRIPTION: Final = re.compile(
    r"(This (tool|command)|An interactive shell|Force abort|Describe the state of) .*"
)
_ARGUMENT: Final = re.compile(r" {2}(-.*?)(?: {2,}.*)?| {4}([\w-]+)(?: {2,}.*)?")
_HEADING: Final = re.compile(r"[\w ]+:")


def without_wording(text: str, is_genuine: bool) -> str:
    """The output with our sentences in place of Kafka's, and only the flags of a help."""
    before, table, after = _parts(text)
    if table == "usage: ":
        before += _without_usage(after)
    elif table:
        before += "\n".join(flags_in(table + after))
    # In our output, too: brokers' messages are Kafka's.
    for pattern, ours in _sentences():
        before = pattern.sub(ours, before)
    for wording, name in _error_texts(is_genuine):
        before = before.replace(wording, f"[{name}]")
    return "\n".join(_neutral_description(line, is_genuine) for line in before.splitlines())


def flags_in(table: str) -> Iterator[str]:
    """The flags of joptsimple's table: name, argument, what is required, default, and listed names."""
    lines = table.splitlines()
    column = lines[0].index("Description")
    left = right = ""
    for line in [*lines[2:], "--"]:
        if line.startswith(("--", "* --")):
            if left:
                yield _flag(left, right)
            left = right = ""
        left += " " + line[:column].strip()
        # What a broken word goes on with starts with two blanks.
        cell = line[column:].rstrip()
        right += cell.strip() if right.endswith((".", "-")) and cell.startswith("  ") else f" {cell.rstrip()}"


def _flag(left: str, right: str) -> str:
    spec = re.sub(r"\s", "", left)
    required = " required" if "REQUIRED" in right or spec.startswith("*") else ""
    deprecated = " deprecated" if re.search(r"\(deprecated\)", right, re.IGNORECASE) else ""
    default = re.search(r"\(default: (.*?)\)", right)
    listed = re.findall(r"\t(\S+)", right)
    return f"{spec}{required}{deprecated} {default and default[1].replace(' ', '')} {sorted(listed)}"


def _parts(text: str) -> tuple[str, str, str]:
    found = re.search(r"^(Option +Description|usage: )", text, re.MULTILINE)
    return (text, "", "") if found is None else (text[: found.start()], found[1], text[found.end() :])


def _without_usage(text: str) -> str:
    """The usage in one line, flags and headings of argparse4j's help, and errors, in one line each."""
    usage, empty, rest = text.partition("\n\n")
    usage, error, message = re.sub(r"\s+", " ", usage).partition(": error: ")
    found = ["usage: " + usage, error + message]
    for line in rest.splitlines() if empty else ():
        match = _ARGUMENT.fullmatch(line)
        if match is not None:
            found.append(match[1] or match[2])
        elif _HEADING.fullmatch(line):
            found.append(line)
    return "\n".join(found) + "\n"


def _neutral_description(line: str, is_genuine: bool) -> str:
    is_one = (
        _DESCRIPTION.fullmatch(line)
        if is_genuine
        else line in _descriptions() and not line.startswith("usage:")
    )
    return "DESCRIPTION" if is_one else line


@cache
def _descriptions() -> frozenset[str]:
    return frozenset(path.read_text().partition("\n")[0] for path in _HELP.glob("*.txt")) - {""}


@cache
def _sentences() -> list[tuple[re.Pattern[str], str]]:
    """What matches each sentence of Kafka, and ours as a replacement; those with the longest texts first."""
    lines = _SENTENCES.read_text().splitlines()
    found = []
    for theirs, ours in sorted(zip(lines[::2], lines[1::2], strict=True), key=lambda pair: -len(pair[0])):
        pattern = re.escape(theirs).replace("…", ".*?").replace(r"\{\}", "(.*?)")
        if pattern.endswith("(.*?)"):
            pattern = pattern.removesuffix("(.*?)") + "(.*)"
        first, *rest = ours.strip().replace("\\", r"\\").split("{}")
        replacement = first + "".join(f"\\g<{number}>{text}" for number, text in enumerate(rest, 1))
        found.append((re.compile(pattern), replacement))
    return found


@cache
def _error_texts(is_genuine: bool) -> list[tuple[str, str]]:
    """The texts of error codes, longest first, with the codes' names. Brokers use Kafka's in any case."""
    texts = {text: name for name, text in kafkas_error_texts().items()}
    if not is_genuine:
        texts |= {str(failure_of(code).message): code.name for code in ErrorCode if code}
    return sorted(texts.items(), key=lambda pair: -len(pair[0]))


@cache
def kafkas_error_texts() -> dict[str, str]:
    """The text of each error code in Kafka's clients, by name: the class names both in this order."""
    (jar,) = kafka_jars.jars(kafka_jars.TOOLS_VERSION).glob("kafka-clients-*.jar")
    with zipfile.ZipFile(jar) as archive:
        data = archive.read("org/apache/kafka/common/protocol/Errors.class")
    found: dict[str, str] = {}
    name = ""
    for text in constants(data):
        if text in ErrorCode.__members__:
            name = text
        elif " " in text and name:
            found.setdefault(name, text)
    return found
