"""One delegation token: how long it holds, who may do what with it, and what follows from its id. Pure.

Times are in ms since 1970. All rules are those of Kafka 3.9 with ZooKeeper.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Collection
from typing import Final, NamedTuple

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.security import scram
from kafka_compat.security.principal import Principal
from kafka_compat.security.scram import Credential

_SALT_BYTES: Final = 26


class Token(NamedTuple):
    """What everybody may know of a token who knows of it at all: the secret is `hmac_of` its id.

    `requester` had it made for `owner`. Whom the owner trusts to renew it are `renewers`. It holds until
    `expires_ms`, and can be renewed until `max_ms`.
    """

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    max_ms: int
    expires_ms: int

    def has_expired(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def concerns(self, principal: Principal) -> bool:
        """Whether the principal may know of it without being allowed to explicitly."""
        return principal in (self.owner, self.requester) or principal in self.renewers


class Terms(NamedTuple):
    """How long tokens hold: delegation.token.max.lifetime.ms, and delegation.token.expiry.time.ms from each
    renewal on.
    """

    lifetime_max_ms: int
    expiry_ms: int


def new_id() -> str:
    """An id that nobody else has: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()


def issued(
    owner: Principal,
    requester: Principal,
    renewers: tuple[Principal, ...],
    lifetime_ms: int,
    terms: Terms,
    now_ms: int,
) -> Token:
    """A new token. It lasts for `lifetime_ms`, but not for longer than the terms allow; 0 or less stands for
    the longest.
    """
    longest_ms = terms.lifetime_max_ms
    max_ms = now_ms + (longest_ms if lifetime_ms <= 0 else min(lifetime_ms, longest_ms))
    expires_ms = min(max_ms, now_ms + terms.expiry_ms)
    return Token(new_id(), owner, requester, renewers, now_ms, max_ms, expires_ms)


def renewed(token: Token, principal: Principal, period_ms: int, terms: Terms, now_ms: int) -> Token:
    """The token as it is when the principal has renewed it, for `period_ms` from now on; negative: as the
    terms have it. Raises KafkaError.
    """
    _must_be_changed_by(token, principal)
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    period_ms = terms.expiry_ms if period_ms < 0 else period_ms
    return token._replace(expires_ms=min(token.max_ms, now_ms + period_ms))


def expiring(token: Token, principal: Principal, period_ms: int, now_ms: int) -> Token | None:
    """The token as it is when the principal has said that it expires `period_ms` from now; None for a token
    that is to go at once, which a negative period says. Raises KafkaError.
    """
    _must_be_changed_by(token, principal)
    if period_ms < 0:
        return None
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return token._replace(expires_ms=min(token.max_ms, now_ms + period_ms))


def _must_be_changed_by(token: Token, principal: Principal) -> None:
    """Who requested it for somebody else is not among those who may."""
    if principal != token.owner and principal not in token.renewers:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def is_asked_for(token: Token, owners: Collection[Principal] | None) -> bool:
    """Whether DescribeDelegationToken with these owners (None: all) is about the token."""
    return owners is None or any(map(token.concerns, owners))


def hmac_of(token_id: str, secret_key: bytes) -> bytes:
    """The token's secret: with the same secret key every broker finds the same."""
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def credential_of(secret: bytes, mechanism: str) -> Credential:
    """By what a client is known that has the secret, whose password it is in base64; takes a few ms."""
    password = base64.b64encode(secret).decode()
    salt = secrets.token_bytes(_SALT_BYTES)
    return scram.from_password(password, salt, scram.ITERATIONS_MIN, mechanism)
