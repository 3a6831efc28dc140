"""`kafka-compat security init`: the files it creates, and the existing files it keeps."""

from __future__ import annotations

import json
import runpy
import ssl
import stat
import subprocess
from pathlib import Path

import pytest

from kafka_compat.cli import main
from kafka_compat.config import load
from kafka_compat.config.properties import parse_properties
from kafka_compat.security import first_users, provision
from kafka_compat.security.tls_context import TlsContext
from kafka_compat.security.tls_settings import TlsSettings
from tests.support.servers import run_kafka_compat

CLIENT_FILES = {
    "aiokafka_settings.py",
    "ca.pem",
    "client.properties",
    "franz.go",
    "kafka_python_settings.py",
    "kafkajs.js",
    "librdkafka.conf",
    "spark_options.py",
}


def init(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the command, and return its stdout, or its stderr if `code` is not 0."""
    ran = run_kafka_compat("security", "init", str(folder), *arguments)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stderr if code else ran.stdout


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def certificate_names(file: Path) -> set[str]:
    text = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", file],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {item.strip() for item in text.splitlines()[1].split(",")}


def test_files_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    folder = tmp_path / "a folder" / "ü"
    told = init(folder, "--user", "alice", "--user", "bob")
    assert "kafka-compat serve" in told
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert {path.name for path in (folder / "clients").iterdir()} == {"admin", "alice", "bob"}
    for user in ("admin", "alice", "bob"):
        assert {path.name for path in (folder / "clients" / user).iterdir()} == CLIENT_FILES
    users = first_users.decode((folder / "users.json").read_bytes())
    assert set(users) == {"admin", "alice", "bob", "broker"}
    passwords = [
        runpy.run_path(str(folder / "clients" / user / "kafka_python_settings.py"))["SETTINGS"]
        for user in ("admin", "alice", "bob")
    ]
    assert len({item["sasl_plain_password"] for item in passwords}) == 3
    for settings in passwords:
        assert settings["sasl_plain_password"] not in told


def test_paths_are_printed_in_full_on_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    folder = tmp_path / ("long" * 15)
    lines = init(folder, "--user", "alice").splitlines()
    for path in ("server.properties", "ca.pem", "ca.key", "clients/admin", "clients/alice"):
        assert any(line.endswith(f"  {folder / path}") for line in lines), path


def test_the_generated_broker_settings_are_valid(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    init(folder, "--port", "19093")
    config = load([str(folder / "server.properties")])
    assert set(config.unknown) <= {"super.users"}, "only the authorizer reads this setting"
    (listener,) = config.listeners
    assert (listener.security_protocol, listener.host, listener.port) == ("SASL_SSL", "127.0.0.1", 19093)
    assert config.advertised_listeners == {"SASL_SSL": ("localhost", 19093)}
    assert config.log_dirs == [str(folder / "data")]
    TlsContext(TlsSettings.of(config, listener), between_brokers=True)


def test_the_certificate_contains_the_host_names_used_by_clients(tmp_path: Path) -> None:
    init(tmp_path / "a", "--host", "kafka.example.com", "--host", "10.1.2.3", "--host", "köln.example")
    names = certificate_names(tmp_path / "a/server.pem")
    assert {
        "DNS:kafka.example.com",
        "IP Address:10.1.2.3",
        "DNS:xn--kln-sna.example",
        "DNS:localhost",
    } <= names
    config = load([str(tmp_path / "a/server.properties")])
    assert config.listeners[0].host == ""
    assert config.advertised_listeners == {"SASL_SSL": ("kafka.example.com", 9093)}
    checked = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname"]
    subprocess.run(
        [*checked, "kafka.example.com", "-CAfile", tmp_path / "a/ca.pem", tmp_path / "a/server.pem"],
        check=True,
        capture_output=True,
    )
    strict = ssl.create_default_context(cafile=str(tmp_path / "a/ca.pem"))
    assert strict.cert_store_stats()["x509_ca"] == 1


def test_each_of_several_brokers_gets_a_certificate_and_settings(tmp_path: Path) -> None:
    addresses = ["--advertised", "one.example:9093", "--advertised", "[fd00::2]:9094"]
    told = json.loads(init(tmp_path / "a", *addresses, "--zookeeper", "zk:2181/kafka", "--json"))
    assert told["bootstrap_servers"] == "one.example:9093,[fd00::2]:9094"
    assert len(told["server_properties"]) == 2
    first, second = (load([path]) for path in told["server_properties"])
    assert (first.broker_id, second.broker_id) == (1, 2)
    assert first.log_dirs != second.log_dirs
    assert second.advertised_listeners == {"SASL_SSL": ("fd00::2", 9094)}
    assert second.str("zookeeper.connect") == "zk:2181/kafka"
    assert "DNS:one.example" in certificate_names(tmp_path / "a/server-1.pem")
    assert "DNS:one.example" not in certificate_names(tmp_path / "a/server-2.pem")
    assert [TlsContext(TlsSettings.of(each, each.listeners[0])) for each in (first, second)]


def test_existing_files_are_kept_unless_replacement_is_requested(tmp_path: Path) -> None:
    init(tmp_path, "--user", "alice")
    before = contents(tmp_path)
    assert "already; choose another directory, or use --force" in init(tmp_path, "--user", "bob", code=2)
    assert contents(tmp_path) == before
    (tmp_path / "own").write_text("mine")
    init(tmp_path, "--user", "alice", "--force")
    after = contents(tmp_path)
    assert after.pop("own") == b"mine"
    assert after.keys() == before.keys()
    # Every file was generated again, so no file is unchanged.
    assert {name for name in before if before[name] == after[name]} == set()


def test_json_lists_the_files_without_passwords(tmp_path: Path) -> None:
    told = json.loads(init(tmp_path, "--user", "alice", "--json"))
    assert [step["command"].split()[:2] for step in told["next"]] == [
        ["kafka-compat", command] for command in ("serve", "topics", "acls")
    ]
    assert set(told["files"]) == {str(tmp_path / name) for name in contents(tmp_path)}
    assert told["clients"]["alice"] == str(tmp_path / "clients/alice")
    assert "password" not in json.dumps(told)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--host", "a b"], "'a b' is neither a host name nor an address"),
        (["--advertised", "host"], "expected HOST:PORT"),
        (["--advertised", "host:70000"], "expected HOST:PORT"),
        (["--advertised", "a:1", "--advertised", "b:1"], "several brokers need ZooKeeper"),
        (["--advertised", "a:1", "--advertised", "a:1", "--zookeeper", "z"], "cannot have the same address"),
        (["--user", 'a"b'], "is not a valid user name"),
        (["--user", "../x"], "is not a valid user name"),
        (["--user", "broker"], "brokers authenticate to each other as"),
        (["--days", "0"], "expected 1 to 36500"),
    ],
)
def test_invalid_arguments_are_reported_without_creating_files(
    tmp_path: Path, arguments: list[str], problem: str
) -> None:
    folder = tmp_path / "new"
    assert problem in init(folder, *arguments, code=2)
    assert not folder.exists()


def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be written" in init(tmp_path / "file/folder", code=1)


@pytest.mark.parametrize("name", ["/dev/null", "/dev/null/folder"])
def test_a_file_instead_of_the_directory_is_reported_before_keys_are_created(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(provision, "provide", lambda *_: pytest.fail("keys were created"))
    assert main(["security", "init", name]) == 1
    assert f"{name} cannot be written: /dev/null is not a directory" in capsys.readouterr().err


def test_an_empty_name_of_the_directory_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["security", "init", ""])
    assert ended.value.code == 2
    assert "the name of the directory is empty" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_java_accepts_the_generated_client_settings(tmp_path: Path) -> None:
    init(tmp_path, "--user", "alice")
    properties = parse_properties((tmp_path / "clients/alice/client.properties").read_bytes())
    assert properties["ssl.truststore.certificates"].value == (tmp_path / "ca.pem").read_text()
    spark = runpy.run_path(str(tmp_path / "clients/alice/spark_options.py"))["OPTIONS"]
    assert spark == {f"kafka.{name}": item.value for name, item in properties.items()}
