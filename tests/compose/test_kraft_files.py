"""Published compose files of clusters in KRaft mode: the settings that their services get with this image."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kafka_compat.config import BrokerConfig
from kafka_compat.config.load import load, with_secrets
from kafka_compat.quorum.alone import is_standalone
from tests.compose import kraft_secrets
from tests.compose.kraft_file import ComposeFile, roles_of
from tests.compose.kraft_files import CLUSTERS, FILES
from tests.support.servers import PROJECT

OWN = PROJECT / "image" / "root" / "etc" / "kafka-compat" / "server.properties"
CONTROLLERS = "CONTROLLER"


def _configured(file: ComposeFile, service: str, folder: Path) -> BrokerConfig:
    """Return the settings of a container, as the image's scripts pass them to the broker."""
    paths = [str(OWN)]
    if file.properties is not None:
        mounted = folder / "server.properties"
        mounted.write_text(file.properties)
        paths.append(str(mounted))
    return load(paths, (), file.services[service])


def _quorum_entries(file: ComposeFile, environment: dict[str, str], name: str) -> str:
    return environment.get(f"KAFKA_CFG_{name}", environment.get(f"KAFKA_{name}", ""))


@pytest.fixture(params=CLUSTERS, ids=[each.name for each in CLUSTERS])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ComposeFile:
    """Each compose file, with its secrets in a directory of the test."""
    chosen: ComposeFile = request.param
    secrets = tmp_path / "secrets"
    if any("SSL_KEYSTORE" in name for each in chosen.services.values() for name in each):
        kraft_secrets.write(chosen, secrets)
    module = sys.modules[load.__module__]
    monkeypatch.setattr(module, "with_secrets", lambda given: with_secrets(given, str(secrets)))
    return chosen


def test_each_service_has_the_roles_voters_and_listeners_of_its_file(
    file: ComposeFile, tmp_path: Path
) -> None:
    ids = set()
    for service, environment in file.services.items():
        given = dict(environment)
        config = _configured(file, service, tmp_path)
        quorum = config.quorum
        assert quorum is not None
        assert sorted(quorum.roles) == sorted(roles_of(environment, file.properties))
        voters = _quorum_entries(file, given, "CONTROLLER_QUORUM_VOTERS").split(",")
        assert sorted(f"{node_id}@{host}:{port}" for node_id, (host, port) in quorum.voters.items()) == voters
        assert str(quorum.node_id) == _quorum_entries(file, given, "NODE_ID")
        ids.add(quorum.node_id)
        bound = {(each.name, each.host, str(each.port)) for each in (*config.listeners, *quorum.listeners)}
        listeners = _quorum_entries(file, given, "LISTENERS")
        listeners = listeners or _quorum_entries(file, given, "ADVERTISED_LISTENERS").replace("localhost", "")
        assert bound == {
            (name, *address.rsplit(":", 1))
            for name, address in (each.split("://") for each in listeners.split(","))
        }
        expected = next((given[each] for each in ("CLUSTER_ID", "KAFKA_CLUSTER_ID") if each in given), None)
        assert config.cluster_id == given.get("KAFKA_KRAFT_CLUSTER_ID", expected)
    assert len(ids) == len(file.services)


def test_no_node_runs_without_the_quorum(file: ComposeFile, tmp_path: Path) -> None:
    for service in file.services:
        quorum = _configured(file, service, tmp_path).quorum
        assert quorum is not None
        assert not is_standalone(quorum, str(tmp_path))
        assert not quorum.is_controller or quorum.listeners[0].name == CONTROLLERS


def test_unknown_settings_are_only_those_of_other_programs(file: ComposeFile, tmp_path: Path) -> None:
    for service in file.services:
        config = _configured(file, service, tmp_path)
        foreign = ("rest.", "security.protocol", "confluent.")
        assert [name for name in config.unknown if not name.startswith(foreign)] == []


def test_at_least_twenty_files_of_three_dialects_are_known() -> None:
    assert len({each.name for each in FILES}) == len(FILES) >= 20
    assert {each.dialect for each in FILES} == {"apache", "confluent", "bitnami"}
    assert all(": " in each.source for each in FILES)
