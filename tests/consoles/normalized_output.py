"""Output of a console without values that differ between brokers: ids, ports, directories and times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_REPLACED = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UUID"),
    (r"\b[0-9a-f]{32}\b", "ID"),
    # Dates of the test run. The records of the tests have dates in November 2023.
    (r"\b20(?!23-)\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?( UTC)?", "TIME"),
    (r"\b(?!17000000)1[789]\d{11}\b", "TIME"),
    (r"disk-[12]", "disk"),
    # Column widths depend on the longest name.
    (r"[ \t]+", " "),
    (r" ?[-─━+]{3,} ?", " -- "),
    (r" +$", ""),
)
_NAMES = ("name", "Name", "topicName", "groupId", "key", "Key")
_SETTINGS = re.compile(r"[\w.]+=[^\s,]+(,[^\s,]+)+")
"""Settings whose values are lists in hash table order."""
Names = Mapping[str, str]
"""Replacements for values that differ between the sides, such as ports, directories and cluster ids."""


def lines_of(text: str, names: Names, meant: Iterable[str] = ()) -> list[str]:
    """Return the lines of the output, sorted because rows come in hash table order, without lines that match
    `meant`.

    JSON is converted to one line per value, with array elements in a fixed order.
    """
    for found, shown in names.items():
        text = re.sub(rf"(?<![\w]){re.escape(found)}(?![\w])", shown, text)
    shown_lines = sorted(filter(None, map(_plain, _rows(text))))
    return [line for line in shown_lines if not any(re.search(pattern, line) for pattern in meant)]


def _rows(text: str) -> list[str]:
    try:
        value = json.loads(text)
    except ValueError:
        return text.splitlines()
    return list(_paths(_fixed(value), ""))


def _fixed(value: Any) -> Any:
    """Sort arrays by the normalized content of their elements."""
    if isinstance(value, dict):
        return {key: _fixed(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(_fixed, value), key=lambda item: _plain(json.dumps(item, sort_keys=True)))
    return value


def _paths(value: Any, path: str) -> Iterable[str]:
    """Yield a line for each leaf value. Array elements are identified by their name if they have one."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _paths(item, f"{path}[{_name(item, number)}]")
    else:
        yield f"{path} = {json.dumps(value, ensure_ascii=False)}"


def _name(item: Any, number: int) -> Any:
    """Return the name or number of an array element."""
    names = [item[key] for key in _NAMES if key in item] if isinstance(item, dict) else []
    return names[0] if names else number


def _plain(line: str) -> str:
    line = _SETTINGS.sub(lambda found: ",".join(sorted(found[0].split(","))), line)
    for pattern, replacement in _REPLACED:
        line = re.sub(pattern, replacement, line)
    return line
