"""A set of public keys as its issuer publishes it (RFC 7517)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from kafka_compat.security.oauth.secured import Key

log = logging.getLogger(__name__)

_RSA_BITS_MIN: Final = 2048
_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "secp256k1": "ES256K"}
_KEYS_MAX: Final = 1000


def parse(content: bytes) -> tuple[Key, ...]:
    """The keys that tokens may be signed with; others, and those that are broken, are left out. Raises
    ValueError when it is no set of keys.
    """
    try:
        found = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    members = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(members, list) or len(members) > _KEYS_MAX:
        raise ValueError('it is no JSON Web Key Set: an object with at most 1,000 "keys"')
    keys = (_key(member) for member in members)
    return tuple(key for key in keys if key is not None)


def _key(member: object) -> Key | None:
    if not isinstance(member, dict):
        return None
    kid = member.get("kid")
    operations = member.get("key_ops")
    if member.get("use", "sig") != "sig" or (isinstance(operations, list) and "verify" not in operations):
        return None
    try:
        algorithms, public = _public(member)
    except Exception as error:  # Whatever is in it: the other keys are good.
        log.warning("a key of the JWKS is left out, kid %.100r: %s", kid, error)
        return None
    named = member.get("alg")
    if named is not None:
        algorithms &= {named} if isinstance(named, str) else frozenset()
    return Key(kid if isinstance(kid, str) else None, str(member["kty"]), algorithms, public)


def _public(member: Mapping[str, Any]) -> tuple[frozenset[str], Any]:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from jwt import algorithms

    kind = member.get("kty")
    # A key that is private by mistake is not used as one.
    public = {
        name: value for name, value in member.items() if name not in {"d", "p", "q", "dp", "dq", "qi", "oth"}
    }
    if kind == "RSA":
        key = algorithms.RSAAlgorithm.from_jwk(public)
        assert isinstance(key, RSAPublicKey)
        if key.key_size < _RSA_BITS_MIN:
            raise ValueError(f"an RSA key of {key.key_size} bits, fewer than {_RSA_BITS_MIN}")
        return _RSA, key
    if kind == "EC":
        algorithm = _CURVES[str(member["crv"])]
        return frozenset({algorithm}), algorithms.ECAlgorithm.from_jwk(public)
    if kind == "OKP":
        return frozenset({"EdDSA"}), algorithms.OKPAlgorithm.from_jwk(public)
    raise ValueError(f"keys of the kind {kind!r} are not used for tokens")
