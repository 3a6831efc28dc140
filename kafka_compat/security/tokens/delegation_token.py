"""A delegation token: its lifetime, permissions, secret, and node in the metadata store. No I/O.

Times are in ms since 1970. The rules and the nodes are the same as in Kafka 3.9 with ZooKeeper:

    /delegation_token/tokens/ID                             one token, as JSON, without its secret
    /delegation_token/token_changes/token_change_0000000007 a notification of a change or deletion
"""

import base64
import hmac
import secrets
from collections.abc import Collection
from typing import Final, NamedTuple
from urllib.parse import unquote

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import INT64_MAX, NodeObject, encode_json
from kafka_compat.coordination.nodes.znodes import node_name
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.security import scram_credential as scram
from kafka_compat.security.principal import Principal
from kafka_compat.security.scram_credential import Credential

_SALT_BYTES: Final = 26


class Token(NamedTuple):
    """The public part of a token. Its secret is `hmac_of` its ID.

    `requester` created the token for `owner`. `renewers` may also renew it. The token is valid until
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
        """Return whether the principal may see the token without explicit permission."""
        return principal in (self.owner, self.requester) or principal in self.renewers


class Terms(NamedTuple):
    """Token lifetimes: the maximum lifetime (delegation.token.max.lifetime.ms), and the time after which a
    token expires unless it is renewed (delegation.token.expiry.time.ms).
    """

    lifetime_max_ms: int
    expiry_ms: int


def new_id() -> str:
    """Return a unique ID: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()


def issued(
    owner: Principal,
    requester: Principal,
    renewers: tuple[Principal, ...],
    lifetime_ms: int,
    terms: Terms,
    now_ms: int,
) -> Token:
    """Return a new token, which can be renewed for `lifetime_ms` (0 or less: for the maximum lifetime)."""
    longest_ms = terms.lifetime_max_ms
    max_ms = now_ms + (longest_ms if lifetime_ms <= 0 else min(lifetime_ms, longest_ms))
    return Token(new_id(), owner, requester, renewers, now_ms, max_ms, min(max_ms, now_ms + terms.expiry_ms))


def renewed(token: Token, principal: Principal, period_ms: int, terms: Terms, now_ms: int) -> Token:
    """Return the token, renewed by the principal for `period_ms` from now (negative: the default period).
    Raises KafkaError if the principal may not renew it, or if it has expired.
    """
    _must_be_changed_by(token, principal)
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    period_ms = terms.expiry_ms if period_ms < 0 else period_ms
    return token._replace(expires_ms=min(token.max_ms, now_ms + period_ms))


def expiring(token: Token, principal: Principal, period_ms: int, now_ms: int) -> Token | None:
    """Return the token with an expiry time `period_ms` from now. Return None, to delete the token, if the
    period is negative. Raises KafkaError if the principal may not change it, or if it has expired.
    """
    _must_be_changed_by(token, principal)
    if period_ms < 0:
        return None
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return token._replace(expires_ms=min(token.max_ms, now_ms + period_ms))


def _must_be_changed_by(token: Token, principal: Principal) -> None:
    """Raise KafkaError unless the principal is the owner or a renewer. (The requester may be neither.)"""
    if principal != token.owner and principal not in token.renewers:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def is_asked_for(token: Token, owners: Collection[Principal] | None) -> bool:
    """Return whether DescribeDelegationToken with these owners (None: all) returns the token."""
    return owners is None or any(map(token.concerns, owners))


def hmac_of(token_id: str, secret_key: bytes) -> bytes:
    """Return the token's secret, which all brokers derive from their common secret key."""
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def credential_of(secret: bytes, mechanism: str) -> Credential:
    """Return a token's SCRAM credential. The password is the base64-encoded secret. This takes a few ms."""
    password = base64.b64encode(secret).decode()
    return scram.from_password(password, secrets.token_bytes(_SALT_BYTES), scram.ITERATIONS_MIN, mechanism)


TOKENS: Final = "/delegation_token/tokens"
CHANGES: Final = "/delegation_token/token_changes"
CHANGE_PREFIX: Final = "token_change_"
PERSISTENT_PATHS: Final = (CHANGES, TOKENS)
"""Nodes that Kafka creates when a broker with a secret key starts."""

_VERSION: Final = 3
_INT64_MIN: Final = -INT64_MAX - 1


def path_of(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def encode_token(token: Token) -> bytes:
    """Encode a token for its node: version 3, with the fields in Kafka's order."""
    return encode_json(
        {
            "issueTimestamp": token.issued_ms,
            "renewers": [node_name(str(renewer)) for renewer in token.renewers],
            "tokenRequester": node_name(str(token.requester)),
            "tokenId": token.token_id,
            "owner": node_name(str(token.owner)),
            "expiryTimestamp": token.expires_ms,
            "maxTimestamp": token.max_ms,
            "version": _VERSION,
        }
    )


def decode_token(token_id: str, data: bytes | None) -> Token:
    """Decode a token. Before version 3, the requester is the owner. Raises MalformedNode if it is invalid."""
    values = NodeObject.parse(path_of(token_id), data)
    version = values.integer("version", low=1, high=_VERSION)
    if values.text("tokenId") != token_id:
        raise values.wrong("tokenId", "differs from the node's name")
    owner = _principal(values, "owner", values.text("owner"))
    requester = owner
    if version >= _VERSION:
        requester = _principal(values, "tokenRequester", values.text("tokenRequester"))
    return Token(
        token_id,
        owner,
        requester,
        tuple(_principal(values, "renewers", text) for text in values.texts("renewers")),
        _time_ms(values, "issueTimestamp"),
        _time_ms(values, "maxTimestamp"),
        _time_ms(values, "expiryTimestamp"),
    )


def _principal(values: NodeObject, field: str, text: str) -> Principal:
    kind, colon, name = unquote(text).partition(":")
    if not colon:
        raise values.wrong(field, f"contains {text!r:.80}, which is not TYPE:NAME")
    return Principal(kind, name)


def _time_ms(values: NodeObject, field: str) -> int:
    """Read a time, which may be negative after an overflow in an Apache Kafka broker."""
    return values.integer(field, low=_INT64_MIN, high=INT64_MAX)


def encode_change(token_id: str) -> bytes:
    return token_id.encode()


def decode_change(path: str, data: bytes | None) -> str:
    """Return the token ID in a notification. Raises MalformedNode if the notification is invalid."""
    token_id = (data or b"").decode(errors="replace")
    if not znodes.is_name(token_id):
        raise MalformedNode(path, f"{token_id!r:.80} is not a token ID")
    return token_id
