"""SASL OAUTHBEARER (RFC 7628, KIP-255): authentication with a bearer token.

Rules
1. After a rejected token, the response contains the error as JSON. The client then sends %x01, and is
   rejected with the same message. It may also try a different token instead.
2. A session expires with its token (KIP-368).
3. Tokens are never logged.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafka_compat.security.oauth.tokens import InvalidToken, Validator
from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.mechanism import Refused

CONTROL_A: Final = b"\x01"
"""The client's reply to an error from the server. It ends the exchange."""

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_KEY: Final = r"[A-Za-z]+"
_VALUE: Final = r"[\x21-\x7e \t\r\n]+"
_MESSAGE: Final = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>(?:{_KEY}={_VALUE}\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_EXTENSION: Final = re.compile(rf"(?P<key>{_KEY})=(?P<value>{_VALUE})")


class Malformed(Exception):
    """Raised for an invalid OAUTHBEARER message. The error never contains the token."""


class ClientMessage(NamedTuple):
    """A bearer token, the authorization ID ("" for the token's subject), and extensions."""

    token: str
    authorization_id: str
    extensions: dict[str, str]


def parse_message(message: bytes) -> ClientMessage:
    """Parse a client message. Raises Malformed if it is invalid."""
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


def compose_message(token: str, extensions: Mapping[str, str]) -> bytes:
    """Return a client's message with a token. Raises ValueError if an extension is invalid."""
    said = [f"{key}={value}" for key, value in extensions.items()]
    for key, pair in zip(extensions, said, strict=True):
        if key == "auth" or _EXTENSION.fullmatch(pair) is None:
            raise ValueError(f"Extension {key!r} is invalid")
    return "\x01".join(["n,,", f"auth=Bearer {token}", *said, "", ""]).encode()


class OAuthBearer:
    """The server side of an OAUTHBEARER exchange."""

    def __init__(self, validator: Validator, now_ms: Callable[[], int]) -> None:
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self._validator = validator
        self._now_ms = now_ms
        self.pending: Refused | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return an empty response if the token is accepted, or the error as JSON if it is rejected."""
        rejection, self.pending = self.pending, None
        if rejection is not None and token == CONTROL_A:
            raise rejection
        try:
            message = parse_message(token)
        except Malformed as malformed:
            raise Refused(str(malformed)) from None
        try:
            accepted = self._validator.validate(message.token, self._now_ms())
        except InvalidToken as invalid:
            told = _json_of(invalid)
            self.pending = Refused(str(invalid), told)
            return told.encode()
        if message.authorization_id and message.authorization_id != accepted.name:
            problem = (
                f"Authentication failed: Client requested an authorization id ({message.authorization_id}) "
                f"that is different from the token's principal name ({accepted.name})"
            )
            raise Refused(problem, problem)
        self.principal, self.expires_ms = Principal("User", accepted.name), accepted.expires_ms
        return b""


def _json_of(invalid: InvalidToken) -> str:
    if invalid.scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":{json.dumps(invalid.scope)}}}'


class OAuthBearerClient:
    """The client side of OAUTHBEARER, with a token and extensions (KIP-342)."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        self._message = compose_message(token, extensions)

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        """Return the reply to an error from the server, or None if the token was accepted."""
        return CONTROL_A if challenge else None
