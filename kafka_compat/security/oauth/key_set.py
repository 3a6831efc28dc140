"""Public keys of one issuer (a JSON Web Key Set, RFC 7517), kept in memory. They are fetched at startup,
periodically, and when a key is missing.

Rules for unscheduled fetches
1. A missing key ID triggers one fetch per RETRY_MS. The last IDS_MAX missing IDs are remembered. IDs longer
   than ID_CHARACTERS_MAX do not trigger a fetch. All three limits are Kafka's.
2. All unknown IDs together trigger at most one fetch per INTERVAL_MS.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from kafka_compat.http_client import Place, Unreachable, ask
from kafka_compat.security.oauth.secured import Key

log = logging.getLogger(__name__)

IDS_MAX: Final = 16
ID_CHARACTERS_MAX: Final = 1000
RETRY_MS: Final = 60_000
INTERVAL_MS: Final = 1_000
_RSA_BITS_MIN: Final = 2048
_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "secp256k1": "ES256K"}
_KEYS_MAX: Final = 1000


class EarlyRefresh:
    """Rate limits for unscheduled fetches of a key set. Times are monotonic."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, float] = OrderedDict()
        self._fetched_ms = float("-inf")

    def missed(self, kid: str, now_ms: float) -> bool:
        """Record a missing key ID, and return whether it triggers a fetch."""
        if len(kid) > ID_CHARACTERS_MAX or now_ms < self._asked.get(kid, float("-inf")) + RETRY_MS:
            return False
        self._asked[kid] = now_ms
        self._asked.move_to_end(kid)
        while len(self._asked) > IDS_MAX:
            self._asked.popitem(last=False)
        return True

    def wait_ms(self, now_ms: float) -> float:
        """Return the time in ms until an unscheduled fetch is allowed."""
        return max(0.0, self._fetched_ms + INTERVAL_MS - now_ms)

    def fetching(self, now_ms: float) -> None:
        """Record that a fetch has begun."""
        self._fetched_ms = now_ms

    def fetched(self, kids: Iterable[str | None]) -> None:
        """Forget that these key IDs were missing, because a fetch has found their keys."""
        for kid in kids:
            if kid is not None:
                self._asked.pop(kid, None)


def parse_key_set(content: bytes) -> tuple[Key, ...]:
    """Parse a key set, and return the keys that may sign tokens. Other keys and invalid keys are ignored.
    Raises ValueError if the content is not a key set.
    """
    try:
        found = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    members = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(members, list) or len(members) > _KEYS_MAX:
        raise ValueError('it is not a JSON Web Key Set: an object with at most 1,000 "keys"')
    return tuple(key for key in (_key(member) for member in members) if key is not None)


def _key(member: object) -> Key | None:
    if not isinstance(member, dict):
        return None
    kid = member.get("kid")
    operations = member.get("key_ops")
    if member.get("use", "sig") != "sig" or (isinstance(operations, list) and "verify" not in operations):
        return None
    try:
        algorithms, public = _public(member)
    except Exception as error:  # Skip an invalid key, because the other keys may be valid.
        log.warning("Ignored a key in the JWKS (kid %.100r): %s", kid, error)
        return None
    named = member.get("alg")
    if named is not None:
        algorithms &= {named} if isinstance(named, str) else frozenset()
    return Key(kid if isinstance(kid, str) else None, str(member["kty"]), algorithms, public)


def _public(member: Mapping[str, Any]) -> tuple[frozenset[str], Any]:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from jwt import algorithms

    kind = member.get("kty")
    # Ignore the members of a private key: the issuer may have published them by mistake.
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
        return frozenset({_CURVES[str(member["crv"])]}), algorithms.ECAlgorithm.from_jwk(public)
    if kind == "OKP":
        return frozenset({"EdDSA"}), algorithms.OKPAlgorithm.from_jwk(public)
    raise ValueError(f"keys of type {kind!r} are not used for tokens")


class KeySource(NamedTuple):
    """The endpoint of a key set, and the times between fetches (sasl.oauthbearer.jwks.endpoint.*, ms)."""

    place: Place
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


class KeySet:
    """An issuer's keys, kept in memory. The caller must run `keep` as a task to refresh them."""

    def __init__(self, source: KeySource, monotonic_ms: Callable[[], float]) -> None:
        self._source = source
        self._monotonic_ms = monotonic_ms
        self._keys: tuple[Key, ...] = ()
        self._early = EarlyRefresh()
        self._wanted = asyncio.Event()

    def all(self) -> tuple[Key, ...]:
        return self._keys

    def missed(self, kid: str) -> None:
        if self._early.missed(kid, self._monotonic_ms()):
            self._wanted.set()

    async def open(self) -> None:
        """Fetch the keys for the first time. Raises Unreachable if the fetch fails."""
        await self._fetch()

    async def keep(self) -> None:
        """Fetch the keys periodically, and when a key is missing."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._source.refresh_ms / 1000):
                    await self._wanted.wait()
                    await asyncio.sleep(self._early.wait_ms(self._monotonic_ms()) / 1000)
            self._wanted.clear()
            await self._fetch_somehow()

    async def _fetch_somehow(self) -> None:
        """Fetch the keys, with retries as in Kafka. If all attempts fail, keep the previous keys."""
        source = self._source
        pause_ms, waited_ms = source.retry_backoff_ms, 0
        while True:
            try:
                await self._fetch()
                return
            except Unreachable as error:
                problem = error
            if waited_ms + pause_ms > source.retry_backoff_max_ms:
                break
            await asyncio.sleep(pause_ms / 1000)
            waited_ms += pause_ms
            pause_ms = max(1, pause_ms * 2)
        log.warning("Could not fetch keys from %s: %s; keeping the previous keys", source.place.url, problem)

    async def _fetch(self) -> None:
        self._early.fetching(self._monotonic_ms())
        content = await ask(self._source.place)
        try:
            keys = await asyncio.to_thread(parse_key_set, content)
        except ValueError as error:
            raise Unreachable(f"its response is invalid: {error}") from None
        self._early.fetched(key.kid for key in keys)
        if [key.kid for key in keys] != [key.kid for key in self._keys]:
            log.info("Fetched new keys from %s (keys: %d)", self._source.place.url, len(keys))
        self._keys = keys
