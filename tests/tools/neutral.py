"""Removes values that differ between brokers from a tool's output: ids, paths, sizes and times."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any

from tests.support.java_tools import Printed

_REPLACED = (
    (r"^\[\d{4}-\d\d-\d\d [\d:,]+\] ", ""),
    (r"adminclient-\d+", "adminclient-N"),
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID"),
    # Replace current times. Test records have timestamps in 2023.
    (r"\b(?!17000000000)1[789]\d{11}\b", "TIME"),
    # The message depends on the state in which the client's timeout occurs.
    (r"(TimeoutException): (Timed out|Call\().*", r"\1: TOO LATE"),
    (r"\bTIME\s+\d+\s", "TIME DURATION "),
    (r"\b(1700000000\d{3}) \d{7}$", r"\1 MINUTES"),
    (r"\b(salt|stored_key|server_key)=[\w+/]+=*", r"\1=DRAWN"),
    (r"\bcrc: \d+", "crc: CRC"),
    (r"\b(position|size): \d+", r"\1: N"),
    (r"disk-[12]", "disk"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r"^Cluster ID: .*", "Cluster ID: ID"),
    # From DescribeTopicPartitions, which Apache Kafka serves only with KRaft.
    (r"\tElr: [^\t]*\tLastKnownElr: [^\t]*", ""),
    (r"[ \t]+", " "),
)


_LEFT_OUT = re.compile(
    r"^\s+(at |\.\.\. )|WARN \[AdminClient .*\] (Connection to node|Bootstrap broker|No broker)"
)
"""Stack traces, and warnings about a stopped broker from clients that an earlier tool left open in its
JVM.
"""
_PROPOSED = "Proposed partition reassignment configuration"
"""The line before the plan of kafka-reassign-partitions, which selects the first replica at random."""


def neutral_output(printed: Printed, directory: str, ports: Mapping[str, str]) -> list[str]:
    """Return the sorted lines of a tool's output, because the order of rows from hash tables is arbitrary.

    `directory` contains all files of the side. `ports` maps the ports of its brokers to placeholders.
    """
    out, err = (_neutral_lines(text, directory, ports) for text in (printed.out, printed.err))
    return [f"exit code {printed.code}", *out, "on stderr:", *err]


def differences(title: str, genuine: list[str], ours: list[str]) -> list[str]:
    """Return a diff of two outputs, or [] if they are equal."""
    return list(difflib.unified_diff(genuine, ours, f"{title}: genuine", "ours", lineterm="", n=1))


def _neutral_lines(text: str, directory: str, ports: Mapping[str, str]) -> list[str]:
    text = text.replace(directory, "DIR")
    for port, name in ports.items():
        text = re.sub(rf"\b{port}\b", name, text)
    lines = [line for line in text.splitlines() if not _LEFT_OUT.search(line)]
    for before, line in enumerate(lines[1:]):
        if lines[before] == _PROPOSED:
            lines[before + 1] = _without_order(line)
    return sorted(map(_neutral, lines))


def _without_order(plan: str) -> str:
    found = json.loads(plan)
    for item in found["partitions"]:
        item["replicas"].sort()
    return json.dumps(found)


def _neutral(line: str) -> str:
    if line.startswith('{"brokers":'):
        return _log_dirs(json.loads(line))
    for pattern, replacement in _REPLACED:
        line = re.sub(pattern, replacement, line)
    elected, listed, partitions = line.strip().partition(" for partitions ")
    return elected + listed + ", ".join(sorted(partitions.split(", ")))


def _log_dirs(report: dict[str, Any]) -> str:
    """Remove log directories and sizes, because a broker may place a new partition in any directory."""
    shown = []
    for broker in report["brokers"]:
        partitions = [item for directory in broker["logDirs"] for item in directory["partitions"]]
        for item in partitions:
            del item["size"]
        errors = [directory["error"] for directory in broker["logDirs"]]
        shown.append((broker["broker"], errors, sorted(partitions, key=lambda item: str(item["partition"]))))
    return json.dumps([report["version"], shown])
