"""Security settings for clients, passed to client programs as JSON in an environment variable.

`protocol` and `ca`; `certificate` and `key` for TLS client authentication; `mechanism`, `user` and `password`
for password authentication; `token_url` for OAuth; `principal`, `keytab` and `service` for Kerberos, for
clients that do not use Kerberos's own environment. Paths refer to PEM files. Java programs read the file
named by JAVA_VARIABLE. Without the variables, clients use plaintext without authentication.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_compat.security.broker_security import BrokerSecurity

VARIABLE = "CLIENT_SECURITY"
JAVA_VARIABLE = "CLIENT_SECURITY_PROPERTIES"


def _given() -> dict[str, str]:
    given: dict[str, str] = json.loads(os.environ.get(VARIABLE, "{}"))
    return given


@contextmanager
def told(given: Mapping[str, str], java_file: Path) -> Iterator[None]:
    """Apply the settings within the block, in this process and its child processes."""
    variables = {VARIABLE: json.dumps(dict(given)), JAVA_VARIABLE: str(java_file)}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def java_file() -> Path | None:
    """Return the properties file for Java clients and Kafka's tools, or None without security."""
    file = os.environ.get(JAVA_VARIABLE)
    return Path(file) if file is not None else None


def for_java() -> dict[str, str]:
    """Return the settings in that file."""
    file = java_file()
    lines = file.read_text().splitlines() if file is not None else []
    return dict(line.split("=", 1) for line in lines)


def _token() -> tuple[str, float]:
    """Fetch a token from `token_url`, and return it with its expiry (Unix time in seconds)."""
    login = base64.b64encode(b"client:secret").decode()
    form = b"grant_type=client_credentials&scope=kafka"
    request = urllib.request.Request(_given()["token_url"], form, {"Authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        found = json.load(answer)
    return found["access_token"], time.time() + found["expires_in"]


def _named(names: dict[str, str]) -> dict[str, Any]:
    """Return the given settings under the client's names."""
    given = _given()
    return {name: given[ours] for ours, name in names.items() if ours in given}


def for_librdkafka() -> dict[str, Any]:
    names = {
        "protocol": "security.protocol",
        "ca": "ssl.ca.location",
        "certificate": "ssl.certificate.location",
        "key": "ssl.key.location",
        "mechanism": "sasl.mechanisms",
        "user": "sasl.username",
        "password": "sasl.password",
    }
    found = _named(names)
    if "token_url" in _given():
        found["oauth_cb"] = lambda _: _token()
    return found


def for_kafka_python() -> dict[str, Any]:
    names = {
        "protocol": "security_protocol",
        "ca": "ssl_cafile",
        "certificate": "ssl_certfile",
        "key": "ssl_keyfile",
        "mechanism": "sasl_mechanism",
        "user": "sasl_plain_username",
        "password": "sasl_plain_password",
        "service": "sasl_kerberos_service_name",
    }
    found = _named(names)
    if "token_url" in _given():
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            def token(self) -> str:
                return _token()[0]

        found["sasl_oauth_token_provider"] = Provider()
    return found


def for_aiokafka() -> dict[str, Any]:
    given = _given()
    if not given:
        return {}
    context = ssl.create_default_context(cafile=given["ca"])
    if "certificate" in given:
        context.load_cert_chain(given["certificate"], given["key"])
    names = {
        "protocol": "security_protocol",
        "mechanism": "sasl_mechanism",
        "user": "sasl_plain_username",
        "password": "sasl_plain_password",
        "service": "sasl_kerberos_service_name",
    }
    found = _named(names) | {"ssl_context": context}
    if "token_url" in given:
        from aiokafka.abc import AbstractTokenProvider

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            async def token(self) -> str:
                return (await asyncio.to_thread(_token))[0]

        found["sasl_oauth_token_provider"] = Provider()
    return found


def for_brokers() -> BrokerSecurity:
    """Return the settings for connections between brokers, with SCRAM."""
    from kafka_compat.security.broker_security import NONE, BrokerSecurity, SaslLogin
    from kafka_compat.security.sasl.client import ScramClient

    given = _given()
    if not given:
        return NONE
    mechanism, user, password = given["mechanism"], given["user"], given["password"]
    context = ssl.create_default_context(cafile=given["ca"])
    login = SaslLogin(mechanism, lambda host: ScramClient(mechanism, user, password))
    return BrokerSecurity(lambda: context, login)
