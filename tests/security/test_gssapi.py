"""GSSAPI with a local KDC: real clients log in, and get the same responses as from Apache Kafka."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafka_compat.security.broker_security import BrokerSecurity, SaslLogin
from kafka_compat.security.jaas import LoginModule
from kafka_compat.security.kerberos_settings import client_of, server_of
from kafka_compat.security.sasl.client import Untrusted
from kafka_compat.security.sasl.gssapi import GssapiClient, Identity, by_key_table
from kafka_compat.security.sasl.offer import login_module
from tests.security.kdc import REALM, Kdc, missing
from tests.security.oauth.wire import Wire
from tests.support import java
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, run_kafka_compat

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

_MODULE = "com.sun.security.auth.module.Krb5LoginModule"


class _Place(NamedTuple):
    server: Server
    port: int


class _World(NamedTuple):
    kdc: Kdc
    alice: Path
    """Her keytab."""
    places: list[_Place]
    """Our broker, and Apache Kafka."""


def _settings(key_table: Path) -> tuple[int, int, dict[str, str]]:
    open_port, port = free_port(), free_port()
    login = (
        f"{_MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{key_table}" principal="kafka/localhost@{REALM}";'
    )
    return (
        open_port,
        port,
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{open_port},SASL_PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{open_port},SASL_PLAINTEXT://localhost:{port}",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": login,
            "connection.failed.authentication.delay.ms": "10",
        },
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_World]:
    directory = tmp_path_factory.mktemp("kerberos")
    kdc = Kdc(directory / "kdc")
    places: list[_Place] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.configuration}")
        try:
            kdc.start()
            key_table = kdc.key_table("kafka/localhost")
            alice = kdc.key_table("alice")
            kinds: tuple[type[KafkaCompatBroker] | type[GenuineKafka], ...] = (
                KafkaCompatBroker,
                GenuineKafka,
            )
            for kind in kinds:
                open_port, port, settings = _settings(key_table)
                places.append(_Place(kind(directory / kind.__name__, settings, port=open_port), port))
                places[-1].server.start()
            yield _World(kdc, alice, places)
        finally:
            for place in places:
                place.server.stop()
            kdc.stop()


class _Client:
    """The client's side of RFC 4752. `choice` is its final message, which selects the security layer."""

    def __init__(self, world: _World, choice: bytes) -> None:
        import gssapi

        name = gssapi.Name(f"alice@{REALM}", gssapi.NameType.kerberos_principal)
        store: dict[bytes | str, bytes | str] = {
            "client_keytab": str(world.alice),
            "ccache": f"FILE:{world.kdc.directory}/alice",
        }
        credentials = gssapi.Credentials(name=name, usage="initiate", store=store)
        service = gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service)
        flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
        self._context: Any = gssapi.SecurityContext(
            name=service, creds=credentials, usage="initiate", mech=gssapi.MechType.kerberos, flags=flags
        )
        self._choice = choice

    def first(self) -> bytes:
        return bytes(self._context.step())

    def next(self, challenge: bytes) -> bytes:
        if not self._context.complete:
            return bytes(self._context.step(challenge) or b"")
        offered = self._context.unwrap(challenge).message
        assert len(offered) == 4 and offered[0] == 1
        return bytes(self._context.wrap(self._choice, False).message)


_CHOICES = {
    "no layer": b"\1\0\0\0",
    "no layer, for herself": b"\1\0\0\0alice@TEST.EXAMPLE",
    "no layer, for another": b"\1\0\0\0bob@TEST.EXAMPLE",
    "integrity": b"\2\0\xff\xff",
    "nothing": b"\0\0\0\0",
}


@pytest.mark.parametrize("kind", _CHOICES)
def test_requests_for_security_layers_get_the_same_responses_as_from_apache_kafka(
    world: _World, kind: str
) -> None:
    def seen(place: _Place) -> list[object]:
        client = _Client(world, _CHOICES[kind])
        found: list[object] = []
        with Wire(place.port) as wire:
            assert wire.handshake("GSSAPI").error_code == 0
            token = client.first()
            try:
                for _ in range(3):
                    answer = wire.authenticate(token)
                    found.append((answer.error_code, answer.error_message, answer.session_lifetime_ms))
                    if answer.error_code or not answer.auth_bytes:
                        break
                    token = client.next(bytes(answer.auth_bytes))
                wire.metadata()
                return [*found, "served"]
            except EOFError:
                return [*found, "closed"]

    ours, genuine = map(seen, world.places)
    assert ours == genuine
    assert (ours[-1] == "served") == kind.startswith("no layer")


@pytest.mark.parametrize("handshake", [True, False])
def test_tokens_can_be_sent_without_a_kafka_header(world: _World, handshake: bool) -> None:
    """Kafka 0.10 clients send bare tokens after a SaslHandshake v0, and Kafka 0.9 clients without one."""
    for place in world.places:
        client = _Client(world, _CHOICES["no layer"])
        with Wire(place.port) as wire:
            if handshake:
                wire.handshake("GSSAPI", 0)
            challenge = wire.frame(client.first())
            challenge = wire.frame(client.next(challenge))
            wire.send(client.next(challenge))
            assert len(wire.metadata().brokers) == 1


@pytest.mark.parametrize("has_key", [True, False])
def test_commands_log_in_with_a_key_table_or_with_cached_tickets(
    world: _World, tmp_path: Path, has_key: bool
) -> None:
    cache = tmp_path / "tickets"
    if has_key:
        login = f'useKeyTab=true keyTab="{world.alice}" principal="alice@{REALM}"'
    else:
        subprocess.run(["kinit", "-c", cache, "-k", "-t", world.alice, f"alice@{REALM}"], check=True)
        login = f'useTicketCache=true ticketCache="{cache}"'
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={_MODULE} required {login};\n"
    )
    for place in world.places:
        where = ("--bootstrap-server", f"localhost:{place.port}", "--command-config", str(file))
        done = run_kafka_compat("broker-api-versions", *where)
        assert done.returncode == 0 and "Produce(0)" in done.stdout, done.stderr
    cache.unlink(missing_ok=True)
    done = run_kafka_compat("broker-api-versions", *where)
    assert (done.returncode == 0) == has_key
    assert has_key or "SaslAuthenticationException: Kerberos: this user at kafka@localhost" in done.stderr


@pytest.mark.parametrize("rubbish", [b"", b"\x60\x82", b"\x60" + b"\xff" * 5000, b"rubbish"])
def test_invalid_tokens_are_rejected(world: _World, rubbish: bytes) -> None:
    def seen(place: _Place) -> tuple[int, str | None]:
        with Wire(place.port) as wire:
            wire.handshake("GSSAPI")
            answer = wire.authenticate(rubbish)
            return answer.error_code, answer.error_message

    ours, genuine = map(seen, world.places)
    assert ours == genuine
    with Wire(world.places[0].port) as wire, pytest.raises(EOFError):
        wire.frame(b"\x60\x82" + rubbish)


def test_kafkas_console_clients_are_served(world: _World, tmp_path: Path) -> None:
    address = f"localhost:{world.places[0].port}"
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={_MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{world.alice}" principal="alice@{REALM}";\n'
    )
    produced = ("--bootstrap-server", address, "--producer.config", str(file), "--topic", "java")
    java.run("kafka-console-producer", *produced, stdin="hello\n")
    consumed = ("--bootstrap-server", address, "--consumer.config", str(file), "--topic", "java")
    read = java.run("kafka-console-consumer", *consumed, "--from-beginning", "--max-messages", "1")
    assert read.stdout.strip() == "hello"


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_can_authenticate_with_kerberos(world: _World) -> None:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.keytab": str(world.alice),
        "sasl.kerberos.principal": f"alice@{REALM}",
    }
    line = ["kcat", "-b", f"localhost:{world.places[0].port}"]
    for name, value in settings.items():
        line += ["-X", f"{name}={value}"]
    run: Callable[..., Any] = subprocess.run
    common = {"capture_output": True, "text": True, "timeout": 60}
    produced = run([*line, "-P", "-t", "kcat"], input="hello\n", **common)
    if "No worthy mechs found" in produced.stderr:
        pytest.skip("Cyrus SASL has no GSSAPI here (apt-get install libsasl2-modules-gssapi-mit)")
    assert produced.returncode == 0, produced.stderr
    read = run([*line, "-C", "-t", "kcat", "-o", "beginning", "-c", "1"], **common)
    assert read.stdout == "hello\n", read.stderr


def _own_user(world: _World, service: str = "kafka") -> BrokerSecurity:
    """The security of a broker that logs in to other brokers as `kafka/localhost`."""
    _, _, settings = _settings(world.kdc.directory / "kafka-localhost.keytab")
    named = {**settings, "sasl.kerberos.service.name": service}
    listener = BrokerConfig.from_properties(named).for_listener("SASL_PLAINTEXT")
    new_client = client_of(listener, login_module(listener, "GSSAPI"))
    return BrokerSecurity(login=SaslLogin("GSSAPI", new_client, asks_others=True))


async def test_a_broker_authenticates_to_other_brokers(world: _World) -> None:
    for place in world.places:
        client = BrokerClient("localhost", place.port, "test", security=_own_user(world))
        found: MetadataResponse = await client.send(ApiKey.METADATA, 4, MetadataRequest(topics=[]))
        assert [broker.port for broker in found.brokers] == [place.port]
        await client.close()


async def test_a_broker_logs_the_reason_for_an_authentication_failure(world: _World) -> None:
    ours = world.places[0]
    unknown = BrokerClient("localhost", ours.port, "test", security=_own_user(world, "other"))
    with pytest.raises(ConnectionError, match=r"other@localhost: .*not found in Kerberos database"):
        await unknown.connect()
    await unknown.close()
    # This principal exists, but the broker has no key for it.
    world.kdc.key_table("another/localhost")
    another = BrokerClient("localhost", ours.port, "test", security=_own_user(world, "another"))
    with pytest.raises(ConnectionError, match="it rejects this broker's user"):
        await another.connect()
    await another.close()


async def test_an_unresponsive_kdc_does_not_delay_other_clients(
    world: _World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    configuration = tmp_path / "krb5.conf"
    known = world.kdc.configuration.read_text()
    configuration.write_text(known.replace(f":{world.kdc.port}", f":{silent.getsockname()[1]}"))
    monkeypatch.setenv("KRB5_CONFIG", str(configuration))
    security = _own_user(world)
    client = BrokerClient(
        "localhost", world.places[0].port, "test", connect_timeout_ms=1000, security=security
    )
    connecting = asyncio.create_task(client.connect())
    longest_s, before_s = 0.0, time.monotonic()
    while not connecting.done():
        await asyncio.sleep(0.005)  # interval of measuring the delay of the event loop
        now_s = time.monotonic()
        longest_s, before_s = max(longest_s, now_s - before_s), now_s
    with pytest.raises(ConnectionError):
        await connecting
    await client.close()
    silent.close()
    assert longest_s < 0.5


def test_tickets_are_renewed_before_they_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the KDC is unavailable, the cached tickets are used."""
    lifetime_s = 3
    kdc = Kdc(tmp_path / "kdc", lifetime_s)
    for name, value in kdc.environment.items():
        monkeypatch.setenv(name, value)
    kdc.start()
    try:
        identity = Identity(f"kafka/localhost@{REALM}", str(kdc.key_table("kafka/localhost")))
        tickets = by_key_table(identity)
        began_s = time.monotonic()
        while time.monotonic() < began_s + 2 * lifetime_s:
            assert GssapiClient(tickets, "kafka", "localhost").first()
            time.sleep(0.5)  # interval of logins, over two lifetimes of a ticket
    finally:
        kdc.stop()
    assert GssapiClient(tickets, "kafka", "localhost").first()
    with pytest.raises(Untrusted, match=r"Kerberos: kafka/localhost@TEST\.EXAMPLE at other@localhost: "):
        GssapiClient(tickets, "other", "localhost").first()


def _config(**others: str) -> Any:
    _, _, settings = _settings(Path("/nowhere"))
    return BrokerConfig.from_properties(settings | others).for_listener("SASL_PLAINTEXT")


def test_invalid_settings_are_reported_with_the_reason(tmp_path: Path) -> None:
    options = {
        "useKeyTab": "true",
        "keyTab": str(tmp_path / "no"),
        "principal": "kafka/localhost@TEST.EXAMPLE",
    }
    uses: tuple[Callable[..., object], ...] = (server_of, client_of)
    for use in uses:
        with pytest.raises(ConfigError, match="cannot read the keytab"):
            use(_config(), LoginModule(_MODULE, options))
        for without in options:
            with pytest.raises(ConfigError, match="no principal with a keytab"):
                rest = {name: value for name, value in options.items() if name != without}
                use(_config(), LoginModule(_MODULE, rest))
        with pytest.raises(ConfigError, match="Conflicting serviceName"):
            use(_config(), LoginModule(_MODULE, options | {"serviceName": "other"}))
