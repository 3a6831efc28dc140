"""OAUTHBEARER messages and tokens get the same responses as from Kafka's own classes."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_compat.security.oauth.key_set import parse_key_set
from kafka_compat.security.oauth.secured import Expected, Key, SecuredValidator
from kafka_compat.security.oauth.tokens import EXPIRES_MS_MAX, Validator
from kafka_compat.security.oauth.unsecured import UnsecuredRules, UnsecuredValidator, unsecured_token
from kafka_compat.security.sasl.mechanism import Refused
from kafka_compat.security.sasl.oauthbearer import OAuthBearer, OAuthBearerClient
from tests.oracle.sasl_oracle import SECURED, UNSECURED, SaslOracle
from tests.security.oauth.issuer import SigningKey, claims, key_set, part
from tests.support import campaign

_EXAMPLES = 2000 if campaign.enabled() else 150


@pytest.fixture(scope="module")
def oracle() -> Iterator[SaslOracle]:
    with SaslOracle("3.9.1") as oracle:
        yield oracle


def _ours(validator: Validator, messages: Sequence[bytes]) -> list[str]:
    """The responses in the format of SaslOracle.exchange. "!" alone is the response to any wrong password."""
    mechanism = OAuthBearer(validator, lambda: int(time.time() * 1000))
    answers = []
    for message in messages:
        try:
            answers.append(mechanism.evaluate(message).decode())
        except Refused as refused:
            return [*answers, f"!{refused.client_message or ''}"]
        if mechanism.principal is not None:
            return [*answers, f"={mechanism.principal.name} {mechanism.expires_ms}"]
    return answers


def _compare(ours: list[str], theirs: list[str]) -> None:
    """Check that clients get the same responses.

    Where an unexpected exception (such as NullPointerException) closes the connection in Apache Kafka, our
    broker must respond as to any other invalid token.
    """
    last = theirs[-1]
    if last.startswith("!"):
        kind, _, message = last[1:].partition(": ")
        if kind not in ("SaslException", "SaslAuthenticationException"):
            assert ours[-1].startswith("!"), theirs
            return
        last = f"!{message}" if kind == "SaslAuthenticationException" else "!"
    # Kafka supports later times than our broker.
    assert ours == [*theirs[:-1], last.replace(str((1 << 63) - 1), str(EXPIRES_MS_MAX))]


def _unsecured(oracle: SaslOracle, options: Mapping[str, str], *messages: bytes) -> list[str]:
    ours = _ours(UnsecuredValidator(UnsecuredRules.of(options)), messages)
    _compare(ours, oracle.exchange(UNSECURED, {}, options, messages))
    return ours


def _token(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


_GOOD = f"{part({'alg': 'none'})}.{part({'sub': 'alice', 'exp': 4e9})}."

_messages = st.one_of(
    st.binary(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "n,",
                "y,",
                "a=",
                "alice",
                "bob",
                ",",
                "\x01",
                "auth=",
                "Bearer ",
                "bearer  ",
                "Basic ",
                _GOOD,
                "x",
                "traceId=",
                "auth",
                "=",
                "123",
                "=2C",
                "é",
                "\n",
                "\t",
                ".",
            ]
        ),
        max_size=12,
    ).map(lambda parts: "".join(parts).encode()),
    st.builds(
        lambda owner, scheme, pairs, tail: f"n,{owner},\x01auth={scheme} {_GOOD}\x01{pairs}{tail}".encode(),
        st.sampled_from(["", "a=alice", "a=bob", "a=", "a=al=2Cice", "a=al=3Dice", "b=alice"]),
        st.sampled_from(["Bearer", "BEARER", "Bearer ", " Bearer", "Basic", "Béarer", ""]),
        st.sampled_from(
            [
                "",
                "k=v\x01",
                "k=v\x01l=w\x01",
                "k=v\x01k=w\x01",
                "k1=v\x01",
                "k=\x01",
                "auth=x\x01",
                "k=a=b\x01",
            ]
        ),
        st.sampled_from(["\x01", "", "\x01\x01", "\n"]),
    ),
)


@settings(max_examples=_EXAMPLES)
@given(_messages)
@example(b"")
@example(b"\x01")
@example(_token(_GOOD))
def test_messages_are_parsed_as_in_kafka(oracle: SaslOracle, message: bytes) -> None:
    _unsecured(oracle, {}, message, b"\x01")


_now_s = int(time.time())
_times: st.SearchStrategy[object] = st.one_of(
    st.sampled_from([_now_s - 7200, _now_s + 7200, 0, -5, 4e9, _now_s + 7200.5, 1e300]),
    st.sampled_from(["4000000000", None, True, [], {}]),
)
_scopes = st.sampled_from(
    ["a", " a ", "", "a b", ["a", "b"], ["a", "a"], ["b", " "], [], 5, None, [["a"]], [3]]
)
_names = st.sampled_from(["alice", "", " ", " bob ", 5, None, True, ["alice"], {"a": 1}, "é✓"])


def _without_nothing(pairs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in pairs.items() if value is not None}


_claims = st.fixed_dictionaries(
    {"sub": _names, "exp": _times}, optional={"iat": _times, "scope": _scopes, "x": st.integers()}
)
_options = st.sampled_from(
    [
        {},
        {"unsecuredValidatorRequiredScope": "a"},
        {"unsecuredValidatorRequiredScope": "a b", "unsecuredValidatorScopeClaimName": "scope"},
        {"unsecuredValidatorPrincipalClaimName": "x"},
        {"unsecuredValidatorAllowableClockSkewMs": "10000000"},
    ]
)


@settings(max_examples=_EXAMPLES)
@given(_claims, _options, st.sampled_from(["none", "None", "RS256", 5]), st.sampled_from(["", "x"]))
def test_unsecured_tokens_are_accepted_as_in_kafka(
    oracle: SaslOracle, said: dict[str, Any], options: dict[str, str], algorithm: object, signature: str
) -> None:
    token = f"{part({'alg': algorithm})}.{part(said)}.{signature}"
    _unsecured(oracle, options, _token(token), b"\x01")


@settings(max_examples=_EXAMPLES // 2)
@given(
    st.lists(
        st.sampled_from([part({"alg": "none"}), _GOOD.split(".")[1], ".", "..", "=", "-", "_", "/"]),
        max_size=6,
    )
)
@example([part({"alg": "none"}), part({"alg": "none"}), ".", _GOOD.split(".")[1], "."])
def test_invalid_unsecured_tokens_are_rejected_as_in_kafka(oracle: SaslOracle, parts: list[str]) -> None:
    _unsecured(oracle, {}, _token("".join(parts)), b"\x01")


@given(st.text(min_size=1).filter(lambda name: name.strip() != "" and min(name) > " "))
def test_apache_kafka_accepts_our_tokens(oracle: SaslOracle, name: str) -> None:
    token = unsecured_token({"unsecuredLoginStringClaim_sub": name}, int(time.time() * 1000))
    message = OAuthBearerClient(token.text, {"traceId": "1"}).first()
    assert _unsecured(oracle, {}, message)[-1] == f"={name} {token.expires_ms}"


class _Keys:
    def __init__(self, content: bytes) -> None:
        self.found = parse_key_set(content)
        self.missing: list[str] = []

    def all(self) -> tuple[Key, ...]:
        return self.found

    def missed(self, kid: str) -> None:
        self.missing.append(kid)


_RSA, _EC, _FOREIGN = SigningKey("rsa"), SigningKey("ec", "ES256"), SigningKey("rsa")
_SET = key_set(_RSA, _EC)
_ISSUER, _AUDIENCE = "https://issuer.example/", "kafka"


class _Both:
    """The same listener settings for our broker and for Kafka."""

    def __init__(self, oracle: SaslOracle, folder: Path, keys: bytes = _SET, **others: str) -> None:
        file = folder / f"keys-{abs(hash((keys, tuple(others.items()))))}.json"
        file.write_bytes(keys)
        self._oracle = oracle
        self._settings = {
            "sasl.oauthbearer.jwks.endpoint.url": file.as_uri(),
            "sasl.oauthbearer.clock.skew.seconds": "30",
            "sasl.oauthbearer.scope.claim.name": others.get("scope", "scope"),
            "sasl.oauthbearer.sub.claim.name": others.get("sub", "sub"),
        }
        for name in ("audience", "issuer"):
            if name in others:
                self._settings[f"sasl.oauthbearer.expected.{name}"] = others[name]
        audience = frozenset(others["audience"].split(",")) if "audience" in others else frozenset()
        self.keys = _Keys(keys)
        self._validator = SecuredValidator(
            self.keys,
            Expected(
                others.get("issuer"), audience, 30, others.get("sub", "sub"), others.get("scope", "scope")
            ),
        )

    def answers(self, token: str) -> list[str]:
        messages = [_token(token), b"\x01"]
        ours = _ours(self._validator, messages)
        _compare(ours, self._oracle.exchange(SECURED, self._settings, {}, messages))
        return ours


@pytest.fixture(scope="module")
def plain(oracle: SaslOracle, tmp_path_factory: pytest.TempPathFactory) -> _Both:
    oracle.exchange(SECURED, {}, {}, [])
    return _Both(oracle, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def strict(oracle: SaslOracle, tmp_path_factory: pytest.TempPathFactory) -> _Both:
    return _Both(
        oracle, tmp_path_factory.mktemp("strict"), issuer=_ISSUER, audience=f"{_AUDIENCE},other", sub="client"
    )


_REFUSED = ['{"status":"invalid_token"}', '!{"status":"invalid_token"}']


@pytest.mark.parametrize("key", [_RSA, _EC])
def test_a_valid_token_is_accepted(plain: _Both, key: SigningKey) -> None:
    said = claims()
    assert plain.answers(key.sign(said)) == ["", f"=alice {said['exp'] * 1000}"]


def _confused() -> str:
    """A key confusion attack: an HS256 token signed with the text of the public key as the secret."""
    import hashlib
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    secret = _RSA.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part(claims())}"
    return f"{signed}.{part(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def _twisted(token: str) -> str:
    head, body, signature = token.split(".")
    return f"{head}.{body}.{signature[:-10]}{'A' if signature[-10] != 'A' else 'B'}{signature[-9:]}"


_HOSTILE = {
    "none": f"{part({'alg': 'none'})}.{part(claims())}.",
    "none, signed": f"{part({'alg': 'none'})}.{part(claims())}.{part(b'x')}",
    "None": f"{part({'alg': 'None', 'kid': 'rsa'})}.{part(claims())}.{part(b'x')}",
    "no alg": f"{part({'kid': 'rsa'})}.{part(claims())}.{part(b'x')}",
    "alg 5": f"{part({'alg': 5, 'kid': 'rsa'})}.{part(claims())}.{part(b'x')}",
    "key confusion": _confused(),
    "of another's key": _FOREIGN.sign(claims()),
    "twisted": _twisted(_RSA.sign(claims())),
    "kid of another kind": _RSA.sign(claims(), kid="ec"),
    "kid unknown": _RSA.sign(claims(), kid="unknown"),
    "kid long": _RSA.sign(claims(), kid="k" * 2000),
    "crit": _RSA.sign(claims(), crit=["x"], x=1),
    "key of its own": _FOREIGN.sign(claims(), jwk=_FOREIGN.public()),
    "expired": _RSA.sign(claims(lifetime_s=-40, iat=1)),
    "no exp": _RSA.sign({"sub": "alice", "iat": 1}),
    "no iat": _RSA.sign({"sub": "alice", "exp": 4_000_000_000}),
    "no sub": _RSA.sign({"iat": 1, "exp": 4_000_000_000}),
    "too early": _RSA.sign(claims(nbf=4_000_000_000)),
    "for others": _RSA.sign(claims(aud="x")),
    "deep": f"{part(b'[' * 10_000)}.{part(claims())}.{part(b'x')}",
    "huge": f"{part({'alg': 'RS256', 'x': 'y' * 300_000})}.{part(claims())}.{part(b'x')}",
    "two parts": "a.b",
    "five parts": "a.b.c.d.e",
    "rubbish": "a.b.c",
}


@pytest.mark.parametrize("kind", _HOSTILE)
def test_tokens_without_a_valid_signature_are_rejected(plain: _Both, kind: str) -> None:
    assert plain.answers(_HOSTILE[kind]) == _REFUSED


def test_a_token_without_kid_is_verified_with_the_first_key_of_its_algorithm(plain: _Both) -> None:
    for key in (_RSA, _EC):
        nameless = SigningKey(None, key.algorithm)
        nameless.private = key.private
        assert plain.answers(nameless.sign(claims()))[-1].startswith("=alice ")


def test_the_expiry_check_allows_for_clock_skew(plain: _Both) -> None:
    assert plain.answers(_RSA.sign(claims(lifetime_s=-15, iat=1)))[-1].startswith("=alice ")
    assert plain.answers(_RSA.sign(claims(nbf=int(time.time()) + 15)))[-1].startswith("=alice ")


_any_name = st.sampled_from(["alice", "", " ", " bob ", 5, None, ["alice"], "é✓"])
_any_time = st.sampled_from(
    [_now_s - 7200, _now_s + 7200, 0, -5, 4_000_000_000, 4e9 + 0.5, "4000000000", None, True]
)
_any_audience = st.sampled_from(
    [
        None,
        "kafka",
        "other",
        "x",
        "",
        [],
        ["kafka"],
        ["x", "other"],
        ["x"],
        5,
        [5],
        ["kafka", 5],
        {"kafka": 1},
    ]
)
_all_claims = st.fixed_dictionaries(
    {
        "sub": _any_name,
        "client": _any_name,
        "exp": _any_time,
        "iat": _any_time,
        "nbf": _any_time,
        "aud": _any_audience,
        "iss": st.sampled_from([_ISSUER, "https://issuer.example", None, 5]),
        "scope": _scopes,
        "jti": st.sampled_from([None, "x", 5]),
    }
)
_mostly_good = st.fixed_dictionaries(
    {"client": st.just("alice"), "exp": st.just(4_000_000_000), "iat": st.just(1), "aud": st.just("kafka")}
    | {"iss": st.just(_ISSUER)}
)


@settings(max_examples=_EXAMPLES)
@given(
    _mostly_good,
    _all_claims,
    st.sets(
        st.sampled_from(["sub", "client", "exp", "iat", "nbf", "aud", "iss", "scope", "jti"]), max_size=2
    ),
)
def test_claims_are_validated_as_in_kafka(
    plain: _Both, strict: _Both, good: dict[str, Any], others: dict[str, Any], changed: set[str]
) -> None:
    said = _without_nothing(good | {name: others[name] for name in sorted(changed)})
    payload = part(json.dumps(said).encode())
    signed = f"{part({'alg': 'ES256', 'kid': 'ec'})}.{payload}"
    token = f"{signed}.{part(_raw_signature(signed.encode()))}"
    strict.answers(token)
    plain.answers(token)


def _raw_signature(content: bytes) -> bytes:
    from jwt.algorithms import ECAlgorithm

    return ECAlgorithm(ECAlgorithm.SHA256).sign(content, _EC.private)


@given(st.binary(max_size=200))
@example(b"[" * 100_000)
@example(b'{"keys":[{"kty":"RSA"},{"kty":"oct","k":"AAAA"},5,{"kty":"EC","crv":"x","x":1,"y":[]}]}')
def test_all_invalid_keys_raise_the_same_error(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert parse_key_set(content) == ()


def test_unusable_keys_are_ignored() -> None:
    secret = {"kty": "oct", "kid": "s", "k": base64.urlsafe_b64encode(b"k" * 32).decode()}
    encryption = SigningKey("e").public() | {"use": "enc"}
    private = SigningKey("p")
    from jwt.algorithms import RSAAlgorithm

    leaked = dict(RSAAlgorithm.to_jwk(private.private, as_dict=True)) | {"kid": "p", "key_ops": ["verify"]}
    (found,) = parse_key_set(json.dumps({"keys": [secret, encryption, leaked]}).encode())
    assert found.kid == "p" and not hasattr(found.public, "private_bytes")
