"""Indent JSON as it stands in the bytes: numbers, duplicate names and their order stay as they were sent.
Pure.
"""

from __future__ import annotations

import json
import re
from typing import Final

from kafka_compat.decoding.plain import NotSo

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_INDENT: Final = "  "


def json_of(text: str) -> str:
    """`text` with a line for each member. Raises NotSo where it is no JSON."""
    try:
        json.loads(text, parse_int=_ignored, parse_float=_ignored, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise NotSo(f"no JSON: {error}") from None
    parts: list[str] = []
    depth = 0
    before = ""
    for found in _TOKEN.finditer(text):
        token = found.group()
        if token in "]}":
            depth -= 1
            if before not in "[{":
                parts.append("\n" + _INDENT * depth)
        elif before in ("[", "{", ","):
            parts.append("\n" + _INDENT * depth)
        parts.append(": " if token == ":" else token)
        if token in "[{":
            depth += 1
        before = token
    return "".join(parts)


def _ignored(number: str) -> int:
    return 0


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no value of JSON")
