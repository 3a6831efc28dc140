"""Whether an expression is one of RE2's, of which subscriptions of KIP-848 are, and what is wrong with it in
the words of RE2 (https://github.com/google/re2/wiki/Syntax); no I/O, and nothing is matched."""

from __future__ import annotations

import re
from typing import Final

_CHARACTER_MAX: Final = 0x10FFFF
_REPEATS_MAX: Final = 1000
_NO_CLASS: Final = "invalid character class range"
_NO_ESCAPE: Final = "invalid escape sequence"
_NO_PERL: Final = "invalid or unsupported Perl syntax"
_POSIX_CLASS: Final = re.compile(
    r"\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]"
)
_GENERAL: Final = (
    "Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
)
_SCRIPTS: Final = (
    "Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid "
    "Canadian_Aboriginal Carian Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari "
    "Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo "
    "Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi "
    "Kannada Katakana Kayah_Li Kharoshthi Khmer Lao Latin Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam "
    "Mandaic Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian "
    "Old_South_Arabian Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra "
    "Shavian Sinhala Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu "
    "Thaana Thai Tibetan Tifinagh Ugaritic Unknown Vai Yi"
)
_GROUPS: Final = frozenset([*_GENERAL.split(), *_SCRIPTS.split()])
_REPEAT: Final = re.compile(r"\{(0|[1-9]\d*|0\d+)(,(\d*))?\}", re.ASCII)
_CAPTURE: Final = re.compile(r"\(\?P?<([^>]*)>")
_FLAGS: Final = re.compile(r"\(\?(?:[imsU]*|[imsU]*-[imsU]+)[:)]")
_UNICODE: Final = re.compile(r"\\[pP](?:\{\^?([^}]*)\}|([^{]))", re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\(?:x\{([0-9A-Fa-f]+)\}|x[0-9A-Fa-f]{2}|[1-7][0-7]{1,2}|0[0-7]{0,2}|[afnrtv]|[^0-9A-Za-z])", re.DOTALL
)


class _Wrong(Exception):
    """The text says how."""


def what_is_wrong(expression: str) -> str | None:
    """None where the expression is one of RE2's."""
    try:
        _Syntax(expression).check()
    except _Wrong as wrong:
        return str(wrong)
    return None


class _Syntax:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._names: set[str] = set()
        self._outer: list[bool] = []
        """Of each group that is open, whether there was something to repeat before it."""
        self._has_operand = False
        self._is_repeated = False

    def check(self) -> None:
        """Raises _Wrong."""
        while self._at < len(self._text):
            was_repeated, self._is_repeated = self._is_repeated, False
            letter = self._text[self._at]
            if letter == "(":
                self._open()
            elif letter == ")":
                self._close()
            elif letter == "|":
                self._at += 1
                self._has_operand = False
            elif letter in "*+?":
                self._repeat(self._at + 1, was_repeated)
            elif letter == "{" and (found := _REPEAT.match(self._text, self._at)):
                _check_counts(found)
                self._repeat(found.end(), was_repeated)
            else:
                self._operand(letter)
        if self._outer:
            raise _Wrong("missing closing )")

    def _operand(self, letter: str) -> None:
        if letter == "[":
            self._class()
        elif self._text.startswith("\\Q", self._at):
            start = self._at + 2
            end = self._text.find("\\E", start)
            self._at = len(self._text) if end < 0 else end + 2
            if self._at == start or end == start:
                return
        elif letter == "\\" and self._text[self._at + 1 : self._at + 2] in tuple("AbBzdDsSwW"):
            self._at += 2
        elif letter == "\\":
            self._escape()
        else:
            self._at += 1
        self._has_operand = True

    def _open(self) -> None:
        text = self._text
        if not text.startswith("(?", self._at):
            self._at += 1
        elif text.startswith(("(?P<", "(?<"), self._at):
            found = _CAPTURE.match(text, self._at)
            if found is None or re.fullmatch(r"\w+", found[1], re.ASCII) is None:
                raise _Wrong("invalid named capture")
            if found[1] in self._names:
                raise _Wrong("duplicate capture group name")
            self._names.add(found[1])
            self._at = found.end()
        else:
            found = _FLAGS.match(text, self._at)
            if found is None:
                raise _Wrong(_NO_PERL)
            self._at = found.end()
            if found[0].endswith(")"):
                return
        self._outer.append(self._has_operand)
        self._has_operand = False

    def _close(self) -> None:
        if not self._outer:
            raise _Wrong("regexp/syntax: internal error")
        self._outer.pop()
        self._at += 1
        self._has_operand = True

    def _repeat(self, end: int, was_repeated: bool) -> None:
        if self._text.startswith("?", end):
            end += 1
        if was_repeated:
            raise _Wrong("invalid nested repetition operator")
        if not self._has_operand:
            raise _Wrong("missing argument to repetition operator")
        self._at = end
        self._is_repeated = True

    def _escape(self) -> int:
        """Go beyond an escape; the number of its character, 0 where it is none."""
        if self._text.startswith(("\\p", "\\P"), self._at):
            group = _UNICODE.match(self._text, self._at)
            if group is None or (group[1] or group[2]) not in _GROUPS:
                raise _Wrong(_NO_CLASS)
            self._at = group.end()
            return 0
        return self._single_escape()

    def _single_escape(self) -> int:
        if self._at + 1 == len(self._text):
            raise _Wrong("trailing backslash at end of expression")
        found = _ESCAPE.match(self._text, self._at)
        if found is None or (found[1] and int(found[1], 16) > _CHARACTER_MAX):
            raise _Wrong(_NO_ESCAPE)
        self._at = found.end()
        return _number(found[0])

    def _class(self) -> None:
        text = self._text
        self._at += 2 if text.startswith("[^", self._at) else 1
        is_first = True
        while is_first or not text.startswith("]", self._at):
            is_first = False
            if text.startswith("[:", self._at) and (end := text.find(":]", self._at + 2)) >= 0:
                if _POSIX_CLASS.match(text, self._at) is None:
                    raise _Wrong(_NO_CLASS)
                self._at = end + 2
            elif text.startswith(("\\p", "\\P"), self._at):
                self._escape()
            elif re.compile(r"\\[dDsSwW]").match(text, self._at):
                self._at += 2
            else:
                low = self._in_class()
                if text.startswith("-", self._at) and not text.startswith("-]", self._at):
                    self._at += 1
                    if self._in_class() < low:
                        raise _Wrong(_NO_CLASS)
        self._at += 1

    def _in_class(self) -> int:
        """One character of a class."""
        if self._at >= len(self._text):
            raise _Wrong("missing closing ]")
        if self._text[self._at] == "\\":
            return self._single_escape()
        self._at += 1
        return ord(self._text[self._at - 1])


def _check_counts(found: re.Match[str]) -> None:
    least = int(found[1])
    most = int(found[3]) if found[3] else None
    if max(least, most or 0) > _REPEATS_MAX or (most is not None and most < least):
        raise _Wrong("invalid repeat count")


def _number(escape: str) -> int:
    """Of the character that an escape means."""
    rest = escape[1:]
    if rest.startswith("x"):
        return int(rest.strip("x{}"), 16)
    if rest[0] in "01234567":
        return int(rest, 8)
    return ord(dict(zip("afnrtv", "\a\f\n\r\t\v", strict=True)).get(rest, rest))
