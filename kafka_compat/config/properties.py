"""Java's .properties syntax, as `java.util.Properties.load` reads it."""

import re
from typing import NamedTuple

_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """A value and the number of the line, from 1, that its name stands on."""

    value: str
    line: int


def parse_properties(data: bytes) -> dict[str, Property]:
    """The properties in the bytes of a file, the last of a repeated name.

    The text is UTF-8, as people write it today; a file that is not is taken for ISO-8859-1, which is what
    Java would have read. ValueError for a broken `\\u` escape.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    properties: dict[str, Property] = {}
    first_line, logical = 0, ""
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        stripped = line.lstrip(" \t\f")
        if not logical:
            if not stripped or stripped[0] in "#!":
                continue
            first_line = number
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            logical += stripped[:-1]
            continue
        _add(properties, logical + stripped, first_line)
        logical = ""
    if logical:
        _add(properties, logical, first_line)
    return properties


def _add(properties: dict[str, Property], logical: str, line: int) -> None:
    position = 0
    while position < len(logical) and logical[position] not in "=: \t\f":
        position += 2 if logical[position] == "\\" else 1
    name, rest = logical[:position], logical[position:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    properties[_unescape(name, line)] = Property(_unescape(rest, line), line)


def _unescape(text: str, line: int) -> str:
    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise ValueError(f"line {line}: \\u must be followed by four hexadecimal digits")
        return _CONTROL.get(escaped, escaped)

    return re.sub(_ESCAPE, character, text) if "\\" in text else text
