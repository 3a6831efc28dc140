"""Pytest fixtures, loaded by the package's entry point in all test suites where the package is installed.

kafka_broker    a broker for the whole run (of each worker, under pytest-xdist)
kafka           the same broker as `kafka_broker`, with no data from other tests
kafka_cluster   three brokers for the whole run, with no data from other tests
kafka_topic     the name of a new topic for this test on `kafka`
kafka_settings  the settings of all these brokers; override it with a session fixture of the suite
kafka_security  how clients of these brokers log in; override or parametrize it

Only pytest is imported before a test uses a fixture.
"""

import re
import secrets
from collections.abc import Iterator

import pytest

from kafka_compat.testing import KafkaBroker, KafkaCluster

_NAME_CHARACTERS_MAX = 200


@pytest.fixture(scope="session")
def kafka_settings() -> dict[str, object]:
    """Broker settings, with Kafka's names as keys."""
    return {}


@pytest.fixture(scope="session")
def kafka_security() -> str | None:
    """How clients log in: "plain", "scram", "mtls", "oauthbearer", or None for no security."""
    return None


@pytest.fixture(scope="session")
def kafka_broker(kafka_settings: dict[str, object], kafka_security: str | None) -> Iterator[KafkaBroker]:
    """A broker for the whole test run. Its state persists from test to test."""
    with KafkaBroker(kafka_settings, security=kafka_security) as broker:
        yield broker


@pytest.fixture
def kafka(kafka_broker: KafkaBroker) -> Iterator[KafkaBroker]:
    """The broker of the test run, reset after each test."""
    if not kafka_broker.running:
        kafka_broker.start()
    yield kafka_broker
    kafka_broker.reset()


@pytest.fixture(scope="session")
def _kafka_cluster(kafka_settings: dict[str, object], kafka_security: str | None) -> Iterator[KafkaCluster]:
    with KafkaCluster(settings=kafka_settings, security=kafka_security) as cluster:
        yield cluster


@pytest.fixture
def kafka_cluster(_kafka_cluster: KafkaCluster) -> Iterator[KafkaCluster]:
    """Three brokers for the whole test run, reset after each test."""
    if not _kafka_cluster.running:
        _kafka_cluster.start()
    yield _kafka_cluster
    _kafka_cluster.reset()


@pytest.fixture
def kafka_topic(kafka: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """The name of a new topic with one partition on `kafka`."""
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:_NAME_CHARACTERS_MAX]
    return kafka.create_topic(f"{name}-{secrets.token_hex(4)}")
