"""Sequences of requests to a SASL listener get the same responses from our broker and from Apache Kafka."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.sasl.client import ScramClient, Untrusted
from tests.conformance.wire import Closed, Connection, Plain, frame
from tests.security.secured import SESSION_MAX_MS, USERS, Secured

SEED = 20260101
TIMEOUT_S = 10.0
PASSWORD = USERS["alice"]
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "plain", "")


class Talk:
    """One connection, and the outcome of each step. The last is "closed" if the broker disconnects."""

    def __init__(self, address: str) -> None:
        self.outcomes: list[object] = []
        self._connection = Connection(address, TIMEOUT_S)
        self._scram: ScramClient | None = None
        self._challenge = b""

    @property
    def over(self) -> bool:
        return bool(self.outcomes) and self.outcomes[-1] == "closed"

    def _ask(self, key: ApiKey, version: int, request: Plain) -> Plain | None:
        try:
            return self._connection.ask(key, version, request)
        except Closed:
            self.outcomes.append("closed")
            return None

    def versions(self, version: int = 3, name: str = "test") -> None:
        request = {"client_software_name": name, "client_software_version": "1.0"} if version > 2 else {}
        answer = self._ask(ApiKey.API_VERSIONS, version, request)
        if answer is not None:
            self.outcomes.append(("versions", answer["error_code"], bool(answer["api_keys"])))

    def handshake(self, mechanism: str, version: int = 1) -> None:
        answer = self._ask(ApiKey.SASL_HANDSHAKE, version, {"mechanism": mechanism})
        if answer is not None:
            self.outcomes.append(("handshake", answer["error_code"], sorted(answer["mechanisms"])))
            self._scram = ScramClient(mechanism, "alice", PASSWORD) if mechanism.startswith("SCRAM") else None
            self._challenge = b""

    def token(self, token: bytes, version: int = 2) -> None:
        answer = self._ask(ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": token})
        if answer is not None:
            self._challenge = answer["auth_bytes"]
            lifetime_ms = answer["session_lifetime_ms"]
            near = SESSION_MAX_MS if SESSION_MAX_MS - 5_000 < lifetime_ms <= SESSION_MAX_MS else lifetime_ms
            form = [part.partition(b"=")[0] for part in self._challenge.split(b",")]
            self.outcomes.append(("token", answer["error_code"], answer["error_message"], form, near))

    def scram(self, change: Callable[[bytes], bytes] = lambda token: token, version: int = 2) -> None:
        """Send the next token of a SCRAM client with the correct password."""
        self.token(change(self._next_scram()), version)

    def _next_scram(self) -> bytes:
        if self._scram is None:
            return b"n,,n=alice,r=abc"
        try:
            token = self._scram.next(self._challenge) if self._challenge else self._scram.first()
        except Untrusted:
            token = b"untrusted"
        return token or b"done"

    def bare(self, token: bytes) -> None:
        """Send a token without a Kafka header, and receive the next frame."""
        self._connection.send(frame(token))
        try:
            answer = self._connection.receive()
        except Closed:
            self.outcomes.append("closed")
        else:
            self._challenge = answer
            self.outcomes.append(("bare", [part.partition(b"=")[0] for part in answer.split(b",")]))

    def bare_scram(self) -> None:
        self.bare(self._next_scram())

    def metadata(self) -> None:
        answer = self._ask(ApiKey.METADATA, 9, {"topics": []})
        if answer is not None:
            self.outcomes.append(("metadata", len(answer["brokers"])))

    def raw(self, data: bytes) -> None:
        """Send bytes after which the broker should close the connection."""
        self._connection.send(data)
        self.outcomes.append("closed" if self._connection.closed_by_peer() else "open")

    def close(self) -> None:
        self._connection.close()


Script = list[Callable[[Talk], None]]


def told(secured: Secured, listener: str, script: Script) -> list[object]:
    talk = Talk(secured.addresses[listener])
    try:
        for step in script:
            step(talk)
            if talk.over:
                break
        return talk.outcomes
    finally:
        talk.close()


def plain(name: str = "alice", password: str = PASSWORD, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{name}\0{password}".encode()


def v(version: int = 3, name: str = "test") -> Callable[[Talk], None]:
    return lambda talk: talk.versions(version, name)


def h(mechanism: str = "PLAIN", version: int = 1) -> Callable[[Talk], None]:
    return lambda talk: talk.handshake(mechanism, version)


def t(token: bytes, version: int = 2) -> Callable[[Talk], None]:
    return lambda talk: talk.token(token, version)


def b(token: bytes) -> Callable[[Talk], None]:
    return lambda talk: talk.bare(token)


def s(change: Callable[[bytes], bytes] = lambda token: token, version: int = 2) -> Callable[[Talk], None]:
    return lambda talk: talk.scram(change, version)


def bs(talk: Talk) -> None:
    talk.bare_scram()


def m(talk: Talk) -> None:
    talk.metadata()


def r(data: bytes) -> Callable[[Talk], None]:
    return lambda talk: talk.raw(data)


SCRIPTS: dict[str, Script] = {
    "as clients do": [v(), h(), t(plain()), m],
    "without versions": [h(), t(plain(), 1), m],
    "without a lifetime": [v(0), h(), t(plain(), 0), m],
    "versions twice": [v(), v()],
    "versions of a version that nobody knows, then another": [
        lambda talk: talk.versions(4),
        h(),
        t(plain()),
        m,
    ],
    "versions of a client without a name": [v(3, ""), v(3, "-"), v(), h(), t(plain())],
    "two handshakes": [h(), h()],
    "versions in the middle": [h(), v()],
    "a request in the middle": [h(), m],
    "a request first": [m],
    "a token first": [t(plain())],
    "SCRAM 256": [v(), h("SCRAM-SHA-256"), s(), s(), m],
    "SCRAM 512": [h("SCRAM-SHA-512"), s(), s(), m],
    "SCRAM over bare tokens": [h("SCRAM-SHA-512", 0), bs, bs, m],
    "SCRAM with a wrong proof": [h("SCRAM-SHA-256"), s(), s(lambda token: token[:-8] + b"AAAAAAA=")],
    "SCRAM with another nonce": [h("SCRAM-SHA-256"), s(), s(lambda token: token.replace(b"r=", b"r=0"))],
    "SCRAM with rubbish": [h("SCRAM-SHA-256"), t(b"rubbish")],
    "SCRAM with rubbish at the end": [h("SCRAM-SHA-256"), s(), t(b"rubbish")],
    "SCRAM as somebody else": [h("SCRAM-SHA-256"), s(lambda token: token.replace(b"n,,", b"n,a=bob,"))],
    "SCRAM with an extension": [h("SCRAM-SHA-256"), s(lambda token: token + b",x=y")],
    "a wrong password": [v(), h(), t(plain(password="wrong"))],
    "an unknown user": [v(), h(), t(plain("mallory"))],
    "a wrong password, before lifetimes were told": [v(), h(), t(plain(password="wrong"), 0)],
    "another authorization id": [h(), t(plain(authorization_id="bob"))],
    "the same authorization id": [h(), t(plain(authorization_id="alice")), m],
    "no password": [h(), t(plain(password=""))],
    "no name": [h(), t(plain(name=""))],
    "too few parts": [h(), t(b"alice")],
    "too many parts": [h(), t(plain() + b"\0")],
    "an empty token": [h(), t(b"")],
    "bare tokens": [h(version=0), b(plain()), m],
    "bare tokens after versions": [v(), h(version=0), b(plain()), m],
    "a wrong bare token": [h(version=0), b(plain(password="wrong"))],
    "a bare token where requests are due": [h(), r(frame(plain()))],
    "an unknown mechanism": [v(), h("GSSAPI")],
    "an unknown mechanism, long ago": [h("X", 0)],
    "an empty mechanism": [h("")],
    "SASL again on an authenticated connection": [h(), t(plain()), h(), t(plain()), m],
    "another mechanism at the second time": [h(), t(plain()), h("SCRAM-SHA-256"), s()],
    "a request after another mechanism": [h(), t(plain()), h("SCRAM-SHA-256"), m],
    "versions after another mechanism": [h(), t(plain()), h("SCRAM-SHA-256"), v()],
    "an unknown mechanism at the second time": [h(), t(plain()), h("GSSAPI")],
    "bare tokens at the second time": [h(), t(plain()), h(version=0), b(plain()), m],
    "SCRAM over bare tokens at the second time": [
        h("SCRAM-SHA-256"),
        s(),
        s(),
        h("SCRAM-SHA-256", 0),
        bs,
        bs,
        m,
    ],
    "a wrong bare token at the second time": [h(), t(plain()), h(version=0), b(plain(password="wrong"))],
    "rubbish": [r(frame(b"rubbish"))],
    "no bytes": [r(struct.pack(">i", 0))],
    "a frame that is too large": [r(struct.pack(">i", 524_289))],
    "TLS": [r(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")],
}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("listener", ["SASL", "AGAIN"])
def test_each_sasl_conversation_gets_the_same_responses(
    ours: Secured, theirs: Secured, listener: str, name: str
) -> None:
    script = SCRIPTS[name]
    assert told(ours, listener, script) == told(theirs, listener, script)


def _random_script(chance: random.Random) -> Script:
    def step() -> Callable[[Talk], None]:
        steps: list[Callable[[], Callable[[Talk], None]]] = [
            lambda: v(chance.choice([0, 1, 2, 3])),
            lambda: h(chance.choice(MECHANISMS[:3]), chance.choice([0, 1, 1, 1])),
            lambda: h(chance.choice(MECHANISMS)),
            lambda: t(chance.choice([plain(), plain("bob", USERS["bob"]), plain(password="no"), b"\0"])),
            lambda: s(version=chance.choice([0, 1, 2])),
            lambda: b(chance.choice([plain(), b"n,,n=alice,r=abc"])),
            lambda: bs,
            lambda: m,
        ]
        return chance.choice(steps)()

    script = [step() for _ in range(chance.randint(1, 4))]
    good: list[Script] = [
        [],
        [h()],
        [v(), h(), t(plain())],
        [h("SCRAM-SHA-256"), s()],
        [h("SCRAM-SHA-512"), s(), s()],
    ]
    return chance.choice(good) + script


@pytest.mark.timeout(3600)
def test_random_sasl_conversations_get_the_same_responses(
    ours: Secured, theirs: Secured, campaign: bool
) -> None:
    for number in range(3000 if campaign else 40):
        listener = "AGAIN" if number % 2 else "SASL"
        script = _random_script(random.Random(SEED + number))
        same = told(ours, listener, script) == told(theirs, listener, script)
        assert same, f"script {number} on {listener}"
