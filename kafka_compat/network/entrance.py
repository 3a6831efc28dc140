"""TLS and SASL authentication, as required by a listener before it serves a client's requests.

Rules
1. Until a client is authenticated, its frames are passed to `dispatch` here, which serves only ApiVersions,
   SaslHandshake and SaslAuthenticate, in this order. Frames are limited to sasl.server.max.receive.size.
2. kafka.compat.frame.timeout.ms limits the time until a new connection has completed the TLS handshake or,
   with SASL, its first request.
3. If the session has a limited lifetime, its frames continue to pass through `dispatch`. After the session
   has expired, only a new handshake is served.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Final, NamedTuple

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.network.connection import Connection
from kafka_compat.network.framing import Frame
from kafka_compat.network.server import Server
from kafka_compat.network.strangers import PASSED, PASSED_AGAIN
from kafka_compat.network.tls import ABOUT_THIS_CERTIFICATE, TlsSocket
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.principal import ANONYMOUS, Principal
from kafka_compat.security.sasl.exchange import Exchange, Stage, UnexpectedRequest
from kafka_compat.security.sasl.mechanism import Refused

log = logging.getLogger(__name__)

_SIZE_BYTES: Final = 4
_KEYS: Final = frozenset(ApiKey)


class TlsTerms(NamedTuple):
    """TLS functions of a listener. `context` returns the current SSL context. `refusal` returns the reason to
    close a connection after its handshake, or None. `principal_of` returns the principal for a DER
    certificate, or None if no mapping rule matches. `invalid` returns why clients reject the listener's own
    certificate now, such as its expiry, or None.
    """

    context: Callable[[], ssl.SSLContext]
    refusal: Callable[[ssl.SSLObject], str | None]
    principal_of: Callable[[bytes], Principal | None]
    invalid: Callable[[], str | None] = lambda: None


class SaslTerms(NamedTuple):
    """SASL configuration of a listener."""

    new_exchange: Callable[[], Exchange]
    frame_max_bytes: int


class SaslAuthentication:
    """SASL authentication of one client. Implements api.caller.Authentication."""

    def __init__(self, entrance: ListenerEntrance, connection: Connection, exchange: Exchange) -> None:
        self.exchange = exchange
        self._entrance = entrance
        self._connection = connection

    def passed(self) -> None:
        """Complete the authentication, and process later requests as the authenticated principal."""
        self._entrance.passed(self._connection, self.exchange)

    def refused(self, reason: str, answer: Callable[[], None] | None = None) -> None:
        """Reject the client. After `failure_delay_ms`, `answer` is called to send the response."""
        self._connection.turn_away(reason, self.exchange.offer.failure_delay_ms, answer)


class ListenerEntrance:
    """Authentication on one listener, with TLS, SASL or both."""

    def __init__(self, server: Server, tls: TlsTerms | None, sasl: SaslTerms | None) -> None:
        self._server = server
        self._tls = tls
        self._sasl = sasl

    def enter(self, connection: Connection, accepted: socket.socket) -> TlsSocket | None:
        """Return the TLS socket that replaces the new connection's socket, or None if TLS is not used."""
        connection.frame_started_s = monotonic()
        if self._sasl is not None:
            exchange = connection.authentication = self._sasl.new_exchange()
            connection.session.authentication = SaslAuthentication(self, connection, exchange)
            connection.hold_out(self.dispatch, self._sasl.frame_max_bytes)
        if self._tls is None:
            return None
        return TlsSocket(
            accepted,
            self._tls.context(),
            self._server.tls_scratch,
            partial(self._tls_is_open, connection),
            partial(self._tls_failed, connection),
        )

    def _tls_failed(self, connection: Connection, reason: str) -> None:
        assert self._tls is not None
        if reason in ABOUT_THIS_CERTIFICATE and (invalid := self._tls.invalid()):
            reason = f"this broker's certificate {invalid}: replace it"
        self._server.refused(connection, reason)

    def _tls_is_open(self, connection: Connection, tls: TlsSocket) -> None:
        assert self._tls is not None
        refusal = self._tls.refusal(tls.session)
        if refusal is not None:
            connection.turn_away(refusal)
        elif self._sasl is None:
            certificate = tls.peer_certificate()
            principal = ANONYMOUS if certificate is None else self._tls.principal_of(certificate)
            if principal is None:
                connection.turn_away("no rule of ssl.principal.mapping.rules matches its certificate's name")
            else:
                self._server.authentications.count(connection.listener_name, PASSED)
                connection.let_in(principal)

    def passed(self, connection: Connection, exchange: Exchange) -> None:
        """Record that a client has authenticated with SASL."""
        assert exchange.principal is not None
        again = connection.principal is not ANONYMOUS
        self._server.authentications.count(connection.listener_name, PASSED_AGAIN if again else PASSED)
        connection.let_in(exchange.principal)
        if exchange.ends:
            connection.dispatch = self.dispatch
        log.debug(
            "Authenticated %s from %s with %s",
            exchange.principal,
            connection.peer_host,
            exchange.mechanism_name,
        )

    def dispatch(self, connection: Connection, frame: Frame) -> bool:
        """Serve a frame of an unauthenticated client or an expiring session. Return False to disconnect."""
        exchange = connection.authentication
        assert exchange is not None
        stage = exchange.stage
        if stage is Stage.TOKENS and exchange.tokens_are_bare:
            return self._bare_token(connection, exchange, frame)
        key = int.from_bytes(frame[:2], "big")
        if key not in _KEYS and exchange.begin_without_handshake():
            return self._bare_token(connection, exchange, frame)
        if stage is Stage.COMPLETE:
            if exchange.has_ended and key != ApiKey.SASL_HANDSHAKE:
                log.info(
                    "Closed the connection of %s from %s: its session expired without reauthentication "
                    "(connections.max.reauth.ms)",
                    connection.principal,
                    connection.peer_host,
                )
                self._server.authentications.expired += 1
                return False
        elif stage is Stage.TOKENS:
            if key != ApiKey.SASL_AUTHENTICATE:
                return self._unexpected(connection, exchange, key, frame)
        elif key != ApiKey.SASL_HANDSHAKE and (
            key != ApiKey.API_VERSIONS or stage is not Stage.VERSIONS_OR_HANDSHAKE
        ):
            return self._unexpected(connection, exchange, key, frame)
        return self._server.dispatch(connection, frame)

    def _unexpected(self, connection: Connection, exchange: Exchange, key: int, frame: Frame) -> bool:
        during = "authentication" if exchange.stage is Stage.TOKENS else "handshake"
        name = ApiKey(key).name if key in _KEYS else f"key {key}"
        answer = None
        if exchange.stage is Stage.TOKENS and not exchange.is_lost:
            problem = f"Unexpected Kafka request of type {name} during SASL {during}."
            parts = self._server.refusal(connection, frame, KafkaError(ErrorCode.ILLEGAL_SASL_STATE, problem))
            answer = None if parts is None else partial(connection.respond, parts)
        connection.turn_away(
            f"a request of type {name} during the SASL {during}: "
            "set security.protocol=SASL_PLAINTEXT or SASL_SSL in the client",
            exchange.offer.failure_delay_ms,
            answer,
        )
        return True

    def _bare_token(self, connection: Connection, exchange: Exchange, frame: Frame) -> bool:
        try:
            answer = exchange.token(bytes(frame))
        except (Refused, UnexpectedRequest) as error:
            connection.turn_away(str(error), exchange.offer.failure_delay_ms)
            return True
        if answer is not None:
            connection.respond([len(answer).to_bytes(_SIZE_BYTES, "big") + answer])
        if exchange.is_complete:
            self.passed(connection, exchange)
        return True
