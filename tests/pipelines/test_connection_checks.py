"""The checks of broker, topics and credentials before Spark starts: errors are reported without waiting for a
JVM.

The tests fail if a JVM would be started, because the only Java is a script that fails.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kafka_compat.cli import main
from kafka_compat.pipelines import first_look as looking
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.first_look import first_look, first_look_at_target
from kafka_compat.pipelines.kafka_options import java_names, producer_properties
from tests.security.authority import Authority
from tests.support import campaign
from tests.support.campaign import rounds
from tests.support.offsets_topic import make_offsets_topic
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, run_kafka_compat

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
BOUND_S = 20.0
"""Upper bound for a daily run on a busy machine; starting Spark alone would take as long. A campaign measures
the time.
"""


class Place(NamedTuple):
    """A broker where alice may do everything and bob may only read `open`. `addresses` maps listener names to
    addresses.
    """

    server: Server
    addresses: dict[str, str]
    authority: Authority

    def config(self, folder: Path, user: str, password: str = "", protocol: str = "SASL_PLAINTEXT") -> str:
        """Write a file for --command-config, and return its path."""
        login = f'{_PLAIN} required username="{user}" password="{password or user}";'
        lines = [f"security.protocol={protocol}", "sasl.mechanism=PLAIN", f"sasl.jaas.config={login}"]
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self.authority.file}"]
        file = folder / f"{user}-{protocol}.properties"
        file.write_text("\n".join(lines))
        return str(file)


@pytest.fixture(scope="module", params=campaign.sides())
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("first-look")
    authority = Authority(folder / "authority")
    names = {"PLAINTEXT": "PLAINTEXT", "SASL": "SASL_PLAINTEXT", "SAFE": "SASL_SSL"}
    ports = {name: free_port() for name in names}
    users = 'user_alice="alice" user_bob="bob"'
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{is_}" for name, is_ in names.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.sign("broker").store),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
    }
    for name in ("sasl", "safe"):
        settings[f"listener.name.{name}.plain.sasl.jaas.config"] = f"{_PLAIN} required {users};"
    kind = GenuineKafka if request.param == "genuine" else KafkaCompatBroker
    server: Server = kind(folder / "broker", settings, port=ports["PLAINTEXT"])
    server.start()
    admin = AdminClient({"bootstrap.servers": server.address})
    for made in admin.create_topics([NewTopic(name, 3, 1) for name in ("open", "closed")]).values():
        made.result(30)
    rights = (AclOperation.READ, AclPermissionType.ALLOW)
    literal = (ResourceType.TOPIC, "open", ResourcePatternType.LITERAL)
    for stored in admin.create_acls([AclBinding(*literal, "User:bob", "*", *rights)]).values():
        stored.result(30)
    yield Place(server, {name: f"127.0.0.1:{port}" for name, port in ports.items()}, authority)
    server.stop()


@pytest.fixture(autouse=True)
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set JAVA_HOME to a Java that fails."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'a JVM was started' >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))


def told(capsys: pytest.CaptureFixture[str], line: Sequence[str]) -> str:
    """Return the command's error message. It must exit with code 2 within BOUND_S."""
    began = time.monotonic()
    assert main(["pipeline", *line]) == 2
    assert time.monotonic() - began < BOUND_S
    message = capsys.readouterr().err
    assert "a JVM was started" not in message
    return message


def archive(address: str, *topics: str, to: Path) -> list[str]:
    chosen = [word for topic in topics for word in ("--topic", topic)]
    return ["archive", "--bootstrap-server", address, *chosen, "--to", str(to)]


def test_an_unreachable_or_invalid_address_is_reported(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "archive"
    message = told(capsys, archive(f"127.0.0.1:{free_port()}", "open", to=to))
    assert "does not respond: connection refused" in message and "Is the broker running" in message
    message = told(capsys, archive("127.0.0.1", "open", to=to))
    assert "127.0.0.1 is not an address: expected HOST:PORT" in message
    message = told(capsys, archive(place.server.address, "opne", "open", to=to))
    assert f"No such topic on {place.server.address}: opne." in message
    assert "Topics there: closed, open" in message
    message = told(capsys, [*archive(place.server.address, to=to), "--topic-pattern", "x.*"])
    assert "No topic on" in message and "matches x.*" in message
    message = told(capsys, [*archive(place.server.address, to=to), "--topic-pattern", "x("])
    assert "--topic-pattern x( is not a regular expression" in message
    assert not to.exists()


def test_a_failed_login_is_reported(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sasl, safe = (archive(place.addresses[name], "open", to=tmp_path / "a") for name in ("SASL", "SAFE"))
    message = told(capsys, [*sasl, "--command-config", place.config(tmp_path, "bob", "wrong")])
    assert "rejects the login" in message and "sasl.jaas.config" in message
    message = told(capsys, sasl)
    assert "does not respond" in message and "kafka-compat doctor" in message
    message = told(capsys, [*safe, "--kafka-option", "security.protocol=SSL"])
    assert "not trusted" in message and "ssl.truststore.location" in message
    message = told(capsys, [*sasl, "--command-config", place.config(tmp_path, "bob", protocol="SASL_SSL")])
    assert "does not respond in TLS" in message and "SASL_PLAINTEXT" in message
    message = told(capsys, [*sasl, "--command-config", str(tmp_path / "absent")])
    assert "cannot be read: No such file" in message
    message = told(capsys, [*sasl, "--kafka-option", "security.protocol=TLS"])
    assert "security.protocol=TLS: expected one of PLAINTEXT, SSL" in message


def test_missing_permissions_are_reported(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address, bob = place.addresses["SAFE"], place.config(tmp_path, "bob", protocol="SASL_SSL")
    message = told(capsys, [*archive(address, "closed", to=tmp_path / "a"), "--command-config", bob])
    assert "This user may not read the topic closed" in message
    assert "kafka-acls" in message and "--operation Read" in message
    assert first_look(_java(place, "bob"), topics=["open"]) is not None
    copy = ["copy", "--bootstrap-server", place.addresses["SASL"], "--topic", "open", "--to", str(tmp_path)]
    login = ["--command-config", place.config(tmp_path, "bob")]
    message = told(capsys, [*copy, "--to-topic", "closed", *login, "--to", str(tmp_path / "c")])
    assert "This user may not write to the topic closed" in message


def _java(place: Place, user: str) -> dict[str, str]:
    login = f'{_PLAIN} required username="{user}" password="{user}";'
    own = {"bootstrap.servers": place.addresses["SASL"], "security.protocol": "SASL_PLAINTEXT"}
    return {**own, "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}


def test_every_job_checks_its_topics(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A topic is missing, at the source or at the target."""
    address = place.server.address
    stream = ["--bootstrap-server", address, "--to", str(tmp_path / "job"), "--topic"]
    windows = ["--schema", "a INT", "--window", "1h"]
    checkpoint = tmp_path / "checkpoint"
    for folder, text in (("offsets", 'v1\n{}\n{"absent":{"0":5}}'), ("commits", "v1\n{}")):
        (checkpoint / folder).mkdir(parents=True)
        (checkpoint / folder / "0").write_text(text)
    wrong = {
        "archive": [*stream, "absent"],
        "latest": [*stream, "absent"],
        "copy": [*stream, "open", "--to-topic", "absent"],
        "dedupe": [*stream, "open", "--to-topic", "absent", "--within", "1h"],
        "windows": [*stream, "open", *windows, "--to-topic", "closed", "--dead-letter-topic", "absent"],
        "mirror": [*stream, "open", "--name", "a", "--target-name", "b", "--target"],
        "lag": ["--bootstrap-server", address, "--checkpoint", str(checkpoint), "--group", "g"],
        "audit": ["--tier", f"a=kafka:{address}/open", "--tier", f"b=header:{address}/absent"],
    }
    wrong["mirror"].append(f"127.0.0.1:{free_port()}")
    for job, line in wrong.items():
        message = told(capsys, [job, *line])
        expected = "connection refused" if job == "mirror" else "absent"
        assert expected in message and message.startswith(f"kafka-compat pipeline {job}: "), message
    assert not (tmp_path / "job").exists()


def test_the_partitions_of_the_target_are_checked(place: Place) -> None:
    """With --create, missing topics are allowed; without it, the topics and enough partitions must exist."""
    there = {"bootstrap.servers": place.server.address}
    with pytest.raises(NotStarted, match=r"open on .* has 3 partitions; 4 are needed"):
        first_look_at_target(there, {"open": 4}, create=False)
    seen = first_look_at_target(there, {"open": 4, "absent": 1}, create=True)
    assert seen is not None and seen.partitions == {"open": 3} and seen.cluster_id


def test_settings_specific_to_the_java_client_are_not_checked(place: Place) -> None:
    """Login classes, Spark's delegation tokens, and librdkafka settings that the Java client lacks."""
    theirs = {"sasl.mechanism": "AWS_MSK_IAM", "sasl.client.callback.handler.class": "x.Handler"}
    assert first_look({**_java(place, "bob"), **theirs}, topics=["absent"]) is None
    tokens = {name: value for name, value in _java(place, "bob").items() if name != "sasl.jaas.config"}
    assert first_look({**tokens, "sasl.mechanism": "SCRAM-SHA-512"}, topics=["absent"]) is None
    unchecked = {"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"}
    there = {"bootstrap.servers": place.addresses["SAFE"], **unchecked}
    assert first_look_at_target(there, {"absent": 1}, create=False) is None


def test_a_pattern_matches_only_user_topics(place: Place) -> None:
    """The pattern does not match internal topics, which most users may not read."""
    make_offsets_topic(place.server.address)
    seen = first_look({"bootstrap.servers": place.server.address}, pattern=".*")
    assert seen is not None and seen.partitions == {"open": 3, "closed": 3}


def test_one_reachable_address_is_sufficient(place: Place) -> None:
    servers = f"127.0.0.1:{free_port()},{place.server.address}"
    seen = first_look({"bootstrap.servers": servers}, topics=["open"])
    assert seen is not None and seen.partitions == {"open": 3}


def test_a_message_is_printed_while_waiting_for_a_slow_broker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a listener that never responds, a message is printed first, and the error at the end."""
    monkeypatch.setattr(looking, "PATIENT_S", 1.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(NotStarted, match="does not respond: timed out"):
            first_look({"bootstrap.servers": address}, topics=["t"])
    assert capsys.readouterr().err == f"{address} has not responded yet; waiting up to 1.2 s.\n"


def test_settings_are_translated_between_java_and_librdkafka_clients(place: Place) -> None:
    """Java client settings are translated to librdkafka settings and back."""
    java = {**_java(place, "bob"), "ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}
    java["security.protocol"] = "SASL_SSL"
    native = producer_properties({**java, "max.poll.records": "5"})
    assert native == {
        "bootstrap.servers": place.addresses["SASL"],
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "bob",
        "sasl.password": "bob",
        "ssl.ca.location": "/ca.pem",
    }
    assert java_names(native) == java
    quoted = {**native, "sasl.password": 'b"o\\b'}
    assert producer_properties(java_names(quoted) or {}) == quoted


def test_the_connection_check_completes_quickly(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The time includes the start of Python. The documentation states the result of the campaign."""
    sasl = place.addresses["SASL"]
    wrong = {
        "address": archive(f"127.0.0.1:{free_port()}", "open", to=tmp_path / "a"),
        "topic": archive(place.server.address, "absent", to=tmp_path / "a"),
        "password": [*archive(sasl, "open", to=tmp_path / "a"), "--command-config"],
        "right": [*archive(sasl, "closed", to=tmp_path / "a"), "--command-config"],
    }
    wrong["password"].append(place.config(tmp_path, "alice", "wrong"))
    wrong["right"].append(place.config(tmp_path, "bob"))
    runs = rounds(1, 20)
    for name, line in wrong.items():
        took = []
        for _ in range(runs):
            began = time.monotonic()
            assert run_kafka_compat("pipeline", *line).returncode == 2
            took.append(time.monotonic() - began)
        assert max(took) < (BOUND_S if runs == 1 else 1.0), took
        with capsys.disabled():
            if runs > 1:
                print(f"\n{name}: median {statistics.median(took):.2f} s, at most {max(took):.2f} s")
