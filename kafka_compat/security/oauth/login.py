"""The token with which a broker logs in to other brokers. It is fetched with client credentials (RFC 6749,
4.4), kept in memory, and renewed before it expires.
"""

import asyncio
import base64
import json
import logging
import random
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlencode

from kafka_compat.http_client import Place, Unreachable, ask
from kafka_compat.security.oauth.tokens import InvalidToken, parse_object
from kafka_compat.security.oauth.unsecured import AccessTokenText
from kafka_compat.security.tls_settings import Secret

log = logging.getLogger(__name__)

AGAIN_S: Final = 10.0
"""Delay before a token is requested again after a failure, as in Kafka."""
_HOPELESS: Final = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415})
"""HTTP statuses after which a failed request is not retried."""


class RefreshWindow(NamedTuple):
    """The settings sasl.login.refresh.*, which determine when a token is replaced."""

    factor: float
    jitter: float
    min_period_s: int
    buffer_s: int

    def refresh_ms(self, token: AccessTokenText, now_ms: int, chance: float) -> int:
        """Return the time at which to replace a token received at `now_ms`, by Kafka's rules (KIP-255).
        `chance` is a random number from 0 to 1.
        """
        share = self.factor + self.jitter * chance
        if now_ms + 1000 * (self.min_period_s + self.buffer_s) > token.expires_ms:
            return now_ms + int((token.expires_ms - now_ms) * share)
        proposed_ms = token.begins_ms + int((token.expires_ms - token.begins_ms) * share)
        latest_ms = token.expires_ms - 1000 * self.buffer_s
        earliest_ms = now_ms + 1000 * self.min_period_s
        return latest_ms if proposed_ms > latest_ms else max(proposed_ms, earliest_ms)


class Client(NamedTuple):
    """The client credentials: the JAAS options clientId, clientSecret and scope."""

    client_id: str
    secret: Secret
    scope: str


class TokenEndpoint(NamedTuple):
    """The token endpoint, and the limits for retries."""

    place: Place
    client: Client
    window: RefreshWindow
    retry_backoff_ms: int
    retry_backoff_max_ms: int


class TokenSource:
    """The inter-broker token, kept in memory. The caller must run `keep` as a task to renew it."""

    def __init__(self, endpoint: TokenEndpoint, now_ms: Callable[[], int]) -> None:
        self._endpoint = endpoint
        self._now_ms = now_ms
        self._token: AccessTokenText | None = None

    @property
    def url(self) -> str:
        return self._endpoint.place.url

    def token(self) -> str:
        """Return the current token. Raises ConnectionError if no valid token is available."""
        if self._token is None or self._token.expires_ms <= self._now_ms():
            raise ConnectionError(f"no token was received from {self.url}")
        return self._token.text

    async def open(self) -> None:
        """Fetch a token, with retries. Raises Unreachable if all attempts fail."""
        endpoint = self._endpoint
        pause_ms, waited_ms = endpoint.retry_backoff_ms, 0
        while True:
            try:
                self._token = await self._fetched()
                return
            except Unreachable as error:
                if error.status in _HOPELESS or waited_ms + pause_ms > endpoint.retry_backoff_max_ms:
                    raise
            await asyncio.sleep(pause_ms / 1000)
            waited_ms += pause_ms
            pause_ms = max(1, pause_ms * 2)

    async def keep(self) -> None:
        """Renew each token before it expires."""
        while True:
            assert self._token is not None
            now_ms = self._now_ms()
            due_ms = self._endpoint.window.refresh_ms(self._token, now_ms, random.random())
            await asyncio.sleep(max(due_ms - now_ms, 0) / 1000)
            while True:
                try:
                    await self.open()
                    break
                except Unreachable as error:
                    log.error("Could not fetch the inter-broker token from %s: %s; retrying", self.url, error)
                    await asyncio.sleep(AGAIN_S)
            # If the new token has already expired, wait, to avoid requesting tokens in a busy loop.
            if self._token.expires_ms <= self._now_ms():
                log.error("Received an expired token from %s. Check the clocks of both machines", self.url)
                await asyncio.sleep(AGAIN_S)

    async def _fetched(self) -> AccessTokenText:
        client = self._endpoint.client
        basic = base64.b64encode(f"{client.client_id}:{client.secret}".encode()).decode()
        form = {"grant_type": "client_credentials"} | ({"scope": client.scope} if client.scope else {})
        headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-www-form-urlencoded"}
        return token_of(await ask(self._endpoint.place, body=urlencode(form).encode(), headers=headers))


def token_of(answer: bytes) -> AccessTokenText:
    """Return the token in a token endpoint's response. Raises Unreachable if the response is invalid."""
    try:
        text = json.loads(answer)["access_token"].strip()
        payload = text.split(".")[1]
        claims = parse_object(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), "payload")
        begins_ms, expires_ms = _time_ms(claims.get("iat", 0)), _time_ms(claims["exp"])
    except (InvalidToken, ValueError, RecursionError, LookupError, TypeError, AttributeError, OverflowError):
        raise Unreachable("its response has no access_token that is a JWT with exp") from None
    return AccessTokenText(text, begins_ms, expires_ms)


def _time_ms(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a time is a number")
    return int(value * 1000)
