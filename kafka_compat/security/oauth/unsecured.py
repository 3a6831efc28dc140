"""Unsigned tokens (KIP-255), which are accepted without proof. Use them for development only, as in Kafka."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from kafka_compat.security.oauth.tokens import EXPIRES_MS_MAX, AccessToken, InvalidToken, trimmed

_VALIDATOR: Final = "unsecuredValidator"
_LOGIN: Final = "unsecuredLogin"
_SCOPE_ITEM: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_JSON_WHITESPACE: Final = " \t\r\n"
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


class UnsecuredRules(NamedTuple):
    """The JAAS options of Kafka's OAuthBearerUnsecuredValidatorCallbackHandler."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Parse the rules in these options. Raises ValueError if an option is invalid."""
        skew = options.get(f"{_VALIDATOR}AllowableClockSkewMs", "").strip() or "0"
        if not re.fullmatch(r"\+?\d{1,9}", skew, re.ASCII):
            raise ValueError(f"Allowable clock skew millis must not be negative: {skew}")
        scope = options.get(f"{_VALIDATOR}RequiredScope", "").split()
        for item in scope:
            if _SCOPE_ITEM.fullmatch(item) is None:
                raise ValueError(f"Invalid scope value: {item}")
        return cls(
            options.get(f"{_VALIDATOR}PrincipalClaimName", "").strip() or "sub",
            options.get(f"{_VALIDATOR}ScopeClaimName", "").strip() or "scope",
            tuple(scope),
            int(skew),
        )


class UnsecuredValidator:
    """A validator that accepts every well-formed token that is valid now and has the required scope."""

    def __init__(self, rules: UnsecuredRules) -> None:
        self._rules = rules

    def validate(self, token: str, now_ms: int) -> AccessToken:
        rules = self._rules
        claims = _claims(token)
        scope = _scope(claims.get(rules.scope_claim))
        expires_s = _number(claims, "exp")
        issued_s = _number(claims, "iat")
        if expires_s is None:
            raise InvalidToken("No expiration time in JWT")
        name = claims.get(rules.principal_claim)
        if not isinstance(name, str) or not trimmed(name):
            raise InvalidToken(f"No principal name in JWT claim: {rules.principal_claim}")
        if issued_s is not None and 1000 * issued_s > now_ms + rules.clock_skew_ms:
            raise InvalidToken("the token was issued in the future")
        if now_ms - rules.clock_skew_ms >= 1000 * expires_s:
            raise InvalidToken("the token has expired")
        if issued_s is not None and expires_s <= issued_s:
            raise InvalidToken("the token expires before it was issued")
        for item in rules.required_scope:
            if item not in scope:
                raise InvalidToken(
                    f"the token lacks the scope {item}", f"[{', '.join(rules.required_scope)}]"
                )
        return AccessToken(name, int(min(1000 * expires_s, EXPIRES_MS_MAX)))


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if ".." in token or len(parts) != 3 or parts[2]:
        raise InvalidToken("an unsecured token has a header and claims but no signature")
    header, claims = _json(parts[0]), _json(parts[1])
    if header.get("alg") != "none":
        raise InvalidToken("Unsecured JWS must have 'none' for an algorithm")
    return claims


def _json(part: str) -> dict[str, Any]:
    # Accept only the standard base64 alphabet, as Kafka's decoder does. Padding may be missing.
    if _BASE64.fullmatch(part) is None:
        raise InvalidToken("malformed Base64 URL encoded value")
    try:
        content = base64.b64decode(part + "=" * (-len(part) % 4), validate=True)
        text = content.decode(json.detect_encoding(content), "surrogatepass")
        # As in Kafka, anything may follow the JSON value.
        found, _ = json.JSONDecoder().raw_decode(text.lstrip(_JSON_WHITESPACE))
    except (ValueError, RecursionError):
        raise InvalidToken("malformed JSON") from None
    if not isinstance(found, dict):
        raise InvalidToken("malformed JSON")
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: object) -> object:
    """Convert a claim's value to text, as Kafka does, unless it is a number or a list of strings."""
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _text(value: object) -> str:
    return "" if isinstance(value, list | dict) else value if isinstance(value, str) else json.dumps(value)


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise InvalidToken(f"The '{name}' claim was not of type Number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidToken(f"{name} is not a time") from None


def _scope(value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    if isinstance(value, str):
        return frozenset([trimmed(value)])
    if not isinstance(value, list):
        raise InvalidToken("the scope is neither a string nor a list")
    return frozenset(trimmed(item) for item in value if isinstance(item, str) and trimmed(item))


def unsecured_token(options: Mapping[str, str], now_ms: int) -> "AccessTokenText":
    """Return a client's token with the claims in the JAAS options of Kafka's
    OAuthBearerUnsecuredLoginCallbackHandler. Raises ValueError if an option is invalid.
    """
    claims: dict[str, Any] = {}
    for option, value in options.items():
        kind, found, name = option.partition("Claim_")
        if not found or not name:
            continue
        if name in ("iat", "exp"):
            raise ValueError(f"Cannot explicitly set the '{name}' claim")
        if kind == f"{_LOGIN}String":
            claims[name] = value
        elif kind == f"{_LOGIN}Number":
            claims[name] = float(value)
        elif kind == f"{_LOGIN}List":
            claims[name] = value[1:].split(value[0]) if value else []
    claim = options.get(f"{_LOGIN}PrincipalClaimName", "").strip() or "sub"
    if not trimmed(str(claims.get(claim, ""))):
        raise ValueError(f"No principal name in JWT claim: {claim}")
    expires_ms = now_ms + int(options.get(f"{_LOGIN}LifetimeSeconds", "").strip() or 3600) * 1000
    claims |= {"exp": expires_ms / 1000, "iat": now_ms / 1000}
    return AccessTokenText(f"{_part({'alg': 'none'})}.{_part(claims)}.", now_ms, expires_ms)


class AccessTokenText(NamedTuple):
    """A token to send, with the start and end of its validity in ms since the epoch."""

    text: str
    begins_ms: int
    expires_ms: int

    def __repr__(self) -> str:
        return f"AccessTokenText([hidden], expires_ms={self.expires_ms})"


def _part(content: Mapping[str, Any]) -> str:
    # Insert spaces until the encoded text is the same in both base64 alphabets. The alphabets differ in two
    # characters, which occur in encoded ASCII text only if it contains "?", ">" or similar characters.
    text = json.dumps(content)
    for _ in range(3):
        if not set(base64.b64encode(text.encode()).decode().rstrip("=")) & {"+", "/"}:
            break
        text = text[0] + " " + text[1:]
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
