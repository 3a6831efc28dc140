"""OAUTHBEARER listeners serve real clients with valid tokens, and reject others as Apache Kafka does."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonProvider

from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.security.oauth.settings import validator_of
from tests.oracle.sasl_oracle import PACKAGE, SECURED, UNSECURED
from tests.security.oauth.issuer import Issuer, SigningKey, claims, key_set, part
from tests.security.oauth.wire import Wire, login
from tests.support import campaign, java
from tests.support.bystander import Bystander
from tests.support.ports import free_port
from tests.support.process import ProcessFailed, wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, run_kafka_compat

_KEY = SigningKey("k1")
_LISTENER = "listener.name.sasl_plaintext.oauthbearer."
_MODULE = f"{PACKAGE}OAuthBearerLoginModule required"


class _Place(NamedTuple):
    """A broker with an OAUTHBEARER listener on `port`."""

    server: Server
    port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


def _settings(handler: str, others: Mapping[str, str]) -> tuple[int, int, dict[str, str]]:
    """The PLAINTEXT port, the SASL_PLAINTEXT port, and the settings."""
    open_port, port = free_port(), free_port()
    return (
        open_port,
        port,
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{open_port},SASL_PLAINTEXT://127.0.0.1:{port}",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{_LISTENER}sasl.server.callback.handler.class": handler,
            f"{_LISTENER}sasl.jaas.config": f"{_MODULE};",
            "connection.failed.authentication.delay.ms": "10",
            **others,
        },
    )


def _secured(issuer: Issuer) -> dict[str, str]:
    return {
        "sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://issuer.example/",
    }


def _ours(directory: Path, handler: str, others: Mapping[str, str]) -> _Place:
    open_port, port, settings = _settings(handler, others)
    return _Place(KafkaCompatBroker(directory, settings, port=open_port), port)


def _token(name: str = "alice", key: SigningKey = _KEY, **others: Any) -> str:
    return key.sign(claims(name, **{"aud": "kafka", "iss": "https://issuer.example/"} | others))


def _message(token: str, extra: str = "") -> bytes:
    return f"n,{extra},\x01auth=Bearer {token}\x01\x01".encode()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer(_KEY) as issuer:
        yield issuer


@pytest.fixture(scope="module")
def places(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[_Place]]:
    """Our broker and Apache Kafka, with the same settings."""
    directory = tmp_path_factory.mktemp("oauth")
    ours = _ours(directory / "ours", SECURED, _secured(issuer))
    open_port, port, settings = _settings(SECURED, _secured(issuer))
    genuine = _Place(GenuineKafka(directory / "genuine", settings, port=open_port), port)
    both = [ours, genuine]
    try:
        for place in both:
            place.server.start()
        yield both
    finally:
        for place in both:
            place.server.stop()


_TOKENS: dict[str, Callable[[], list[bytes]]] = {
    "good": lambda: [_message(_token())],
    "good, for herself": lambda: [_message(_token(), "a=alice")],
    "good, for another": lambda: [_message(_token(), "a=bob")],
    "expired": lambda: [_message(_token(lifetime_s=-60, iat=1)), b"\x01"],
    "expired, within the skew": lambda: [_message(_token(lifetime_s=-5, iat=1))],
    "of another's key": lambda: [_message(_token(key=SigningKey("k1"))), b"\x01"],
    "for others": lambda: [_message(_token(aud="x")), b"\x01"],
    "of others": lambda: [_message(_token(iss="x")), b"\x01"],
    "no JWT": lambda: [_message("x"), b"\x01"],
    "none": lambda: [_message(f"{part({'alg': 'none'})}.{part(claims())}."), b"\x01"],
    "a second one": lambda: [_message("x"), _message(_token())],
    "no message": lambda: [b"alice"],
    "empty": lambda: [b""],
    "control a at first": lambda: [b"\x01"],
    "400 KB": lambda: [_message(_token(padding="x" * 300_000))],
}


@pytest.mark.parametrize("kind", _TOKENS)
def test_each_token_gets_the_same_response_as_from_apache_kafka(places: list[_Place], kind: str) -> None:
    tokens = _TOKENS[kind]()
    ours, genuine = (login(place.port, "OAUTHBEARER", tokens) for place in places)
    assert ours == genuine


def test_the_session_expires_with_the_token(places: list[_Place]) -> None:
    for place in places:
        with Wire(place.port) as wire:
            wire.handshake("OAUTHBEARER")
            answer = wire.authenticate(_message(_token(lifetime_s=2)))
            assert 0 < answer.session_lifetime_ms <= 2000
            wire.metadata()
            deadline_s = time.monotonic() + 5
            with pytest.raises(EOFError):
                while time.monotonic() < deadline_s:
                    wire.metadata()


def _with_confluent(place: _Place, token: str) -> str:
    problems: list[str] = []

    def give(_: str) -> tuple[str, float]:
        return token, time.time() + 3600

    producer = Producer(
        {
            "bootstrap.servers": place.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "oauth_cb": give,
            "error_cb": lambda error: problems.append(str(error)),
        }
    )
    end_s = time.monotonic() + 15
    while time.monotonic() < end_s:
        try:
            return "".join(producer.list_topics(timeout=1).topics.get("nothing", "served"))
        except KafkaException as error:
            assert error.args[0].code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT), error
        producer.poll(0)
        for problem in problems:
            if "invalid_token" in problem:
                return "invalid_token"
    return f"neither: {problems}"


def _with_kafka_python(place: _Place, token: str) -> str:
    class Provider(KafkaPythonProvider):  # type: ignore[misc]
        def token(self) -> str:
            return token

    try:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=place.address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
            bootstrap_timeout_ms=2000,
        )
        consumer.topics()
        consumer.close()
    except kafka.errors.KafkaError as error:
        return type(error).__name__
    return "served"


def _with_aiokafka(place: _Place, token: str) -> str:
    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return token

    async def produce() -> str:
        producer = AIOKafkaProducer(
            bootstrap_servers=place.address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
        )
        try:
            await producer.start()
            # aiokafka takes the response to a rejected token for success, and the failed metadata request for
            # an empty broker list.
            return "served" if producer.client.cluster.brokers() else "NoBrokersAvailable"
        except Exception as error:
            return type(error).__name__
        finally:
            await producer.stop()

    return asyncio.run(produce())


@pytest.mark.parametrize("client", [_with_confluent, _with_kafka_python, _with_aiokafka])
def test_only_clients_with_a_token_are_served(
    places: list[_Place], client: Callable[[_Place, str], str]
) -> None:
    assert [client(place, _token()) for place in places] == ["served", "served"]
    refused = client(places[0], _token(aud="x"))
    assert refused == "invalid_token" or refused.endswith(("Error", "NoBrokersAvailable"))


def test_kafkas_console_clients_can_fetch_and_use_a_token(issuer: Issuer, tmp_path: Path) -> None:
    settings = {"sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url}
    place = _ours(tmp_path / "ours", SECURED, settings)
    place.server.start()
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.login.callback.handler.class={PACKAGE}OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={issuer.token_url}\n"
        f'sasl.jaas.config={_MODULE} clientId="java" clientSecret="s" scope="a b" extension_traceId="1";\n'
    )
    try:
        produced = ("--bootstrap-server", place.address, "--producer.config", str(file), "--topic", "t")
        java.run("kafka-console-producer", *produced, stdin="hello\n")
        consumed = ("--bootstrap-server", place.address, "--consumer.config", str(file), "--topic", "t")
        read = java.run("kafka-console-consumer", *consumed, "--from-beginning", "--max-messages", "1")
        assert read.stdout.strip() == "hello"
        asked = len(issuer.token_requests)
        where = ("--bootstrap-server", place.address, "--command-config", str(file))
        done = run_kafka_compat("topics", *where, "--list")
        assert done.stdout.split() == ["__consumer_offsets", "t"], done.stderr
        assert len(issuer.token_requests) == asked + 1
        with file.open("a") as settings_file:
            settings_file.write(f"bootstrap.servers={place.address}\n")
        done = run_kafka_compat("doctor", str(file))
        assert done.returncode == 0 and "authenticated" in done.stdout, done.stdout + done.stderr
        nowhere = f"http://127.0.0.1:{free_port()}/token\nsasl.login.retry.backoff.max.ms=200"
        file.write_text(file.read_text().replace(issuer.token_url, nowhere))
        done = run_kafka_compat("topics", *where, "--list")
        assert done.returncode == 1 and "cannot get a token to log in" in done.stderr, done.stderr
    finally:
        place.server.stop()


def test_new_keys_are_fetched_only_when_a_key_is_missing(tmp_path: Path) -> None:
    with Issuer(_KEY) as issuer:
        place = _ours(tmp_path, SECURED, _secured(issuer))
        place.server.start()
        try:
            assert issuer.keys_asked == 1
            new = SigningKey("k2")
            issuer.keys.append(new)
            wait_until(
                lambda: login(place.port, "OAUTHBEARER", [_message(_token(key=new))])[-1] == "served",
                10,
                "a token signed with the new key is accepted",
            )
            begun_s, asked = time.monotonic(), issuer.keys_asked
            for number in itertools.count():
                login(place.port, "OAUTHBEARER", [_message(_KEY.sign(claims(), kid=f"x{number}")), b"\x01"])
                if time.monotonic() > begun_s + 3:
                    break
            assert number > 10
            assert 1 <= issuer.keys_asked - asked <= 5
        finally:
            place.server.stop()


def test_keys_are_kept_when_a_fetch_fails(tmp_path: Path) -> None:
    answers = itertools.cycle(
        [(500, b"no"), (200, b"rubbish"), (200, b"[" * 900_000), (200, b"x" * 3_000_000), None]
    )
    with Issuer(_KEY) as issuer:
        others = {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "200"}
        others |= {"sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "300"}
        place = _ours(tmp_path, SECURED, _secured(issuer) | others)
        place.server.start()
        try:
            asked = issuer.keys_asked
            with Bystander(place.server.port, place.server.pid) as bystander:
                issuer.keys_answer = lambda: next(answers)
                wait_until(lambda: issuer.keys_asked >= asked + 5, 20, "five requests for keys")
                for kind in ("good", "400 KB", "none"):
                    seen = login(place.port, "OAUTHBEARER", _TOKENS[kind]())
                    assert (seen[-1] == "served") == (kind != "none")
                login(place.port, "OAUTHBEARER", [_message(f"{part(b'[' * 8000)}.{'e' * 400_000}.x")])
            # A 400 KB token takes about 20 ms of CPU time.
            assert bystander.worst_ms < campaign.rounds(100, 50)
            begun_s = time.monotonic()
            assert place.server.stop() == 0
            assert time.monotonic() - begun_s < 5, "an unresponsive issuer delays the shutdown"
        finally:
            place.server.stop()


def _refusal(directory: Path, handler: str, others: Mapping[str, str]) -> str:
    """Start a broker with invalid settings, and return its log."""
    place = _ours(directory, handler, others)
    try:
        with pytest.raises(ProcessFailed):
            place.server.start(20)
    finally:
        place.server.stop()
    return place.server.log.read_text()


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://127.0.0.1/", "http://", "127.0.0.1/keys", "http://a b/", "http://a:0/", ""],
)
def test_the_url_of_the_key_set_must_be_http(url: str) -> None:
    _, _, settings = _settings(SECURED, {"sasl.oauthbearer.jwks.endpoint.url": url})
    config = BrokerConfig.from_properties(settings).for_listener("SASL_PLAINTEXT")
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url"):
        validator_of(config, {}, lambda source: pytest.fail(str(source)))


def test_redirects_to_another_scheme_are_not_followed(tmp_path: Path) -> None:
    with Issuer(_KEY) as issuer:
        issuer.location = "file:///etc/passwd"
        issuer.keys_answer = lambda: (302, b"")
        assert "another scheme" in _refusal(tmp_path, SECURED, _secured(issuer))


def test_unsupported_callback_handler_classes_are_rejected_and_never_loaded(tmp_path: Path) -> None:
    refusal = _refusal(tmp_path, "os.system", {})
    assert "sasl.server.callback.handler.class" in refusal and SECURED.rpartition(".")[2] in refusal
    assert "Traceback" not in refusal


def test_unsecured_tokens_are_accepted_only_if_configured(tmp_path: Path) -> None:
    token = f"{part({'alg': 'none'})}.{part({'sub': 'alice', 'exp': 4e9})}."
    place = _ours(tmp_path, UNSECURED, {})
    place.server.start()
    try:
        assert login(place.port, "OAUTHBEARER", [_message(token)])[-1] == "served"
        assert "accepts unsecured tokens" in place.server.log.read_text()
    finally:
        place.server.stop()


def test_tokens_and_signatures_are_never_logged(places: list[_Place], issuer: Issuer) -> None:
    token = _token("carol")
    login(places[0].port, "OAUTHBEARER", [_message(token)])
    login(places[0].port, "OAUTHBEARER", [_message(token + "x"), b"\x01"])
    text = places[0].server.log.read_text()
    assert token.split(".")[1] not in text and token.split(".")[2] not in text
    assert key_set(_KEY).decode() not in text
