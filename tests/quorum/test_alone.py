"""Which metadata store a node uses that is its only voter."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from kafka_compat.broker import quorum_process
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.store.journal import JOURNAL_NAME
from kafka_compat.errors import StoppedWaiting
from kafka_compat.quorum.alone import is_first_voter, is_standalone
from kafka_compat.quorum.metadata_directory import claim_metadata_log
from tests.support.ports import free_port
from tests.support.waiting import until


def _standalone(directory: Path, voters: str, roles: str = "broker,controller") -> bool:
    listeners = ["PLAINTEXT://:9092"] * ("broker" in roles) + ["CONTROLLER://:9093"] * ("controller" in roles)
    config = BrokerConfig.from_properties(
        {
            "process.roles": roles,
            "node.id": "1",
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            "log.dirs": str(directory),
        }
    )
    assert config.quorum is not None
    return is_standalone(config.quorum, str(directory))


@pytest.mark.parametrize("voters", ["1@localhost:9093", "1@127.0.0.1:9093", "1@[::1]:9093"])
def test_a_new_node_that_no_other_machine_can_reach_is_standalone(tmp_path: Path, voters: str) -> None:
    assert _standalone(tmp_path, voters)


@pytest.mark.parametrize("voters", ["1@kafka-1:9093", "1@localhost:9093,2@localhost:9094"])
def test_a_new_node_that_others_may_join_belongs_to_a_quorum(tmp_path: Path, voters: str) -> None:
    assert not _standalone(tmp_path, voters)


def test_a_controller_without_a_broker_belongs_to_a_quorum(tmp_path: Path) -> None:
    assert not _standalone(tmp_path, "1@localhost:9093", "controller")


def test_a_node_keeps_the_store_of_its_first_startup(tmp_path: Path) -> None:
    (tmp_path / JOURNAL_NAME).touch()
    assert _standalone(tmp_path, "1@kafka-1:9093")
    claim_metadata_log(str(tmp_path))
    assert not _standalone(tmp_path, "1@localhost:9093")


def _first_voter(server: str, roles: str = "controller", **more: str) -> bool:
    listeners = ["PLAINTEXT://:9092"] * ("broker" in roles) + ["CONTROLLER://:9093"] * ("controller" in roles)
    config = BrokerConfig.from_properties(
        {
            "process.roles": roles,
            "node.id": "1",
            "controller.quorum.bootstrap.servers": server,
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    assert config.quorum is not None
    return is_first_voter(config.quorum)


def test_a_new_controller_that_names_only_itself_is_the_first_voter() -> None:
    assert _first_voter(f"{socket.gethostname()}:9093")
    assert _first_voter("localhost:9093")
    named = "CONTROLLER://kafka-1:9093"
    assert _first_voter("kafka-1:9093", advertised_listeners=named)
    assert not _first_voter("kafka-2.invalid:9093", advertised_listeners=named)
    assert not _first_voter("localhost:9094")
    assert not _first_voter("localhost:9093,kafka-2:9093")
    assert not _first_voter("localhost:9093", roles="broker")
    assert not _first_voter("kafka-1:9093", controller_quorum_voters="1@kafka-1:9093")


async def test_a_broker_that_waits_for_a_standalone_node_says_what_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(quorum_process, "_REMIND_S", 0.01)
    config = BrokerConfig.from_properties(
        {
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": f"1@localhost:{free_port()}",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path),
        }
    )
    process = quorum_process.QuorumProcess(config)
    await process.start()
    connecting = asyncio.ensure_future(process.connect())
    await until(lambda: "runs standalone" in caplog.text, 10)
    process.stop_waiting()
    with pytest.raises(StoppedWaiting):
        await connecting
    await process.stop()
