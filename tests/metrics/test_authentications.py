"""Authentication metrics: successful and failed authentications, and expired sessions."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.metrics.scraping import Scrape
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

SOCKETS = "kafka_server_socket_server_metrics_"
SESSION_MAX_MS = 500
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a listener with SASL, and the URL of the HTTP listener."""
    url, port, safe = f"http://127.0.0.1:{free_port()}", free_port(), free_port()
    settings = {
        "kafka.compat.http.listener": url,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SAFE://127.0.0.1:{safe}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SAFE:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.safe.plain.sasl.jaas.config": JAAS,
        "listener.name.safe.connections.max.reauth.ms": str(SESSION_MAX_MS),
    }
    broker = KafkaCompatBroker(tmp_path_factory.mktemp("safe"), settings, port=port)
    broker.start()
    yield f"127.0.0.1:{safe}", url
    broker.stop()


def log_in(connection: Connection, password: str) -> int:
    """Authenticate, and return the error code."""
    connection.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    token = b"\0alice\0" + password.encode()
    answer = connection.ask(ApiKey.SASL_AUTHENTICATE, 1, {"auth_bytes": token})
    code: int = answer["error_code"]
    return code


def told(url: str) -> dict[str, float | None]:
    at = {"listener": "SAFE", "networkProcessor": "0"}
    seen = Scrape(url)
    what = ("successful", "failed")
    names = [f"{outcome}_{kind}_total" for outcome in what for kind in ("authentication", "reauthentication")]
    return {name: seen.value(f"{SOCKETS}{name}", **at) for name in names}


def test_successful_and_failed_authentications_are_counted(served: tuple[str, str]) -> None:
    address, url = served
    assert set(told(url).values()) == {0}
    for passwords in (("secret", "secret"), ("guess",), ("secret", "another guess")):
        with Connection(address) as connection:
            for password in passwords:
                assert (log_in(connection, password) == 0) == (password == "secret")
    assert told(url) == {
        "successful_authentication_total": 2,
        "successful_reauthentication_total": 1,
        "failed_authentication_total": 1,
        "failed_reauthentication_total": 1,
    }
    nobody = {"listener": "PLAINTEXT", "networkProcessor": "0"}
    assert Scrape(url).value(f"{SOCKETS}successful_authentication_total", **nobody) == 0


def test_expired_sessions_are_counted(served: tuple[str, str]) -> None:
    address, url = served
    name = "kafka_network_socketserver_expiredconnectionskilledcount"
    before = Scrape(url).value(name) or 0
    with Connection(address) as connection:
        assert log_in(connection, "secret") == 0
        time.sleep(SESSION_MAX_MS / 1000)  # the session expires

        def is_closed() -> bool:
            try:
                connection.ask(ApiKey.METADATA, 9, {"topics": []})
            except (ConnectionError, EOFError, AssertionError, OSError):
                return True
            return False

        wait_until(is_closed, 20, "the closed connection", 0.05)
    assert Scrape(url).value(name) == before + 1
