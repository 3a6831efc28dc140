"""The lifecycle of a delegation token, its nodes and notices, and its secret."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.security import scram_credential as scram
from kafka_compat.security.principal import Principal, TokenHolder
from kafka_compat.security.tokens import delegation_token
from kafka_compat.security.tokens import delegation_token as model
from kafka_compat.security.tokens.delegation_token import Terms, Token

ALICE, BOB, CAROL, DAVE = (Principal("User", name) for name in ("alice", "bob", "carol", "dave"))
EVERYBODY = (ALICE, BOB, CAROL, DAVE)
LONG = st.integers(-(2**63), 2**63 - 1)
TERMS = st.builds(Terms, st.integers(1, 10_000), st.integers(1, 10_000))
PRINCIPALS = st.builds(Principal, st.text(st.characters(exclude_characters=":", codec="utf-8")), st.text())
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["renew", "expire"]),
        st.sampled_from(EVERYBODY),
        st.one_of(st.integers(-10, 20_000), LONG),
        st.integers(0, 3000),
    ),
    max_size=20,
)


@given(terms=TERMS, lifetime_ms=st.one_of(st.integers(-5, 20_000), LONG), steps=STEPS)
def test_only_the_owner_and_renewers_can_change_a_token_within_its_limits(
    terms: Terms, lifetime_ms: int, steps: list[tuple[str, Principal, int, int]]
) -> None:
    """No request extends a token beyond its maximum lifetime, or reactivates an expired token."""
    now_ms = 1_000_000
    token = model.issued(ALICE, BOB, (CAROL,), lifetime_ms, terms, now_ms)
    first = token
    assert now_ms < token.expires_ms <= token.max_ms <= now_ms + terms.lifetime_max_ms
    assert lifetime_ms <= 0 or token.max_ms <= now_ms + lifetime_ms
    for action, who, period_ms, passed_ms in steps:
        now_ms += passed_ms
        expected = None
        if who not in (ALICE, CAROL):
            expected = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        elif min(token.max_ms, token.expires_ms) < now_ms and (action == "renew" or period_ms >= 0):
            expected = ErrorCode.DELEGATION_TOKEN_EXPIRED
        changed: Token | None = None
        try:
            if action == "renew":
                changed = model.renewed(token, who, period_ms, terms, now_ms)
            else:
                changed = model.expiring(token, who, period_ms, now_ms)
        except KafkaError as error:
            assert error.code == expected
            continue
        assert expected is None
        if changed is None:
            assert action == "expire"
            assert period_ms < 0
            continue
        wanted_ms = now_ms + (terms.expiry_ms if period_ms < 0 else period_ms)
        assert changed.expires_ms == min(token.max_ms, wanted_ms)
        assert changed._replace(expires_ms=0) == first._replace(expires_ms=0)
        token = changed


@given(
    owner=PRINCIPALS,
    requester=PRINCIPALS,
    renewers=st.lists(PRINCIPALS, max_size=3),
    times=st.tuples(LONG, LONG, LONG),
)
def test_a_token_is_read_back_unchanged_from_its_node(
    owner: Principal, requester: Principal, renewers: list[Principal], times: tuple[int, int, int]
) -> None:
    token = Token("id", owner, requester, tuple(renewers), *times)
    assert delegation_token.decode_token("id", delegation_token.encode_token(token)) == token


@given(data=st.one_of(st.binary(max_size=50), st.none()))
def test_an_invalid_node_is_rejected(data: bytes | None) -> None:
    with pytest.raises(MalformedNode, match=r"^/delegation_token/tokens/id: "):
        delegation_token.decode_token("id", data)


@pytest.mark.parametrize("token_id", ["", "a/b", "..", "\0", "\ud800"])
def test_an_invalid_notification_is_rejected(token_id: str) -> None:
    with pytest.raises(MalformedNode):
        delegation_token.decode_change("/path", token_id.encode(errors="surrogatepass"))


def test_the_secret_is_the_hmac_of_the_token_id() -> None:
    """As in Kafka, the secret is HmacSHA512 of the id, and the SCRAM password is the secret in base64."""
    secret = model.hmac_of("id", b"key")
    assert secret == hmac.new(b"key", b"id", "sha512").digest()
    assert model.hmac_of("id", b"other") != secret
    for mechanism in scram.MECHANISMS:
        credential = model.credential_of(secret, mechanism)
        again = model.credential_of(secret, mechanism)
        assert credential.iterations == scram.ITERATIONS_MIN
        assert credential.salt != again.salt, "two credentials of a password have the same salt"


def test_token_ids_are_valid_path_elements_and_unique() -> None:
    ids = {model.new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(
        delegation_token.decode_change("/path", delegation_token.encode_change(each)) == each for each in ids
    )


def test_a_token_holder_is_equal_to_the_principal_of_the_same_user() -> None:
    """It has the same equality, hash and text. Only its class tells that it may not create tokens."""
    holder = TokenHolder("User", "alice")
    assert holder == ALICE
    assert hash(holder) == hash(ALICE)
    assert str(holder) == "User:alice"
    assert {ALICE: 1}[holder] == 1
    assert not isinstance(Principal(*holder), TokenHolder)
