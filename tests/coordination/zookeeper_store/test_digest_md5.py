"""DIGEST-MD5 as specified by RFC 2831. test_secure_zookeeper.py checks it against a ZooKeeper."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_compat.coordination.zookeeper_store.digest_md5 import DigestError, DigestMd5Client

CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'


def client() -> DigestMd5Client:
    return DigestMd5Client("chris", "secret", uri="imap/elwood.innosoft.com", cnonce="OA6MHXh6VqTrRk")


def test_the_response_matches_the_example_in_the_rfc() -> None:
    exchange = client()
    response = exchange.evaluate(CHALLENGE)
    assert set(response.split(b",")) == {
        b"charset=utf-8",
        b'username="chris"',
        b'realm="elwood.innosoft.com"',
        b'nonce="OA6MG9tEQGm2hh"',
        b"nc=00000001",
        b'cnonce="OA6MHXh6VqTrRk"',
        b'digest-uri="imap/elwood.innosoft.com"',
        b"response=d388dad90d4bbd760a152321f2143af7",
        b"qop=auth",
    }
    assert not exchange.done
    assert exchange.evaluate(b"rspauth=ea40f60335c427b5527b84dbabcdfffd") == b""
    assert exchange.done


@pytest.mark.parametrize(
    ("final", "problem"),
    [
        (b"rspauth=ea40f60335c427b5527b84dbabcdfffe", "does not prove"),
        (b"rspauth=", "does not prove"),
        (b"", "does not prove"),
    ],
)
def test_a_server_that_does_not_know_the_password_is_rejected(final: bytes, problem: str) -> None:
    exchange = client()
    exchange.evaluate(CHALLENGE)
    with pytest.raises(DigestError, match=problem):
        exchange.evaluate(final)
    assert not exchange.done


@pytest.mark.parametrize(
    ("challenge", "problem"),
    [
        (b"", "no nonce"),
        (b'realm="r",algorithm=md5-sess', "no nonce"),
        (b'nonce="n"', "an algorithm other"),
        (b'nonce="n",algorithm=md5', "an algorithm other"),
        (b'nonce="n",algorithm=md5-sess,qop="auth-int,auth-conf"', "protection other"),
        (b'nonce="n",nonce="m",algorithm=md5-sess', "nonce twice"),
        (b'nonce="n,algorithm=md5-sess', "malformed"),
        (b"rspauth=ea40f60335c427b5527b84dbabcdfffd", "no nonce"),
    ],
)
def test_an_invalid_challenge_is_rejected_without_a_response(challenge: bytes, problem: str) -> None:
    with pytest.raises(DigestError, match=problem):
        client().evaluate(challenge)


def test_each_client_has_its_own_nonce() -> None:
    assert DigestMd5Client("a", "b").evaluate(CHALLENGE) != DigestMd5Client("a", "b").evaluate(CHALLENGE)


@given(st.binary(max_size=200))
@example(b'nonce="' + b"\\" * 50)
def test_every_challenge_results_in_a_response_or_a_digest_error(challenge: bytes) -> None:
    for text in (challenge, CHALLENGE + b"," + challenge):
        try:
            assert b"secret" not in client().evaluate(text) or b"secret" in challenge
        except DigestError:
            continue
