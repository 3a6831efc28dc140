"""Parser and writer of Java's .properties syntax, as in `java.util.Properties`."""

import codecs
import contextlib
import re
from collections.abc import Mapping
from typing import NamedTuple

_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """A value, and the line number of its name, counted from 1."""

    value: str
    line: int
    in_utf8: str | None = None
    """The value decoded as UTF-8, if it differs."""


def parse_properties(data: bytes) -> dict[str, Property]:
    """Parse the bytes of a properties file. If a name is repeated, the last value applies.

    The text is decoded as ISO-8859-1, like in Java, so that a file has the same meaning as in Kafka. Most
    editors write UTF-8; `in_utf8` contains the text that was probably intended. Raises ValueError for an
    invalid `\\u` escape.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    properties = _parse(data.decode("iso-8859-1"))
    if not data.isascii():
        with contextlib.suppress(UnicodeDecodeError):
            for name, meant in _parse(data.decode("utf-8")).items():
                found = properties.get(name)
                if found is not None and found.value != meant.value:
                    properties[name] = found._replace(in_utf8=meant.value)
    return properties


def _parse(text: str) -> dict[str, Property]:
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

    if "\\" not in text:
        return text
    # Combine surrogates: Java encodes a character beyond the first 65,536 as two escapes.
    unescaped = re.sub(_ESCAPE, character, text).encode("utf-16", "surrogatepass")
    return unescaped.decode("utf-16", "surrogatepass")


def write_properties(properties: Mapping[str, str]) -> str:
    """Return the ASCII content of a properties file for `parse_properties` and Java. Each line of a
    value begins a new line of the file.
    """
    return "".join(f"{_escaped(name, ' =:#!')}={_escaped(value, '')}\n" for name, value in properties.items())


def _escaped(text: str, separators: str) -> str:
    escaped = []
    for place, char in enumerate(text):
        if char == "\n":
            escaped.append("\\n" if place == len(text) - 1 else "\\n\\\n")
        elif char in ("\\", *separators) or (char == " " and (not place or text[place - 1] == "\n")):
            escaped.append(f"\\{char}")
        elif char in _CONTROL.values():
            escaped.append("\\" + next(letter for letter, control in _CONTROL.items() if control == char))
        elif " " <= char <= "~":
            escaped.append(char)
        else:
            units = char.encode("utf-16-be")
            escaped += [f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)]
    return "".join(escaped)
