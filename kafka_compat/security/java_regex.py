"""Translate Java regular expressions for Python's `re`. No I/O.

Most of the syntax is the same. Differences are translated, and unsupported constructs are rejected.
"""

import re
from typing import Final

_LINE_ENDS: Final = r"\n\r\x85\u2028\u2029"
_AT_LAST_LINE_END: Final = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"
_PUNCTUATION: Final = r"!-/:-@\[-`{-~"

#: Maps each POSIX class \p{...}, which in Java matches only ASCII, to the content of [...].
_CLASSES: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7F",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": _PUNCTUATION,
    "Graph": f"a-zA-Z0-9{_PUNCTUATION}",
    "Print": f"a-zA-Z0-9{_PUNCTUATION} ",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1F\x7F",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0B\f\r",
}
_LETTERS: Final = {
    "h": r" \t\xA0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0B\f\r\x85\u2028\u2029",
}
_SAME: Final = frozenset("dDwWsStnrfa")
_PROPERTY: Final = re.compile(r"\{(\w+)\}")
_NUMBERED: Final = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|0([0-3]?[0-7]{1,2})")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?[:)]")
_NAME: Final = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")


def compile_java(pattern: str) -> re.Pattern[str]:
    """Compile a Java pattern for `re`. Raises ValueError if the pattern is invalid or unsupported."""
    try:
        return re.compile(_Translation(pattern).text(), re.ASCII)
    except re.error as error:
        raise ValueError(f"{error.msg} in {pattern!r}") from error


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._dot = f"[^{_LINE_ENDS}]"

    def text(self) -> str:
        parts = []
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == "\\":
                parts.append(self._escape(in_class=False))
            elif char == "[":
                parts.append(self._class())
            elif char == "(" and self._pattern.startswith("(?", self._at):
                parts.append(self._group())
            else:
                self._at += 1
                parts.append(self._dot if char == "." else _AT_LAST_LINE_END if char == "$" else char)
        return "".join(parts)

    def _wrong(self, what: str) -> ValueError:
        return ValueError(f"{what} in {self._pattern!r}")

    def _matched(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self._pattern, self._at)
        if match:
            self._at = match.end()
        return match

    def _group(self) -> str:
        """Translate a group that begins with `(?`."""
        for same in ("(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"):
            if self._pattern.startswith(same, self._at):
                self._at += len(same)
                return same
        begin = self._at
        self._at += 2
        name = self._matched(_NAME)
        if name:
            return f"(?P<{name[1]}>"
        self._at = begin
        flags = self._matched(_FLAGS)
        if flags is None or not set(flags[1] + (flags[2] or "")) <= set("imsx"):
            raise self._wrong(f"the group {self._pattern[begin : begin + 4]}... is not supported")
        if flags[0].endswith(")") and (begin or flags[2]):
            raise self._wrong(f"{flags[0]} is supported only at the beginning")
        if "s" in flags[1]:
            self._dot = "."
        if "x" in flags[1] or "m" in flags[1]:
            raise self._wrong(f"{flags[0]} is not supported")
        return flags[0]

    def _class(self) -> str:
        """Translate a character class, `[...]`."""
        begin = self._at
        self._at += 2 if self._pattern.startswith("[^", begin) else 1
        parts = [self._pattern[begin : self._at]]
        if self._pattern.startswith("]", self._at):
            parts.append(r"\]")
            self._at += 1
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == "\\":
                parts.append(self._escape(in_class=True))
                continue
            if char == "[" or self._pattern.startswith("&&", self._at):
                raise self._wrong("a combined character class is not supported")
            self._at += 1
            if char == "]":
                return "".join((*parts, char))
            # Escape the character, because Python reserves doubled `|`, `~` and `&` for future use.
            parts.append(f"\\{char}" if char in "|~&" else char)
        raise self._wrong("an unclosed character class")

    def _escape(self, *, in_class: bool) -> str:
        self._at += 1
        if self._at == len(self._pattern):
            raise self._wrong("a backslash at the end")
        if number := self._matched(_NUMBERED):
            digits, base = next(
                (text, 8 if index == 3 else 16) for index, text in enumerate(number.groups()) if text
            )
            if int(digits, base) > 0x10FFFF:
                raise self._wrong(f"{digits} is not a character number")
            return re.escape(chr(int(digits, base)))
        char = self._pattern[self._at]
        self._at += 1
        if not char.isascii() or not char.isalnum():
            return re.escape(char)
        if char in _SAME:
            return f"\\{char}"
        if char == "e":
            return r"\x1b"
        if char == "Q":
            quoted, _, _ = self._pattern[self._at :].partition(r"\E")
            self._at = min(self._at + len(quoted) + 2, len(self._pattern))
            return re.escape(quoted)
        if char in "pP":
            return self._property(char == "P", in_class)
        if char in "hv":
            return _LETTERS[char] if in_class else f"[{_LETTERS[char]}]"
        if char in "HV" and not in_class:
            return f"[^{_LETTERS[char.lower()]}]"
        if not in_class:
            return self._outside_class(char)
        raise self._wrong(f"\\{char} is not supported")

    def _outside_class(self, char: str) -> str:
        if char in "123456789A":
            return f"\\{char}"
        if char in "bB":
            # In Java, \b treats letters of all scripts as word characters, but \w does not.
            return f"(?u:\\{char})"
        if char == "z":
            return r"\Z"
        if char == "Z":
            return _AT_LAST_LINE_END
        if char == "R":
            return r"(?>\r\n|[\n\x0B\f\r\x85\u2028\u2029])"
        if char == "k" and (name := self._matched(_NAME)):
            return f"(?P={name[1]})"
        raise self._wrong(f"\\{char} is not supported")

    def _property(self, negated: bool, in_class: bool) -> str:
        match = self._matched(_PROPERTY)
        inside = _CLASSES.get(match[1]) if match else None
        if match is None or inside is None or (negated and in_class):
            what = match[0] if match else ""
            raise self._wrong(f"\\{'P' if negated else 'p'}{what} is not supported")
        return inside if in_class else f"[{'^' if negated else ''}{inside}]"
