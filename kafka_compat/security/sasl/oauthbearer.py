"""SASL OAUTHBEARER (RFC 7628, KIP-255): a bearer token, shown by who has it.

Rules
1. Of a token that is not believed the client is told in JSON, as an answer like any other; it then says
   %x01, and is refused with the same text. It may as well try another token.
2. A session lasts as long as its token (KIP-368).
3. No token is ever logged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping

from kafka_compat.security.oauth.message import CONTROL_A, Malformed, compose, parse
from kafka_compat.security.oauth.tokens import InvalidToken, Validator
from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.mechanism import Refused

log = logging.getLogger(__name__)


class OAuthBearer:
    """See the rules above."""

    def __init__(self, validator: Validator, now_ms: Callable[[], int]) -> None:
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self._validator = validator
        self._now_ms = now_ms
        self._error: str | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Nothing for a token that is believed, otherwise the error."""
        error, self._error = self._error, None
        if error is not None and token == CONTROL_A:
            raise Refused(error, error)
        try:
            message = parse(token)
        except Malformed as malformed:
            raise Refused(str(malformed)) from None
        try:
            accepted = self._validator.validate(message.token, self._now_ms())
        except InvalidToken as invalid:
            log.info("an OAUTHBEARER token is refused: %s", invalid)
            self._error = _json_of(invalid)
            return self._error.encode()
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
    """The client's side, with a token and extensions (KIP-342)."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        self._message = compose(token, extensions)

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        """The server's error is answered, since the server then ends the exchange."""
        return CONTROL_A if challenge else None
