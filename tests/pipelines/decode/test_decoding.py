"""What the driver reports before Spark starts, and what it does when the registry changes or is away."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cli import main
from kafka_compat.decoding.plain import NotSo
from kafka_compat.pipelines.decode import decoding as module
from kafka_compat.pipelines.decode import proto_compiler
from kafka_compat.pipelines.decode.decoding import DecodeSettings, Decoding
from kafka_compat.pipelines.decode.registry import Connection, RegistryClient, RegistryFailed, authorization
from kafka_compat.pipelines.errors import NotStarted
from tests.decoding.schema_registry import SchemaRegistry, framed
from tests.pipelines.decode.values import FLIGHT, FLIGHT_2, avro, decoded, settings, spec_of


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry().serve() as served:
        yield served


@pytest.fixture
def closed_url() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def error_of(found: Decoding, *topics: str) -> str:
    with pytest.raises(NotStarted) as raised:
        found.check(topics)
    return f"{raised.value} {raised.value.hint}"


def test_a_missing_subject_is_reported_with_those_that_exist(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="air.Flight")
    error = error_of(Decoding(settings(registry, "avro")), "flights")
    assert f"The schema registry at {registry.url} has no subject flights-value." in error
    assert "--value-subject. Subjects there: air.Flight." in error
    Decoding(settings(registry, "avro", subject="air.Flight")).check(["flights", "more"])


def test_topics_of_a_pattern_need_no_subject(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="a-value")
    found = Decoding(settings(registry, "avro"), all_registered=False)
    found.check(["a", "b"])
    assert decoded(found.spec("b"), b"v") == [
        (None, None, f"the schema registry at {registry.url} has no subject b-value")
    ]
    registry.add(2, FLIGHT, subject="b-value")
    value = {"carrier": "AA", "distance": 1}
    assert decoded(found.spec("b"), avro(2, FLIGHT, value)) == [(value, 2, None)]


def test_a_schema_of_another_format_is_reported(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    error = error_of(Decoding(settings(registry, "protobuf")), "flights")
    assert error == "The schema of flights-value is of type AVRO, not PROTOBUF. Use --value-format avro."


def test_one_column_needs_one_schema(registry: SchemaRegistry) -> None:
    error = error_of(Decoding(settings(registry, "avro"), one_schema=True), "a", "b")
    assert "The values of 2 topics become one column" in error


def test_a_registry_that_is_down_is_reported_with_its_address(
    closed_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PATIENCE_S", 0.0)
    error = error_of(Decoding(DecodeSettings("avro", Connection(closed_url))), "flights")
    assert f"The schema registry at {closed_url} does not respond: ConnectionRefusedError" in error
    assert "--schema-registry" in error


def test_an_address_without_a_registry_is_reported(registry: SchemaRegistry) -> None:
    path = "/subjects/flights-value/versions/latest"
    registry.raw[path] = (200, b"<html>")
    error = error_of(Decoding(settings(registry, "avro")), "flights")
    assert f"{registry.url}{path} is not JSON: this is not the address of a schema registry." in error


def test_credentials_are_sent_and_their_absence_is_reported(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    registry.user_info = "ann:secret"
    error = error_of(Decoding(settings(registry, "avro")), "flights")
    assert "rejected the request (HTTP 401)" in error and "--schema-registry-config" in error
    headers = authorization({"basic.auth.user.info": "ann:secret"})
    Decoding(DecodeSettings("avro", Connection(registry.url, headers))).check(["flights"])
    assert authorization({"bearer.auth.token": "t"}) == {"Authorization": "Bearer t"}
    with pytest.raises(ValueError, match="user:password"):
        authorization({"basic.auth.user.info": "ann"})


def test_a_new_version_is_used_and_the_last_one_while_the_registry_is_away(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    found = Decoding(settings(registry, "avro"), one_schema=True)
    found.check(["flights"])
    assert found.fields() == ["carrier", "distance"]
    registry.add(2, FLIGHT_2, subject="flights-value", version=2)
    assert found.fields() == ["carrier", "distance", "origin"]
    assert sorted(found.spec("flights").known) == [1, 2]
    monkeypatch.setattr(module, "_REFRESH_PATIENCE_S", 0.0)
    registry.raw["/subjects/flights-value/versions/latest"] = (503, b"")
    assert found.fields() == ["carrier", "distance", "origin"]


def test_a_request_is_repeated_until_the_registry_responds(registry: SchemaRegistry) -> None:
    registry.add(1, FLIGHT, subject="flights-value")
    path = "/schemas/ids/1"
    registry.raw[path] = (503, b"")
    pauses: list[float] = []

    def sleep(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 3:
            del registry.raw[path]

    client = RegistryClient(Connection(registry.url), 30.0, lambda: sum(pauses), sleep)
    found = client.schema(1)
    assert found is not None and json.loads(found.text) == FLIGHT
    assert pauses == [0.5, 1.0, 2.0]
    registry.raw[path] = (503, b"")
    with pytest.raises(RegistryFailed, match="does not respond: HTTP 503"):
        client.schema(1)
    assert sum(pauses) <= 60


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--value-format", "avro"], "--value-format avro needs --schema-registry."),
        (["--value-format", "json"], "--value-format json needs --schema-registry or --value-schema."),
        (["--schema-registry", "http://127.0.0.1:1"], "--schema-registry needs --value-format."),
        (["--value-format", "avro", "--value-schema", "a INT"], "--value-schema is for --value-format json."),
        (["--value-format", "avro", "--value-message", "M"], "--value-message is only for protobuf."),
        (
            ["--value-format", "avro", "--schema-registry", "ftp://x"],
            '--schema-registry ftp://x: only "http" and "https" are supported.',
        ),
        (
            ["--value-format", "avro", "--schema-registry", "http://x", "--schema-registry-config", "none"],
            "--schema-registry-config none cannot be read: No such file or directory.",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_reported(
    tmp_path: Path, capsys: Any, arguments: list[str], error: str
) -> None:
    line = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--to", str(tmp_path / "x"), *arguments]
    assert main(["pipeline", "latest", *line]) == 2
    assert error in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "--schema is missing."),
        (["--format", "avro"], "--value-format avro needs --schema-registry."),
        (["--format", "protobuf", "--schema", "a INT"], "--schema is not for --format protobuf"),
        (["--format", "csv", "--schema-registry", "http://x"], "--schema-registry is not for --format csv."),
    ],
)
def test_windows_reports_settings_that_do_not_fit_together(
    tmp_path: Path, capsys: Any, arguments: list[str], error: str
) -> None:
    line = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--to", str(tmp_path / "x")]
    line += ["--to-topic", "a", "--dead-letter-topic", "b", "--window", "1h", *arguments]
    assert main(["pipeline", "windows", *line]) == 2
    assert error in capsys.readouterr().err


PROTO = 'syntax = "proto3"; package air; import "google/protobuf/timestamp.proto"; import "air/leg.proto"; '
PROTO += "message Flight { string carrier = 1; Leg leg = 2; google.protobuf.Timestamp at = 3; }"
LEG = 'syntax = "proto3"; package air; message Leg { string origin = 1; }'


@pytest.fixture
def without_descriptors(registry: SchemaRegistry) -> SchemaRegistry:
    """A registry that fails to return descriptors, as Apicurio 3.3 does for files with a package."""
    references = [{"name": "air/leg.proto", "subject": "leg", "version": 1}]
    text = {"id": 1, "schema": PROTO, "schemaType": "PROTOBUF", "references": references}
    registry.raw["/subjects/flights-value/versions/latest"] = (200, json.dumps(text).encode())
    leg = {"id": 2, "schema": LEG, "schemaType": "PROTOBUF"}
    registry.raw["/subjects/leg/versions/1"] = (200, json.dumps(leg).encode())
    registry.raw["/schemas/ids/1?format=serialized"] = (500, b"{}")
    return registry


def test_a_proto_file_is_compiled_if_there_is_no_descriptor(without_descriptors: SchemaRegistry) -> None:
    pytest.importorskip("grpc_tools", reason="needs grpcio-tools")
    spec = spec_of(without_descriptors, "protobuf")
    value = framed(1, b"\0" + b"\x0a\2AA" + b"\x12\5\x0a\3JFK")
    expected = {"carrier": "AA", "leg": {"origin": "JFK"}, "at": None}
    assert decoded(spec, value) == [(expected, 1, None)]


def test_a_missing_compiler_is_reported(
    without_descriptors: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    error = error_of(Decoding(settings(without_descriptors, "protobuf")), "flights")
    assert "The schema of flights-value cannot be used" in error
    assert "pip install grpcio-tools" in error


@pytest.mark.parametrize("name", ["../up.proto", "/etc/x.proto"])
def test_a_reference_cannot_name_a_file_elsewhere(name: str) -> None:
    with pytest.raises(NotSo, match="is not the name of a file"):
        proto_compiler.compiled(LEG, {name: LEG})
