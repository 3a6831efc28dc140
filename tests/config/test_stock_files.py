"""Startup with the server.properties files of Apache Kafka's releases, unmodified."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_compat.config import load
from tests.config.stock_files import STOCK_FILES, text
from tests.support.servers import PROJECT


@pytest.mark.parametrize("name", STOCK_FILES)
def test_a_stock_file_is_accepted_unchanged(tmp_path: Path, name: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(text(STOCK_FILES[name]))
    config = load([str(file)])
    assert [(item.name, item.port) for item in config.listeners] == [("PLAINTEXT", 9092)]
    assert config.unknown == ()
    if "KRaft" in name or name == "4.4":
        assert config.advertised_listeners == {"PLAINTEXT": ("localhost", 9092)}
        assert config.broker_id == 1
        assert not config.str("zookeeper.connect")


@pytest.mark.parametrize("name", [name for name in STOCK_FILES if "ZooKeeper" not in name])
def test_a_broker_serves_clients_with_a_stock_file(tmp_path: Path, name: str) -> None:
    settings = STOCK_FILES[name] | {"log.dirs": str(tmp_path / "logs")}
    # Listen on any free loopback port, because the file sets a fixed port on all interfaces.
    settings["listeners"] = settings["listeners"].replace("://:9092", "://127.0.0.1:0")
    file = tmp_path / "server.properties"
    file.write_text(text(settings))
    with subprocess.Popen(
        [sys.executable, "-m", "kafka_compat", "serve", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    ) as broker:
        assert broker.stdout is not None
        ready = broker.stdout.readline()
        broker.terminate()
        _, errors = broker.communicate(timeout=20)
    assert "Broker 1 ready on PLAINTEXT://127.0.0.1:" in ready, errors
    assert broker.returncode == 0
    assert "unknown settings" not in errors


def test_listeners_in_the_environment_replace_advertised_listeners_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "image.properties"
    file.write_text("listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://localhost:9092\n")
    assert load([str(file)], (), {}).advertised_listeners == {"PLAINTEXT": ("localhost", 9092)}
    own = load([str(file)], (), {"KAFKA_LISTENERS": "PLAINTEXT://:19092"})
    assert own.advertised_listeners == {}
    told = {"KAFKA_LISTENERS": "PLAINTEXT://:19092", "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:19092"}
    assert load([str(file)], (), told).advertised_listeners == {"PLAINTEXT": ("kafka", 19092)}
