"""Fixtures: our broker and Apache Kafka 3.9.1, each with a listener for every security protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.authority import Authority
from tests.security.secured import Secured, listeners, up
from tests.support.servers import GenuineKafka, KafkaCompatBroker


@pytest.fixture(scope="package")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="package")
def ours(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Secured]:
    settings, ports = listeners(authority, "ours")
    directory: Path = tmp_path_factory.mktemp("ours")
    server = KafkaCompatBroker(directory, settings, port=ports["PLAINTEXT"])
    yield up(server, ports, authority)
    server.stop()


@pytest.fixture(scope="package")
def theirs(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Secured]:
    settings, ports = listeners(authority, "theirs")
    # Escape backslashes, because Apache Kafka reads the settings from a properties file.
    settings = {name: value.replace("\\", "\\\\") for name, value in settings.items()}
    server = GenuineKafka(tmp_path_factory.mktemp("theirs"), settings, port=ports["PLAINTEXT"])
    yield up(server, ports, authority)
    server.stop()
