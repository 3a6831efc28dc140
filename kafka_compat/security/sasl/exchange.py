"""SASL exchange of one connection (KIP-43, KIP-152, KIP-368): the valid order of messages, and the expiry of
the session. No I/O.

Rules
1. A client may request ApiVersions once. It then chooses its mechanism (SaslHandshake) and sends tokens, in
   SaslAuthenticate requests or, after SaslHandshake v0, as separate frames. If GSSAPI is enabled, a first
   frame that is not a request is treated as a GSSAPI token.
2. After any other message, the connection is closed. After a rejected token, it is closed
   `failure_delay_ms` later.
3. A session expires with its credential, or after connections.max.reauth.ms, whichever is sooner. After that,
   only a new handshake is served. The new exchange must use the same mechanism and result in the same
   principal, and may begin at most once per REAUTHENTICATION_INTERVAL_MS.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.mechanism import Mechanism, Refused

REAUTHENTICATION_INTERVAL_MS: Final = 1000
GSSAPI: Final = "GSSAPI"
"""The mechanism of clients that do not choose one (Kafka 0.9 clients)."""


class Stage(Enum):
    """The message that is expected next."""

    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    COMPLETE = auto()
    FAILED = auto()


class UnexpectedRequest(Exception):
    """Raised if the client sends a message out of order. Its connection is closed."""


class UnsupportedMechanism(Exception):
    """Raised if the listener does not offer the mechanism."""


class Offer(NamedTuple):
    """The SASL mechanisms of a listener. The fields map mechanism names to functions that create the server
    side, and to maximum session lifetimes (connections.max.reauth.ms; 0: unlimited).
    """

    mechanisms: Mapping[str, Callable[[], Mechanism]]
    session_max_ms: Mapping[str, int]
    failure_delay_ms: int = 100


class Exchange:
    """The state of a connection's exchange. `now_ms` is the Unix time, `monotonic_ms` a monotonic clock."""

    def __init__(self, offer: Offer, now_ms: Callable[[], int], monotonic_ms: Callable[[], float]) -> None:
        self.stage = Stage.VERSIONS_OR_HANDSHAKE
        self.tokens_are_bare = False
        """Whether tokens are sent as separate frames."""
        self.principal: Principal | None = None
        self.mechanism_name = ""
        self.offer = offer
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms
        self._mechanism: Mechanism | None = None
        self._other_mechanism: str | None = None
        self._ends_ms: float | None = None
        self._began_again_ms = float("-inf")

    @property
    def is_complete(self) -> bool:
        """Whether the client is authenticated, and no new exchange is in progress."""
        return self.stage is Stage.COMPLETE

    @property
    def is_again(self) -> bool:
        """Whether this exchange is a reauthentication."""
        return self.principal is not None

    @property
    def is_lost(self) -> bool:
        """Whether a reauthentication will fail at its first token, because it uses a different mechanism."""
        return self._other_mechanism is not None

    @property
    def mechanisms(self) -> list[str]:
        return list(self.offer.mechanisms)

    def versions_reported(self) -> None:
        """Record that the client has requested ApiVersions."""
        if self.stage is Stage.VERSIONS_OR_HANDSHAKE:
            self.stage = Stage.HANDSHAKE

    def handshake(self, mechanism: str, *, tokens_are_bare: bool) -> None:
        """Process a SaslHandshake. Raises UnexpectedRequest (out of order) or UnsupportedMechanism."""
        if self.stage not in (Stage.VERSIONS_OR_HANDSHAKE, Stage.HANDSHAKE):
            raise UnexpectedRequest("a SaslHandshake during an exchange")
        make = self.offer.mechanisms.get(mechanism)
        if make is None:
            self.stage = Stage.FAILED
            raise UnsupportedMechanism(
                f"the client requested the SASL mechanism {mechanism!r}, but the listener supports "
                f"{', '.join(self.mechanisms)} (sasl.enabled.mechanisms)"
            )
        self.tokens_are_bare = tokens_are_bare
        self._other_mechanism = mechanism if self.is_again and mechanism != self.mechanism_name else None
        if self._other_mechanism is None:
            self.mechanism_name = mechanism
            self._mechanism = make()
        self.stage = Stage.TOKENS

    def begin_without_handshake(self) -> bool:
        """Begin an exchange with a GSSAPI token (Kafka 0.9 clients), and return whether it is allowed."""
        if self.stage is not Stage.VERSIONS_OR_HANDSHAKE or GSSAPI not in self.offer.mechanisms:
            return False
        self.handshake(GSSAPI, tokens_are_bare=True)
        return True

    def token(self, token: bytes) -> bytes | None:
        """Process a token, and return the response (see Mechanism.evaluate). `stage` then shows whether it
        was the last token. Raises Refused, or UnexpectedRequest if the token is out of order.
        """
        if self.stage is not Stage.TOKENS:
            raise UnexpectedRequest("a SASL token without a SaslHandshake")
        try:
            if self.is_lost:
                raise UnexpectedRequest(
                    f"SASL mechanism '{self._other_mechanism}' requested by client is not supported for "
                    f"re-authentication of mechanism '{self.mechanism_name}'"
                )
            mechanism = self._mechanism
            assert mechanism is not None
            answer = mechanism.evaluate(token)
            if mechanism.principal is not None:
                self._complete(mechanism, mechanism.principal)
        except BaseException:
            self.stage = Stage.FAILED
            raise
        return answer

    def _complete(self, mechanism: Mechanism, principal: Principal) -> None:
        if self.principal is not None and principal != self.principal:
            problem = (
                f"Cannot change principals during re-authentication from {self.principal.kind}."
                f"{self.principal.name}: {principal.kind}.{principal.name}"
            )
            raise Refused(problem, problem)
        self.principal = principal
        self.stage = Stage.COMPLETE
        self._mechanism = None
        self._ends_ms = None
        lifetime_ms = self._lifetime_ms(mechanism.expires_ms)
        if lifetime_ms is not None:
            self._ends_ms = self._monotonic_ms() + lifetime_ms

    def _lifetime_ms(self, expires_ms: int | None) -> int | None:
        limits_ms = []
        if expires_ms is not None:
            limits_ms.append(expires_ms - self._now_ms())
        session_max_ms = self.offer.session_max_ms.get(self.mechanism_name, 0)
        if session_max_ms > 0:
            limits_ms.append(session_max_ms)
        return max(0, min(limits_ms)) if limits_ms else None

    @property
    def unconfirmed(self) -> Refused | None:
        """A rejection that the client has received, and has not confirmed yet (OAUTHBEARER), or None."""
        return None if self._mechanism is None else self._mechanism.pending

    @property
    def session_lifetime_ms(self) -> int:
        """The session lifetime that is reported to the client; 0 means unlimited."""
        return 0 if self._ends_ms is None else max(0, round(self._ends_ms - self._monotonic_ms()))

    @property
    def ends(self) -> bool:
        """Whether the session expires."""
        return self._ends_ms is not None

    @property
    def has_ended(self) -> bool:
        return self._ends_ms is not None and self._monotonic_ms() >= self._ends_ms

    def begin_again(self) -> bool:
        """Begin a reauthentication, and return whether it is allowed."""
        now_ms = self._monotonic_ms()
        if (
            self.stage is not Stage.COMPLETE
            or self._ends_ms is None
            or now_ms - self._began_again_ms < REAUTHENTICATION_INTERVAL_MS
        ):
            return False
        self._began_again_ms = now_ms
        self.stage = Stage.HANDSHAKE
        return True

    def client_message(self, refused: Refused) -> str:
        """Return the error message to send to the client for a rejected token."""
        if refused.client_message is not None:
            return refused.client_message
        which = "re-authentication" if self.is_again else "authentication"
        return (
            f"Authentication failed during {which} due to invalid credentials with SASL mechanism "
            f"{self.mechanism_name}"
        )
