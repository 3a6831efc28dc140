"""Encode and decode formats without a schema: text, hexadecimal, base64, and the numbers of Kafka's
serializers. No I/O.
"""

import base64
import binascii
import struct
from typing import Final

NUMBERS: Final = {
    "short": struct.Struct(">h"),
    "integer": struct.Struct(">i"),
    "long": struct.Struct(">q"),
    "float": struct.Struct(">f"),
    "double": struct.Struct(">d"),
}
"""Number formats by the names of Kafka's serializers."""
FORMATS: Final = ("text", "hex", "base64", *NUMBERS)
"""Formats in which text can be encoded."""

_SHOWN_AS_THEY_ARE: Final = "\n\r\t"


class NotSo(ValueError):
    """Raised for bytes or text that a format does not allow. The message states the reason."""


def text_of(content: bytes) -> str:
    """Decode UTF-8. Raises NotSo if the bytes are invalid."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise NotSo(f"not UTF-8: byte {content[error.start]:#04x} at {error.start}") from None


def is_readable(text: str) -> bool:
    """Return whether `text` contains only printable characters, line endings and tabs."""
    return text.isprintable() or all(each.isprintable() or each in _SHOWN_AS_THEY_ARE for each in text)


def number_of(content: bytes, kind: str) -> str:
    """Decode a number. Raises NotSo if the number of bytes does not match the type."""
    packed = NUMBERS[kind]
    if len(content) != packed.size:
        raise NotSo(f"{len(content)} bytes, but a {kind} has {packed.size}")
    (value,) = packed.unpack(content)
    return str(value)


def hex_of(content: bytes) -> str:
    """Encode bytes as two hexadecimal digits each, separated by spaces."""
    return content.hex(" ")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Escape invisible characters, controls and direction marks in `text` as \xNN or \uNNNN. With `lines`,
    line endings and tabs are kept.
    """
    if text.isprintable():
        return text
    return text.translate(_WITH_LINES if lines else _IN_ONE_LINE)


class _Visible(dict[int, str]):
    """A table for `str.translate` that computes each character's replacement on first use."""

    def __init__(self, kept: str) -> None:
        super().__init__({ord(each): each for each in kept})

    def __missing__(self, number: int) -> str:
        character = chr(number)
        shown = character if character.isprintable() else _escaped(number)
        if len(self) < _REMEMBERED:
            self[number] = shown
        return shown


def _escaped(number: int) -> str:
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_REMEMBERED: Final = 10_000
_IN_ONE_LINE: Final = _Visible("")
_WITH_LINES: Final = _Visible(_SHOWN_AS_THEY_ARE)


def bytes_of(text: str, form: str) -> bytes:
    """Encode `text` in one of FORMATS. Raises NotSo if the text is not valid in that format."""
    if form == "text":
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise NotSo("it contains half a surrogate pair") from None
    if form == "hex":
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise NotSo(f"{text[:40]!r} is not hexadecimal, such as 00ff or 00 ff") from None
    if form == "base64":
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error:
            raise NotSo(f"{text[:40]!r} is not base64") from None
    packed = NUMBERS.get(form)
    if packed is None:
        raise NotSo(f"unknown format {form!r}; the formats are {', '.join(FORMATS)}")
    try:
        return packed.pack(float(text) if form in ("float", "double") else int(text))
    except (ValueError, OverflowError, struct.error):
        raise NotSo(f"{text[:40]!r} is not a valid {form} ({packed.size} bytes)") from None
