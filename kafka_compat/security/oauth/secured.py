"""Validation of signed tokens (JWT, RFC 7519, KIP-768).

Rules
1. The issuer's key is chosen as in Kafka's library: by the token's `kid` or, without a `kid`, as the first
   key of the type that the token's algorithm requires.
2. A key may be used only for the algorithms of its type, or for the single algorithm that it names. Secret
   keys and `none` are not supported, because they prove nothing: anyone can read or create them.
3. `exp` and `iat` are required. `aud` and `iss` must have the expected values. If no audience is expected, a
   token with an `aud` is rejected, because it is intended for a different recipient.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from kafka_compat.security.oauth import tokens
from kafka_compat.security.oauth.tokens import InvalidToken, trimmed

_HEADER_CHARACTERS_MAX: Final = 16 * 1024
_SHOWN_CHARACTERS: Final = 100
_KEY_TYPES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}


class Key(NamedTuple):
    """A public key, and the algorithms for which it may be used. `kid` is None if the key has no ID."""

    kid: str | None
    kind: str
    algorithms: frozenset[str]
    public: Any


class Keys(Protocol):
    """The current keys of an issuer."""

    def all(self) -> tuple[Key, ...]:
        """Return all keys, in the issuer's order."""

    def missed(self, kid: str) -> None:
        """Report a token that was signed with an unknown key."""


class Expected(NamedTuple):
    """Required claims. Without `audiences`, `aud` must be missing; without `issuer`, any `iss` is valid."""

    issuer: str | None
    audiences: frozenset[str]
    clock_skew_s: int
    subject_claim: str
    scope_claim: str


class SecuredValidator:
    """A validator of signed tokens (JWT)."""

    def __init__(self, keys: Keys, expected: Expected) -> None:
        self._keys = keys
        self._expected = expected

    def validate(self, token: str, now_ms: int) -> tokens.AccessToken:
        """Validate a token and return its content. Raises InvalidToken if it is invalid."""
        header = _header(token)
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm == "none":
            raise InvalidToken("the token has no algorithm, or the algorithm none")
        if "crit" in header:
            raise InvalidToken("the token requires extensions (crit)")
        payload = _verified_payload(token, algorithm, self._key(header, algorithm))
        return accepted(tokens.parse_object(payload, "payload"), self._expected, now_ms)

    def _key(self, header: Mapping[str, Any], algorithm: str) -> Key:
        kid = header.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise InvalidToken("the token's key ID is not a string")
        kind = _KEY_TYPES.get(algorithm[:2])
        found = [key for key in self._keys.all() if key.kind == kind and (kid is None or key.kid == kid)]
        if not found:
            if kid is not None:
                self._keys.missed(kid)
            raise InvalidToken(
                f"no key for the algorithm {algorithm[:20]!r} and kid {(kid or '')[:100]!r} "
                "(sasl.oauthbearer.jwks.endpoint.url)"
            )
        for key in found:
            if algorithm in key.algorithms:
                return key
        raise InvalidToken(f"the token's key is not for the algorithm {algorithm[:20]!r}")


def _header(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3 or not all(parts):
        raise InvalidToken("the token does not have a header, a payload and a signature")
    if len(parts[0]) > _HEADER_CHARACTERS_MAX:
        raise InvalidToken("the token's header is too long")
    try:
        content = base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4))
    except ValueError:
        raise InvalidToken("the token's header is not base64url") from None
    return tokens.parse_object(content, "header")


def _verified_payload(token: str, algorithm: str, key: Key) -> bytes:
    from jwt import PyJWS
    from jwt.exceptions import InvalidTokenError

    try:
        payload = PyJWS().decode_complete(token, key.public, algorithms=[algorithm])["payload"]
    except (InvalidTokenError, ValueError, TypeError) as error:
        raise InvalidToken(f"the token's signature is invalid: {error}") from None
    assert isinstance(payload, bytes)
    return payload


def accepted(claims: Mapping[str, Any], expected: Expected, now_ms: int) -> tokens.AccessToken:
    """Check the claims of a token with a valid signature. Raises InvalidToken if a claim is invalid."""
    now_s = now_ms // 1000
    expires_s = _time(claims, "exp")
    issued_s = _time(claims, "iat")
    not_before_s = _time(claims, "nbf")
    if expires_s is None or issued_s is None:
        raise InvalidToken("the token does not contain iat and exp")
    if now_s - expected.clock_skew_s >= expires_s:
        raise InvalidToken(f"the token has expired: exp={expires_s}, now={now_s}")
    if expires_s < issued_s or (not_before_s is not None and expires_s < not_before_s):
        raise InvalidToken("the token expires before it becomes valid")
    if not_before_s is not None and now_s + expected.clock_skew_s < not_before_s:
        raise InvalidToken(f"the token is not valid yet: nbf={not_before_s}, now={now_s}")
    if issued_s < 0:
        raise InvalidToken("iat value must be null or non-negative")
    _check_issuer(claims, expected)
    _check_audience(claims, expected)
    for name in ("sub", "jti"):
        _text(claims, name)
    _check_scope(claims, expected.scope_claim)
    name = trimmed(_text(claims, expected.subject_claim) or "")
    if not name:
        raise InvalidToken(f"the token does not contain the principal claim {expected.subject_claim!r}")
    return tokens.AccessToken(name, min(expires_s * 1000, tokens.EXPIRES_MS_MAX))


def _time(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidToken(f"{name} is not a time")
    # Reject NaN and out-of-range numbers, including 1e400, which is parsed as infinity.
    if not -(2.0**62) < value < 2.0**62:
        raise InvalidToken(f"{name} is not a time")
    return int(value)


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidToken(f"{name} is not a string")
    return value


def _check_issuer(claims: Mapping[str, Any], expected: Expected) -> None:
    issuer = _text(claims, "iss")
    if expected.issuer is not None and issuer != expected.issuer:
        raise InvalidToken(
            f"the token's issuer is wrong: iss={_shown(issuer)}, expected {expected.issuer!r} "
            "(sasl.oauthbearer.expected.issuer)"
        )


def _check_audience(claims: Mapping[str, Any], expected: Expected) -> None:
    audience = claims.get("aud")
    if audience is None:
        if expected.audiences:
            raise InvalidToken(f"the token has no audience (aud), {_expected_audience(expected)}")
        return
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or not all(isinstance(one, str) for one in audiences):
        raise InvalidToken("aud is neither a string nor a list of strings")
    if not expected.audiences.intersection(audiences):
        raise InvalidToken(
            f"the token is for another audience: aud={_shown(audience)}, {_expected_audience(expected)}"
        )


def _expected_audience(expected: Expected) -> str:
    listed = " or ".join(map(repr, sorted(expected.audiences))) or "none"
    return f"expected {listed} (sasl.oauthbearer.expected.audience)"


def _shown(claim: object) -> str:
    """Return a claim's value for the log. Claims are not secret, but can be long."""
    text = repr(claim)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _check_scope(claims: Mapping[str, Any], name: str) -> None:
    scope = claims.get(name)
    scopes = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
    if not all(isinstance(one, str) and trimmed(one) for one in scopes):
        raise InvalidToken(f"{name} contains an empty scope")
    if len({trimmed(one) for one in scopes}) != len(scopes):
        raise InvalidToken(f"{name} contains a scope twice")
