"""SCRAM logins succeed only with the correct password, and reject modified messages on both sides."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.security import scram_credential as scram
from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.client import ScramClient, Untrusted
from kafka_compat.security.sasl.mechanism import Refused
from kafka_compat.security.sasl.scram import Found, Scram

MECHANISMS = sorted(scram.MECHANISMS)
NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=0x7F), min_size=1, max_size=30)
ALICE = Principal("User", "alice")


def _server(mechanism: str, name: str = "alice", password: str = "secret", iterations: int = 4096) -> Scram:
    credential = scram.from_password(password, b"salt of alice", iterations, mechanism)
    users = {name: Found(credential, Principal("User", name))}
    return Scram(mechanism, lambda who, by_token: None if by_token else users.get(who))


def _first(server: Scram, message: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in server.evaluate(message.encode()).decode().split(","))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=25, deadline=None)
@given(name=NAMES, password=st.text(max_size=20), wrong=st.text(max_size=20))
def test_only_the_correct_password_is_accepted(mechanism: str, name: str, password: str, wrong: str) -> None:
    for said in (password, wrong):
        server, client = _server(mechanism, name, password), ScramClient(mechanism, name, said)
        final = client.next(server.evaluate(client.first()))
        assert final is not None and server.principal is None
        if said == password:
            assert client.next(server.evaluate(final)) is None
            assert server.principal == Principal("User", name)
        else:
            with pytest.raises(Refused) as refused:
                server.evaluate(final)
            assert refused.value.client_message is None and server.principal is None


def test_messages_match_the_example_in_the_rfc() -> None:
    """RFC 7677: SCRAM-SHA-256 of `user` with the password `pencil`."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = scram.from_password("pencil", salt, 4096, "SCRAM-SHA-256")
    server = Scram("SCRAM-SHA-256", lambda name, by_token: Found(credential, ALICE))
    answer = _first(server, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert answer["s"] == "W22ZaJ0SNY7soEsUEjb6gQ==" and answer["i"] == "4096"
    # Replace the server's part of the nonce with that of the RFC.
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    server._said = server._said.replace(answer["r"], nonce)
    server._nonce = nonce
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert server.evaluate(f"c=biws,r={nonce},p={proof}".encode()) == (
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )


def test_unknown_users_are_indistinguishable_from_known_users() -> None:
    """An unknown user gets a challenge of the same form, a stable salt, and the same error."""
    answers = []
    for _ in range(2):
        server, client = _server("SCRAM-SHA-256"), ScramClient("SCRAM-SHA-256", "mallory", "secret")
        challenge = server.evaluate(client.first())
        parts = dict(part.split("=", 1) for part in challenge.decode().split(","))
        answers.append((parts["s"], parts["i"]))
        final = client.next(challenge)
        assert final is not None
        with pytest.raises(Refused) as refused:
            server.evaluate(final)
        assert refused.value.client_message is None
    assert answers[0] == answers[1] and answers[0][1] == "4096"


@pytest.mark.parametrize(
    "change",
    [
        lambda final, nonce: final.replace(f"r={nonce}", f"r={nonce[1:]}"),
        lambda final, nonce: final.replace(f"r={nonce}", f"r=x{nonce}"),
        lambda final, nonce: final.replace(f"r={nonce}", f"r={nonce}x"),
        lambda final, nonce: final.replace("c=biws", "c=eSws"),
        lambda final, nonce: final[: final.index(",p=")] + ",p=",
        lambda final, nonce: final[: final.index(",p=")] + ",p=AAAA",
        lambda final, nonce: final[: final.index(",p=")],
        lambda final, nonce: "",
        lambda final, nonce: "\0" * 20_000,
        lambda final, nonce: final + ",e=x",
    ],
)
def test_a_modified_final_message_is_rejected(change: object) -> None:
    """CVE-2024-56128: the server verified only the end of the nonce."""
    assert callable(change)
    server, client = _server("SCRAM-SHA-256"), ScramClient("SCRAM-SHA-256", "alice", "secret")
    challenge = server.evaluate(client.first())
    final = client.next(challenge)
    assert final is not None
    nonce = challenge.decode().split(",")[0].removeprefix("r=")
    with pytest.raises(Refused):
        server.evaluate(change(final.decode(), nonce).encode())
    assert server.principal is None


@pytest.mark.parametrize(
    "first",
    [
        "",
        "n,,",
        "y,,n=alice,r=abc",
        "p=tls-unique,,n=alice,r=abc",
        "n,,n=,r=abc",
        "n,,n=alice,r=",
        "n,,n=al,ice,r=abc",
        "n,,n=al=ice,r=abc",
        "n,,n=alice,r=a b",
        "n,,n=älice,r=abc",
    ],
)
def test_an_invalid_first_message_is_rejected(first: str) -> None:
    with pytest.raises(Refused) as refused:
        _server("SCRAM-SHA-256").evaluate(first.encode())
    assert refused.value.client_message is None


def test_an_authorization_id_of_another_user_is_rejected() -> None:
    """CVE-2017-12610: the server accepted a different user's authorization id."""
    with pytest.raises(Refused, match="different from username") as refused:
        _server("SCRAM-SHA-256").evaluate(b"n,a=admin,n=alice,r=abc")
    assert refused.value.client_message is not None
    assert _first(_server("SCRAM-SHA-256"), "n,a=alice,n=alice,r=abc")["i"] == "4096"


def test_a_credential_with_too_few_iterations_is_rejected() -> None:
    with pytest.raises(Refused, match="less than the minimum"):
        _server("SCRAM-SHA-256", iterations=4095).evaluate(b"n,,n=alice,r=abc")


@pytest.mark.parametrize(
    "challenge",
    ["", "r=other,s=YQ==,i=4096", "r={},s=YQ==,i=4096", "r={}x,s=YQ==,i=1", "r={}x,s=YQ==,i=99999"],
)
def test_a_client_rejects_invalid_server_messages(challenge: str) -> None:
    """With a single iteration, the server could guess the password from the client's proof."""
    client = ScramClient("SCRAM-SHA-256", "alice", "secret")
    nonce = client.first().decode().split("r=")[1]
    with pytest.raises(Untrusted):
        client.next(challenge.format(nonce).encode())


def test_a_client_rejects_a_server_that_does_not_know_the_password() -> None:
    client = ScramClient("SCRAM-SHA-256", "alice", "secret")
    nonce = client.first().decode().split("r=")[1]
    assert client.next(f"r={nonce}x,s=YQ==,i=4096".encode()) is not None
    with pytest.raises(Untrusted):
        client.next(b"v=AAAA")


@given(st.binary(min_size=1), st.integers(4096, 16384))
@settings(max_examples=50, deadline=None)
def test_stored_credentials_are_read_back_unchanged(salt: bytes, iterations: int) -> None:
    credential = scram.from_salted(b"salted", salt, iterations, "SCRAM-SHA-512")
    assert scram.decode(scram.encode(credential)) == credential
    assert "salt" not in repr(credential)


@pytest.mark.parametrize(
    "text", ["", "salt=YQ==", "salt=a,stored_key=b,server_key=c,iterations=x", "iterations"]
)
def test_invalid_credentials_are_rejected(text: str) -> None:
    with pytest.raises(ValueError):
        scram.decode(text)
