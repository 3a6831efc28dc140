"""The client's message of SASL OAUTHBEARER (RFC 7628, extensions: KIP-342), as Kafka reads and writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

CONTROL_A: Final = b"\x01"
"""With which a client answers the server's error, so that the exchange ends."""

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_KEY: Final = r"[A-Za-z]+"
_VALUE: Final = r"[\x21-\x7e \t\r\n]+"
_MESSAGE: Final = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>(?:{_KEY}={_VALUE}\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_EXTENSION: Final = re.compile(rf"(?P<key>{_KEY})=(?P<value>{_VALUE})")


class Malformed(Exception):
    """Not a message of OAUTHBEARER. The text never has the token in it."""


class ClientMessage(NamedTuple):
    """A bearer token, on whose behalf ("" for its own subject), and what else the client says of itself."""

    token: str
    authorization_id: str
    extensions: dict[str, str]


def parse(message: bytes) -> ClientMessage:
    """Raises Malformed."""
    match = _MESSAGE.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise Malformed("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    auth = pairs.pop("auth", None)
    if auth is None:
        raise Malformed("Invalid OAUTHBEARER client first message: 'auth' not specified")
    credential = _AUTH.fullmatch(auth)
    if credential is None:
        raise Malformed("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if credential["scheme"].lower() != "bearer":
        raise Malformed(f"Invalid scheme in OAUTHBEARER client first message: {credential['scheme']}")
    return ClientMessage(credential["token"], match["authorization_id"] or "", pairs)


def compose(token: str, extensions: Mapping[str, str]) -> bytes:
    """The message of a client that has a token. Raises ValueError for extensions that cannot be said."""
    said = [f"{key}={value}" for key, value in extensions.items()]
    for key, pair in zip(extensions, said, strict=True):
        if key == "auth" or _EXTENSION.fullmatch(pair) is None:
            raise ValueError(f"Extension {key!r} is invalid")
    return "\x01".join(["n,,", f"auth=Bearer {token}", *said, "", ""]).encode()
