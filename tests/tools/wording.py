"""Outputs of Kafka's commands without their wording, because this project's commands word the same messages
differently.

sentences.txt maps Kafka's sentences to this project's: a line with Kafka's sentence, where "…" stands for
omitted words and {} for a value, is followed by an indented line with this project's sentence. Texts of error
codes are replaced by the names of the codes. Of help texts, only the flags remain, with their arguments and
defaults, and whether they are required.
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
    """Return the output with this project's sentences in place of Kafka's, and help texts reduced to their
    flags.
    """
    before, table, after = _parts(text)
    if table == "usage: ":
        before += _without_usage(after)
    elif table:
        before += "\n".join(flags_in(table + after))
    # Apply this to both outputs, because brokers' messages are Kafka's.
    for pattern, ours in _sentences():
        before = pattern.sub(ours, before)
    for wording, name in _error_texts(is_genuine):
        before = before.replace(wording, f"[{name}]")
    return "\n".join(_neutral_description(line, is_genuine) for line in before.splitlines())


def flags_in(table: str) -> Iterator[str]:
    """Yield the flags in joptsimple's table: name, argument, whether it is required, default, and listed
    names.
    """
    lines = table.splitlines()
    column = lines[0].index("Description")
    left = right = ""
    for line in [*lines[2:], "--"]:
        if line.startswith(("--", "* --")):
            if left:
                yield _flag(left, right)
            left = right = ""
        left += " " + line[:column].strip()
        # The continuation of a broken word starts with two blanks.
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
    found = re.search(r"^(Option(?: \(\* = required\))? +Description|usage: )", text, re.MULTILINE)
    return (text, "", "") if found is None else (text[: found.start()], found[1], text[found.end() :])


def _without_usage(text: str) -> str:
    """Return the usage and the error in one line each, and the flags and headings of argparse4j's help."""
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
    """Return patterns that match Kafka's sentences and their replacements, longest sentence first."""
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
    """Return the texts of error codes with the names of the codes, longest text first. Kafka's texts are
    always included, because brokers use them.
    """
    texts = {text: name for name, text in kafkas_error_texts().items()}
    if not is_genuine:
        texts |= {str(failure_of(code).message): code.name for code in ErrorCode if code}
    return sorted(texts.items(), key=lambda pair: -len(pair[0]))


@cache
def kafkas_error_texts() -> dict[str, str]:
    """Map the name of each error code to its text in Kafka's clients. The class file contains name and text
    in this order.
    """
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
