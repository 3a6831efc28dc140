"""What a tool printed, without what every broker chooses for itself: ids, places, sizes and times."""

from __future__ import annotations

import json
import re
from typing import Any

_REPLACED = (
    (r"^\[\d{4}-\d\d-\d\d [\d:,]+\] ", ""),
    (r"adminclient-\d+", "adminclient-N"),
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID"),
    # Times of today; those that the tests give their records are of 2023.
    (r"\b(?!17000000000)1[789]\d{11}\b", "TIME"),
    (r"\bTIME\s+\d+\s", "TIME DURATION "),
    (r"\bcrc: \d+", "crc: CRC"),
    (r"\b(position|size): \d+", r"\1: N"),
    (r"disk-[12]", "disk"),
    (r"[ \t]+", " "),
)


def neutral_lines(text: str, directory: str, address: str) -> list[str]:
    """The lines of `text`, sorted: the order of rows means nothing, and a broker's hash tables make it.

    `directory` holds all files of the side, `address` is its broker's.
    """
    text = text.replace(directory, "DIR").replace(address, "HOST:PORT")
    text = re.sub(rf"\b{address.rpartition(':')[2]}\b", "PORT", text)
    return sorted(_neutral(line) for line in text.splitlines() if not re.match(r"\s+(at |\.\.\. )", line))


def _neutral(line: str) -> str:
    if line.startswith('{"brokers":'):
        return _log_dirs(json.loads(line))
    for pattern, replacement in _REPLACED:
        line = re.sub(pattern, replacement, line)
    return line.strip()


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
