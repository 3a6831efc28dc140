"""Sequences of eight words that this project's texts share with the strings in Kafka's jars.

`python -m tests.tools.own_words` prints them: one sequence per line, with the file and line of this project's
text.

This project's texts are the string literals of the product, its data files, and the documentation. Kafka's
texts are the string constants in the class files of kafka-*.jar. Words consist of lower case letters and
digits; placeholders do not count.
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
"""Minimum number of consecutive words in a finding."""
VERSIONS: Final = (*kafka_jars.BROKER_VERSIONS, kafka_jars.TOOLS_VERSION)
_UTF8, _STRING = 1, 8
_DOUBLE: Final = (5, 6)
"""Tags of long and double constants, which take two entries of the constant pool."""
_SIZES: Final = {5: 9, 6: 9, 7: 3, 8: 3, 15: 4, 16: 3, 19: 3, 20: 3}
"""Sizes of constant pool entries in bytes, if they are not 5."""
_PACKAGES: Final = ("kafka_compat", "storage", "coordination")
_DATA: Final = (".txt", ".json", ".html", ".js", ".css", ".svg")
_PLACEHOLDERS: Final = re.compile(r"%(?:\.\d+)?[a-z]\b|\{[^{}]*\}|\x01")
_WORD: Final = re.compile(r"[a-z0-9]+")

_RESPONSES: Final = "messages of responses, which tests/conformance/comparison.py compares with Kafka's"
_SETTINGS: Final = "messages about settings, at startup and in responses: tests/tools/test_same_output.py"
_LOGINS: Final = (
    "messages about logins and certificates: tests/security/test_sasl_conversations.py and others"
)
MESSAGES: Final = {
    "coordination/controller/reassignment.py": _RESPONSES,
    "kafka_compat/broker/entrances.py": _SETTINGS,
    "kafka_compat/cluster/topics.py": _RESPONSES,
    "kafka_compat/config/": _SETTINGS,
    "kafka_compat/errors.py": _RESPONSES,
    "kafka_compat/handlers/": _RESPONSES,
    "kafka_compat/metadata/": _RESPONSES,
    "kafka_compat/quotas/client_quotas.py": _RESPONSES,
    "kafka_compat/replication/in_sync.py": _RESPONSES,
    "kafka_compat/security/": _LOGINS,
    "kafka_compat/telemetry/subscriptions.py": _RESPONSES,
    "storage/records/validation.py": _RESPONSES,
}
"""Maps files and directories that use Kafka's messages to the reason. Docstrings are not messages."""

_NAME: Final = "the name of a setting"
_COLUMNS: Final = "columns or fields of an output, which scripts read"
_PROPERTIES: Final = "a list of properties with their defaults"
EXCEPTIONS: Final = {
    "remote.log.index.file.cache.total.size.bytes": _NAME,
    "remote.log.manager.copy.max.bytes.per.second": _NAME,
    "remote.log.manager.fetch.max.bytes.per.second": _NAME,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _NAME,
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec": _COLUMNS,
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec": _COLUMNS,
    "records sent, records/sec ( MB/sec), ms avg latency, ms max latency": _COLUMNS,
    "baseOffset: lastOffset: count: baseSequence: lastSequence: producerId: producerEpoch: "
    "partitionLeaderEpoch: isTransactional: isControl: deleteHorizonMs:": _COLUMNS,
    "print.timestamp=true|false print.key=true|false print.offset=true|false print.epoch=true|false "
    "print.partition=true|false print.headers=true|false print.value=true|false "
    "key.separator=<key.separator> line.separator=<line.separator> "
    "headers.separator=<headers.separator> null.literal=<null.literal> "
    "key.deserializer=<key.deserializer> value.deserializer=<value.deserializer> "
    "header.deserializer=<header.deserializer>": _PROPERTIES,
    "print.timestamp=true|false print.key=true|false print.offset=true|false print.delivery=true|false "
    "print.epoch=true|false print.partition=true|false print.headers=true|false": _PROPERTIES,
    "parse.key=false parse.headers=false ignore.error=false key.separator=\\t headers.delimiter=\\t "
    "headers.separator=, headers.key.separator=: null.marker=": _PROPERTIES,
    'parse.headers=true and parse.key=true: "h1:v1,h2:v2...\\tkey\\tvalue" parse.key=true: "key\\tvalue" '
    'parse.headers=true: "h1:v1,h2:v2...\\tvalue"': _PROPERTIES,
    "The broker has been unfenced. Transitioning from RECOVERY to RUNNING": "Testcontainers waits for it",
    "The broker does not support the requested SASL mechanism": "kafkajs's error, which the page explains",
}
"""Maps texts that may match Kafka's to the reason."""


class Text(NamedTuple):
    """A text of this project: its file relative to the project, and its first line."""

    path: str
    line: int
    text: str
    is_message: bool = False


class Finding(NamedTuple):
    """A maximal sequence of words shared with Kafka."""

    path: str
    line: int
    words: str


def words_of(text: str) -> list[str]:
    """Return the words of a text, without placeholders."""
    return _WORD.findall(_PLACEHOLDERS.sub(" ", text).lower())


def runs_of(texts: Iterator[str]) -> set[str]:
    """Return all sequences of RUN words in these texts."""
    found: set[str] = set()
    for text in texts:
        words = words_of(text)
        for start in range(len(words) - RUN + 1):
            found.add(" ".join(words[start : start + RUN]))
    return found


def texts_of_jars(version: str) -> Iterator[str]:
    """Yield the string constants of a version's classes. Strings without a blank are omitted, because they
    are names.
    """
    for jar in sorted(kafka_jars.jars(version).glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".class"):
                    yield from (text for text in constants(archive.read(name)) if " " in text)


def constants(data: bytes) -> Iterator[str]:
    """Yield the string constants of a class file, in the order of its constant pool."""
    (count,) = struct.unpack_from(">H", data, 8)
    texts: dict[int, str] = {}
    used: list[int] = []
    place, number = 10, 1
    while number < count:
        tag = data[place]
        (short,) = struct.unpack_from(">H", data, place + 1)
        if tag == _UTF8:
            texts[number] = data[place + 3 : place + 3 + short].decode("utf-8", "replace")
            place += 3 + short
        else:
            if tag == _STRING:
                used.append(short)
            place += _SIZES.get(tag, 5)
            number += tag in _DOUBLE
        number += 1
    return (texts[number] for number in used)


def our_texts(root: Path = PROJECT) -> Iterator[Text]:
    """Yield the string literals of the product, its data files, and the documentation."""
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
    """Yield the string literals of a Python file. The parts of an f-string are one text."""
    no_messages: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            pieces = [piece for piece in node.values if isinstance(piece, ast.Constant)]
            no_messages.update(map(id, pieces))
            yield Text(name, node.lineno, " ".join(str(piece.value) for piece in pieces), is_message=True)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            no_messages.add(id(node.value))
            yield Text(name, node.lineno, str(node.value.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in no_messages:
            yield Text(name, node.lineno, node.value, is_message=True)


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
    """Return the sequences in these texts that also occur in Kafka's, except for MESSAGES and EXCEPTIONS."""
    allowed = runs_of(iter(EXCEPTIONS))
    found = []
    for text in texts:
        if text.is_message and text.path.startswith(tuple(MESSAGES)):
            continue
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
    """Return the sequences in the jars of every version."""
    return runs_of(text for version in VERSIONS for text in texts_of_jars(version))


def main() -> int:
    """Print the findings. Return 1 if there are any."""
    found = findings(our_texts(), kafkas_runs())
    for path, line, words in found:
        print(f"{path}:{line}: {words}")
    print(f"{len(found)} runs of {RUN} words or more", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
