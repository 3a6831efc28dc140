"""The HTTP listener of a broker: settings, responses to unknown requests, and shutdown."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.testing import BrokerFailed, KafkaBroker
from tests.support.bystander import Bystander
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker

PATH = "/control/v1/time"


def ask(
    port: int, method: str, path: str, body: str | bytes | None = None, **headers: str
) -> tuple[int, str, Any]:
    """Return the status, content type and JSON of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read()
        return response.status, response.headers.get_content_type(), json.loads(text) if text else None
    finally:
        connection.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaCompatBroker, int]]:
    port = free_port()
    settings = {
        "kafka.compat.http.listener": f"http://127.0.0.1:{port}",
        "kafka.compat.control.enable": "true",
    }
    broker = KafkaCompatBroker(tmp_path_factory.mktemp("http"), settings)
    broker.start()
    yield broker, port
    broker.stop()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("GET", "/x", None, 404, "GET /x: Not Found"),
        ("GET", PATH + "/x", None, 404, "Not Found"),
        ("PUT", PATH, None, 405, "Method Not Allowed"),
        ("POST", PATH, "{", 400, "the body is not JSON"),
        ("POST", PATH, b"\xff\xfe", 400, "the body is not JSON"),
        ("POST", PATH, "[]", 400, "expected a JSON object"),
        ("POST", PATH, "{}", 400, "advance_ms=None: expected a whole number of at least 1"),
        ("POST", PATH, '{"advance_ms": true}', 400, "advance_ms=True"),
        ("POST", PATH, '{"advance_ms": 0}', 400, "advance_ms=0"),
        ("POST", PATH, '{"advance": 1}', 400, "unknown field 'advance'; expected: advance_ms"),
        ("POST", PATH, "[" * 100_000, 400, "the body is not JSON"),
        ("POST", PATH, " " * 2_000_000, 413, "Request Entity Too Large"),
    ],
)
def test_invalid_requests_get_problem_details(
    served: tuple[KafkaCompatBroker, int],
    method: str,
    path: str,
    body: str | bytes | None,
    status: int,
    detail: str,
) -> None:
    broker, port = served
    with Bystander(broker.port, broker.pid) as bystander:
        found, kind, answer = ask(port, method, path, body)
    assert (found, kind) == (status, "application/problem+json")
    assert answer["status"] == status and detail in answer["detail"]
    assert bystander.worst_ms < 100
    assert "Traceback" not in broker.log.read_text()


def test_requests_from_other_sites_are_rejected(served: tuple[KafkaCompatBroker, int]) -> None:
    _, port = served
    assert ask(port, "GET", PATH)[0] == 200
    assert ask(port, "GET", PATH, None, Origin="https://example.com")[0] == 403
    assert ask(port, "GET", PATH, None, Host="rebound.example")[0] == 403


def test_a_client_with_a_different_protocol_does_not_affect_the_broker(
    served: tuple[KafkaCompatBroker, int],
) -> None:
    broker, port = served
    with Bystander(broker.port, broker.pid) as bystander:
        for hello in (b"\0\0\0\x0a\0\x12\0\0", b"GET / HTTP/9\r\n\r\n", b"\x16\x03\x01" + bytes(300)):
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                connection.sendall(hello)
                connection.settimeout(0.2)
                with contextlib.suppress(TimeoutError, ConnectionError):
                    connection.recv(1000)
        assert ask(port, "GET", PATH)[0] == 200
    assert bystander.worst_ms < 100


def test_requests_need_the_token_and_the_token_is_never_logged(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "kafka.compat.http.listener": f"http://0.0.0.0:{port}",
        "kafka.compat.http.token": "a secret token",
        "kafka.compat.control.enable": "true",
    }
    broker = KafkaCompatBroker(tmp_path, settings)
    broker.start()
    try:
        assert ask(port, "GET", PATH)[0] == 401
        assert ask(port, "GET", PATH, None, Authorization="Bearer wrong")[0] == 401
        assert ask(port, "GET", PATH, None, Authorization="Bearer a secret token")[0] == 200
    finally:
        broker.stop()
    assert "a secret token" not in broker.log.read_text()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kafka.compat.http.listener": "0.0.0.0:80"}, "expected for example http://127.0.0.1:8080"),
        ({"kafka.compat.http.listener": "http://127.0.0.1"}, "expected for example http"),
        ({"kafka.compat.http.listener": "http://127.0.0.1:99999"}, "expected for example http"),
        ({"kafka.compat.http.listener": "https://127.0.0.1:80"}, "expected for example http"),
        ({"kafka.compat.http.listener": "http://0.0.0.0:0"}, "set kafka.compat.http.token"),
        ({"kafka.compat.http.listener": ""}, "kafka.compat.control.enable=true requires an HTTP listener"),
    ],
)
@pytest.mark.parametrize("brokers", [(), ("--brokers", "2")])
def test_invalid_settings_are_rejected(settings: dict[str, str], said: str, brokers: tuple[str, ...]) -> None:
    broker = KafkaBroker(settings)
    broker._process._arguments += brokers
    with pytest.raises(BrokerFailed, match="exit code 2") as failed:
        broker.start()
    assert said in str(failed.value)


def test_an_address_in_use_aborts_startup() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            BrokerFailed, match=f"cannot listen on kafka.compat.http.listener=.*:{port}: Address"
        ):
            KafkaBroker({"kafka.compat.http.listener": f"http://127.0.0.1:{port}"}).start()


def test_paths_of_disabled_features_explain_how_to_enable_them(tmp_path: Path) -> None:
    port = free_port()
    broker = KafkaCompatBroker(tmp_path, {"kafka.compat.http.listener": f"http://127.0.0.1:{port}"})
    broker.start()
    try:
        status, _, told = ask(port, "POST", PATH, '{"advance_ms": 1}')
        assert status == 404 and told["detail"].endswith("set kafka.compat.control.enable=true")
        status, _, told = ask(port, "GET", "/ui/overview")
        assert status == 404 and told["detail"].endswith("set kafka.compat.http.page.enable=true")
        assert ask(port, "GET", "/nowhere")[2]["detail"] == "GET /nowhere: Not Found"
    finally:
        broker.stop()
