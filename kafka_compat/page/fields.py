"""Parse the fields of actions, from forms and JSON objects. No I/O."""

import json
from collections.abc import Mapping
from typing import Any, Final

from kafka_compat.decoding.plain import FORMATS, NotSo, bytes_of
from kafka_compat.http.routes import BadCall

EMPTY: Final = "empty"
"""Format for a key or value of zero bytes."""
CONTENT_FORMATS: Final = (*FORMATS, EMPTY)


def text(body: Mapping[str, Any], name: str, default: str = "") -> str:
    """Return a text field, or the default. Raises BadCall if it is neither a string nor an integer."""
    value = body.get(name, default)
    if value is None:
        return default
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise BadCall(f"{name}={value!r}: expected a string")
    return value


def needed(body: Mapping[str, Any], name: str) -> str:
    """Return a required text field. Raises BadCall if it is missing."""
    value = text(body, name)
    if not value:
        raise BadCall(f"{name} is missing")
    return value


def whole_number(body: Mapping[str, Any], name: str, *, least: int = 0) -> int | None:
    """Return an integer field, or None if it is empty. Raises BadCall if it is invalid."""
    value = text(body, name).strip()
    if not value:
        return None
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18 or int(value) < least:
        raise BadCall(f"{name}={value[:40]}: expected a whole number of at least {least}")
    return int(value)


def is_on(body: Mapping[str, Any], name: str) -> bool:
    """Return the value of a checkbox or boolean field. Raises BadCall if the value is not a boolean."""
    value = body.get(name, False)
    if value in (True, "true", "on"):
        return True
    if value in (False, "", "false", None):
        return False
    raise BadCall(f"{name}={value!r}: expected true or false")


def content(body: Mapping[str, Any], name: str) -> bytes | None:
    """Parse a field in the format from `NAME_as`. Return None if it is empty. Raises BadCall on errors."""
    form, given = text(body, f"{name}_as", FORMATS[0]), text(body, name)
    if form == EMPTY:
        if given:
            raise BadCall(f"{name}: {EMPTY} is selected, but {given[:40]!r} is given")
        return b""
    if form not in FORMATS:
        raise BadCall(f"{name}_as={form[:40]}: expected one of {', '.join(CONTENT_FORMATS)}")
    if not given:
        return None
    try:
        return bytes_of(given, form)
    except NotSo as error:
        raise BadCall(f"{name}: {error}") from None


def headers(body: Mapping[str, Any], name: str = "headers") -> list[tuple[str, bytes | None]]:
    """Parse headers, given as lines of text, an object, or pairs. A line is `name: value`, or `name` for a
    null value. Raises BadCall if the headers are invalid.
    """
    given = body.get(name) or []
    if isinstance(given, str):
        pairs: list[Any] = [_line(line) for line in given.split("\n") if line.strip()]
    elif isinstance(given, dict):
        pairs = list(given.items())
    elif isinstance(given, list):
        pairs = given
    else:
        raise BadCall(f"{name}={given!r}: expected an object, or an array of names and values")
    found: list[tuple[str, bytes | None]] = []
    for pair in pairs:
        if not (
            isinstance(pair, list | tuple)
            and len(pair) == 2
            and isinstance(pair[0], str)
            and isinstance(pair[1], str | None)
        ):
            raise BadCall(f"{name}: {str(pair)[:60]} is not a name and a value")
        try:
            pair[0].encode()
            found.append((pair[0], None if pair[1] is None else bytes_of(pair[1], "text")))
        except (NotSo, UnicodeEncodeError):
            raise BadCall(f"{name}: {str(pair)[:60]!r} contains half a surrogate pair") from None
    return found


def _line(line: str) -> tuple[str, str | None]:
    name, colon, value = line.partition(":")
    return name.strip(), value.strip() if colon else None


def array(body: Mapping[str, Any], name: str) -> list[Any]:
    """Return an array, which may be given as JSON text. Raises BadCall if the value is not an array."""
    value = body.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise BadCall(f"{name} is not JSON: {error}") from None
    if not isinstance(value, list):
        raise BadCall(f"{name}={str(value)[:60]}: expected an array")
    return value
