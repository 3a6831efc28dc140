"""Results of token validation: the content of an accepted token, or the reason for its rejection."""

import json
from typing import Any, Final, NamedTuple, Protocol

EXPIRES_MS_MAX = 1 << 53
"""Maximum expiry time, in the year 287396."""


_BLANK: Final = "".join(map(chr, range(33)))


class AccessToken(NamedTuple):
    """The principal of a valid token, and its expiry time in ms since the epoch."""

    name: str
    expires_ms: int


class InvalidToken(Exception):
    """Raised for a rejected token. The message is for the log; clients see only the required `scope`."""

    def __init__(self, why: str, scope: str | None = None) -> None:
        super().__init__(why)
        self.scope = scope


class Validator(Protocol):
    """A validator of bearer tokens."""

    def validate(self, token: str, now_ms: int) -> AccessToken:
        """Validate a token and return its content. Raises InvalidToken if it is invalid."""


def trimmed(text: str) -> str:
    """Return the text without the leading and trailing characters that Java's trim() removes."""
    return text.strip(_BLANK)


def parse_object(content: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object. Raises InvalidToken, without quoting the object, if it is not valid."""
    try:
        found = json.loads(content, object_pairs_hook=_without_repeats, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InvalidToken(f"the {what} of the token is not JSON, or has duplicate names") from None
    if not isinstance(found, dict):
        raise InvalidToken(f"the {what} of the token is not a JSON object")
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
