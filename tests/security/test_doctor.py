"""kafka-compat doctor reports the failed step, the side at fault, and the remedy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.security.authority import Authority
from tests.security.secured import USERS, Secured
from tests.status import world
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker, run_kafka_compat

_MODULES = {"PLAIN": "plain.PlainLoginModule"}
Make = Callable[..., dict[str, str]]


def _login(mechanism: str, password: str = USERS["alice"]) -> dict[str, str]:
    module = "org.apache.kafka.common.security." + _MODULES.get(mechanism, "scram.ScramLoginModule")
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="alice" password="{password}";',
    }


def _examined(
    directory: Path, settings: Mapping[str, str], *arguments: str
) -> tuple[int, list[dict[str, Any]]]:
    file = directory / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    done = run_kafka_compat("doctor", str(file), "--timeout", "5", "--json", *arguments)
    assert USERS["alice"] not in done.stdout + done.stderr and "wrong" not in done.stdout
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def trusting(authority: Authority) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.file)}


def test_a_working_client_is_reported_as_working(
    ours: Secured, tmp_path: Path, trusting: dict[str, str]
) -> None:
    settings = {
        "bootstrap.servers": ours.addresses["SAFE"],
        "security.protocol": "SASL_SSL",
        **trusting,
        **_login("SCRAM-SHA-512"),
    }
    code, findings = _examined(tmp_path, settings, "--group", "g")
    assert code == 0 and all(finding["ok"] for finding in findings)
    steps = ["name", "connection", "TLS", "protocol", "mechanism", "login", "metadata", "group g"]
    assert [finding["step"] for finding in findings] == steps
    assert ours.addresses["SAFE"] in findings[6]["text"]


def test_a_working_client_with_a_certificate_is_reported_as_working(
    ours: Secured, tmp_path: Path, trusting: dict[str, str]
) -> None:
    own = ours.authority.sign("somebody")
    settings = {
        "bootstrap.servers": ours.addresses["SSL"],
        "security.protocol": "SSL",
        **trusting,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.store),
    }
    code, findings = _examined(tmp_path, settings)
    assert code == 0 and findings[-1]["step"] == "metadata"


ILLS: dict[str, tuple[str, dict[str, str], str, str, str]] = {
    "plain text to TLS": ("SSL", {"security.protocol": "PLAINTEXT"}, "protocol", "client", "requires TLS"),
    "TLS to plain text": ("PLAINTEXT", {"security.protocol": "SSL"}, "TLS", "client", "does not use TLS"),
    "no certificate": ("SSL", {"security.protocol": "SSL"}, "protocol", "client", "a client certificate"),
    "no login": (
        "SASL",
        {"security.protocol": "PLAINTEXT"},
        "metadata",
        "client",
        "the listener requires authentication",
    ),
    "a login where none is asked": (
        "PLAINTEXT",
        {"security.protocol": "SASL_PLAINTEXT", **_login("PLAIN")},
        "mechanism",
        "client",
        "does not authenticate",
    ),
    "another mechanism": (
        "SASL",
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"},
        "mechanism",
        "client",
        "does not support OAUTHBEARER, only PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
    ),
    "a wrong password": (
        "SASL",
        {"security.protocol": "SASL_PLAINTEXT", **_login("PLAIN", "wrong")},
        "login",
        "client",
        "Invalid username or password",
    ),
    "a wrong password, by SCRAM": (
        "SAFE",
        {"security.protocol": "SASL_SSL", **_login("SCRAM-SHA-256", "wrong")},
        "login",
        "client",
        "invalid credentials",
    ),
}


@pytest.mark.parametrize("ill", ILLS)
def test_the_diagnosis_stops_at_the_first_failed_step(
    ours: Secured, tmp_path: Path, trusting: dict[str, str], ill: str
) -> None:
    listener, settings, step, side, text = ILLS[ill]
    everything = {"bootstrap.servers": ours.addresses[listener], **trusting, **settings}
    code, findings = _examined(tmp_path, everything)
    last = findings[-1]
    assert code == 1 and [finding["ok"] for finding in findings[:-1]] == [True] * (len(findings) - 1)
    assert (last["ok"], last["step"], last["side"]) == (False, step, side)
    assert text in last["text"] and last["remedy"]


@pytest.mark.parametrize(
    ("listener", "protocol", "advised"),
    [
        (
            "SSL",
            "PLAINTEXT",
            "set security.protocol=SSL (SASL_SSL if the listener requires a login), and ssl",
        ),
        ("PLAINTEXT", "SSL", "security.protocol=PLAINTEXT (SASL_PLAINTEXT if the listener requires a login)"),
    ],
)
def test_a_sasl_protocol_is_suggested_to_a_client_without_credentials(
    ours: Secured, tmp_path: Path, trusting: dict[str, str], listener: str, protocol: str, advised: str
) -> None:
    settings = {"bootstrap.servers": ours.addresses[listener], **trusting, "security.protocol": protocol}
    _, findings = _examined(tmp_path, settings)
    assert advised in findings[-1]["remedy"]


def test_the_suggested_protocol_keeps_sasl_for_a_client_with_credentials(
    ours: Secured, tmp_path: Path, trusting: dict[str, str]
) -> None:
    everything = {
        "bootstrap.servers": ours.addresses["SAFE"],
        **trusting,
        "security.protocol": "SASL_PLAINTEXT",
        **_login("PLAIN"),
    }
    _, findings = _examined(tmp_path, everything)
    assert "set security.protocol=SASL_SSL, and ssl.truststore.location to the CA" in findings[-1]["remedy"]


def test_an_unknown_certificate_authority_is_reported(ours: Secured, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "Other CA").file
    settings = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(other),
        "security.protocol": "SSL",
    }
    code, findings = _examined(tmp_path, settings, "--bootstrap-server", ours.addresses["SSL"])
    assert code == 1 and findings[-1]["side"] == "client" and "not trust the issuer" in findings[-1]["text"]


def test_a_host_name_missing_from_the_certificate_is_reported(
    ours: Secured, tmp_path: Path, trusting: dict[str, str]
) -> None:
    port = ours.addresses["SSL"].rpartition(":")[2]
    code, findings = _examined(
        tmp_path, {"security.protocol": "SSL", **trusting}, "--bootstrap-server", f"127.1:{port}"
    )
    assert code == 1 and findings[-1]["side"] == "broker" and "the name 127.1" in findings[-1]["text"]


@pytest.mark.parametrize("flag", ["--bootstrap-server", "--bootstrap"])
def test_the_address_can_be_given_with_either_bootstrap_flag(tmp_path: Path, flag: str) -> None:
    address = f"127.0.0.1:{free_port()}"
    _, (*_, last) = _examined(tmp_path, {}, flag, address)
    assert last["address"] == address


@pytest.mark.parametrize(
    ("host", "step", "side"),
    [("no.such.name.invalid", "name", "network"), ("127.0.0.1", "connection", "broker")],
)
def test_an_unreachable_address_is_reported(tmp_path: Path, host: str, step: str, side: str) -> None:
    code, (*_, last) = _examined(tmp_path, {}, "--bootstrap-server", f"{host}:{free_port()}")
    assert code == 1 and (last["step"], last["side"], last["ok"]) == (step, side, False)


def test_a_refused_connection_is_reported_with_the_next_step(tmp_path: Path) -> None:
    _, (*_, last) = _examined(tmp_path, {}, "--bootstrap-server", f"127.0.0.1:{free_port()}")
    assert "nothing listens" in last["text"]
    assert last["remedy"].startswith("start the broker, or correct the address: --bootstrap-server")


def test_a_missing_permission_is_reported(tmp_path: Path) -> None:
    settings = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    broker = KafkaCompatBroker(tmp_path, settings)
    broker.start()
    try:
        code, findings = _examined(
            tmp_path, {}, "--bootstrap-server", broker.address, "--topic", "t", "--group", "g"
        )
    finally:
        broker.stop()
    refused = {finding["step"]: finding["remedy"] for finding in findings if not finding["ok"]}
    assert code == 1 and set(refused) == {"topic t", "group g"}
    assert "--allow-principal User:ANONYMOUS --operation Read --topic t, or" in refused["topic t"]
    assert refused["group g"].endswith("--allow-principal User:ANONYMOUS --operation Read --group g")


def test_a_single_broker_is_never_reported_as_lacking_a_group_coordinator(broker: KafkaCompatBroker) -> None:
    def told() -> str:
        done = run_kafka_compat("doctor", "--bootstrap-server", broker.address, "--group", "g", "--json")
        return str(json.loads(done.stdout)[-1]["text"])

    assert told() == "permitted: describe; the rest was not checked: the cluster has no groups yet"
    world.make_topic(broker.address, "t", [[1]])
    world.commit(broker.address, "g", "t", 0)
    assert told() == "permitted: read, delete, describe"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("security.protocol=TLS", "expected one of PLAINTEXT"),
        ("bootstrap.servers=somewhere", "expected HOST:PORT"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.jaas.config is missing"),
        ("security.protocol=SSL\nssl.truststore.location=/no/such", "ssl.truststore.location"),
    ],
)
def test_invalid_settings_are_reported(tmp_path: Path, settings: str, told: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(settings)
    done = run_kafka_compat("doctor", str(file))
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
