"""Commands connect with the client settings of --command-config: TLS, certificates, PLAIN and SCRAM."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.security.secured import USERS, Secured
from tests.support import java
from tests.support.servers import run_kafka_compat
from tests.tools.compare import neutral_lines

_JAAS = 'org.apache.kafka.common.security.{} required username="alice" password="{}";'
_PLAIN = "plain.PlainLoginModule"
_SCRAM = "scram.ScramLoginModule"


def _login(mechanism: str, password: str = USERS["alice"]) -> dict[str, str]:
    module = _PLAIN if mechanism == "PLAIN" else _SCRAM
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": _JAAS.format(module, password)}


def _file(folder: Path, settings: Mapping[str, str]) -> str:
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return str(file)


@pytest.mark.parametrize(
    ("listener", "protocol", "mechanism"),
    [
        ("SASL", "SASL_PLAINTEXT", "SCRAM-SHA-256"),
        ("SAFE", "SASL_SSL", "SCRAM-SHA-512"),
        ("SAFE", "SASL_SSL", "PLAIN"),
        ("SSL", "SSL", None),
    ],
)
def test_a_command_authenticates_with_its_client_settings(
    ours: Secured, tmp_path: Path, listener: str, protocol: str, mechanism: str | None
) -> None:
    settings = {
        "security.protocol": protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ours.authority.file),
    }
    if mechanism is None:
        settings |= {"ssl.keystore.type": "PEM"}
        settings |= {"ssl.keystore.location": str(ours.authority.sign("somebody").store)}
    else:
        settings |= _login(mechanism)
    where = ("--bootstrap-server", ours.addresses[listener], "--command-config", _file(tmp_path, settings))
    done = run_kafka_compat("broker-api-versions", *where)
    assert done.returncode == 0 and "Produce(0)" in done.stdout, done.stderr


def test_individual_settings_can_be_given_on_the_command_line(ours: Secured) -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", **_login("SCRAM-SHA-256")}
    given = [word for name, value in settings.items() for word in ("--command-property", f"{name}={value}")]
    done = run_kafka_compat("topics", "--bootstrap-server", ours.addresses["SASL"], "--list", *given)
    assert done.returncode == 0, done.stderr


def test_an_untrusted_broker_is_reported_immediately(ours: Secured, tmp_path: Path) -> None:
    file = _file(tmp_path, {"security.protocol": "SSL"})
    where = ("--bootstrap-server", ours.addresses["SSL"], "--command-config", file)
    done = run_kafka_compat("topics", "--list", *where)
    assert done.returncode == 1 and "SSL handshake failed" in done.stdout


def test_a_server_that_is_not_a_broker_is_reported_after_the_timeout(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        threading.Thread(target=_serve_the_web, args=(server,), daemon=True).start()
        file = _file(tmp_path, {"default.api.timeout.ms": "700", "request.timeout.ms": "500"})
        where = ("--bootstrap-server", f"{host}:{port}", "--command-config", file)
        done = run_kafka_compat("topics", "--list", *where)
    assert done.returncode == 1 and "TimeoutException" in done.stderr, done


def _serve_the_web(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_wrong_password_is_reported_as_in_apache_kafka(ours: Secured, tmp_path: Path) -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", **_login("SCRAM-SHA-256", "wrong")}
    line = ["--bootstrap-server", ours.addresses["SASL"], "--list"]
    line += ["--command-config", _file(tmp_path, settings)]
    mine = run_kafka_compat("topics", *line)
    hers = java.run("kafka-topics", *line, check=False)
    assert mine.returncode == hers.returncode
    assert mine.stdout == hers.stdout
    # Java's client logs the same error in addition.
    assert neutral_lines(mine.stderr) and {*neutral_lines(mine.stderr)} <= {*neutral_lines(hers.stderr)}
