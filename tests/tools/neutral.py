"""What a tool printed, without what every broker chooses for itself: ids, places, sizes and times."""

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
    # Times of today; those that the tests give their records are of 2023.
    (r"\b(?!17000000000)1[789]\d{11}\b", "TIME"),
    # In which state a client's patience ends is a matter of luck.
    (r"(TimeoutException): (Timed out|Call\().*", r"\1: TOO LATE"),
    (r"\bTIME\s+\d+\s", "TIME DURATION "),
    (r"\b(1700000000\d{3}) \d{7}$", r"\1 MINUTES"),
    (r"\b(salt|stored_key|server_key)=[\w+/]+=*", r"\1=DRAWN"),
    (r"\bcrc: \d+", "crc: CRC"),
    (r"\b(position|size): \d+", r"\1: N"),
    (r"disk-[12]", "disk"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r"^Cluster ID: .*", "Cluster ID: ID"),
    # Of DescribeTopicPartitions, which genuine Kafka serves with KRaft alone.
    (r"\tElr: [^\t]*\tLastKnownElr: [^\t]*", ""),
    (r"[ \t]+", " "),
)


_LEFT_OUT = re.compile(r"^\s+(at |\.\.\. )|WARN \[AdminClient .*\] (Connection to node|Bootstrap broker)")
"""Stack traces, and what clients that an earlier tool left open in its JVM say of a broker that is gone."""
_PROPOSED = "Proposed partition reassignment configuration"
"""Before what kafka-reassign-partitions draws by lot: which replica is to be the first one."""


def neutral_output(printed: Printed, directory: str, ports: Mapping[str, str]) -> list[str]:
    """The lines that a tool printed, sorted: the order of rows means nothing, a broker's hash tables make it.

    `directory` holds all files of the side, `ports` says what is shown for the ports of its brokers.
    """
    out, err = (_neutral_lines(text, directory, ports) for text in (printed.out, printed.err))
    return [f"exit code {printed.code}", *out, "on stderr:", *err]


def differences(title: str, genuine: list[str], ours: list[str]) -> list[str]:
    """Lines that show where two outputs differ; [] when nowhere."""
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
    """Where a broker puts a new partition is its own affair."""
    shown = []
    for broker in report["brokers"]:
        partitions = [item for directory in broker["logDirs"] for item in directory["partitions"]]
        for item in partitions:
            del item["size"]
        errors = [directory["error"] for directory in broker["logDirs"]]
        shown.append((broker["broker"], errors, sorted(partitions, key=lambda item: str(item["partition"]))))
    return json.dumps([report["version"], shown])
