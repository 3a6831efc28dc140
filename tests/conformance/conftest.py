"""Pairs of connections to our broker and to Apache Kafka: 3.9.1, or 4.1.0 for features that ZooKeeper mode
lacks. Campaigns also use 4.3.0 and 4.4.0 for features that 4.1.0 lacks.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.differential import Pair
from tests.support import servers
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka, KafkaCompatBroker


@pytest.fixture(scope="package")
def our_address(shared_broker: KafkaCompatBroker) -> str:
    return shared_broker.address


@pytest.fixture(scope="package")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    """Apache Kafka 3.9.1 with ZooKeeper, one for all modules of this directory."""
    with servers.kafka_39(tmp_path_factory.mktemp("kafka-3.9.1")) as running:
        yield running


@pytest.fixture(scope="package")
def genuine_41(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    """Apache Kafka 4.1.0 (KRaft), one for all modules of this directory."""
    with servers.kafka_41(tmp_path_factory.mktemp("kafka-4.1.0")) as running:
        yield running


@pytest.fixture(scope="package")
def genuine_address(genuine: GenuineKafka) -> str:
    return genuine.address


@pytest.fixture(scope="package")
def genuine_41_address(genuine_41: GenuineKafka) -> str:
    return genuine_41.address


@pytest.fixture(scope="package")
def genuine_43_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Apache Kafka 4.3.0 (KRaft), started once."""
    server = GenuineKafka(tmp_path_factory.mktemp("kafka-4.3.0"), version="4.3.0", mode="kraft")
    server.start()
    yield server.address
    server.stop()


@pytest.fixture(scope="package")
def newest_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The newest Apache Kafka (KRaft), started once."""
    directory = tmp_path_factory.mktemp(f"kafka-{NEWEST_VERSION}")
    server = GenuineKafka(directory, version=NEWEST_VERSION, mode="kraft")
    server.start()
    yield server.address
    server.stop()


@pytest.fixture
def pair(our_address: str, genuine_address: str) -> Iterator[Pair]:
    """Our broker and Apache Kafka 3.9.1."""
    found = Pair(our_address, genuine_address)
    yield found
    found.close()


@pytest.fixture
def pair_41(our_address: str, genuine_41_address: str) -> Iterator[Pair]:
    """Our broker and Apache Kafka 4.1.0."""
    found = Pair(our_address, genuine_41_address)
    yield found
    found.close()


@pytest.fixture
def pair_newest(our_address: str, newest_address: str) -> Iterator[Pair]:
    """Our broker and the newest Apache Kafka."""
    found = Pair(our_address, newest_address)
    yield found
    found.close()
