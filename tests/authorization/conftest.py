"""Fixtures: our broker, alone or together with Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.authorization.policies import GuestAuthorizer
from tests.authorization.servers import OurBroker, World, world


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Our broker and Apache Kafka 3.9.1."""
    with world(tmp_path_factory.mktemp("authorization")) as found:
        yield found


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    """Our broker, standalone."""
    broker = OurBroker(tmp_path_factory.mktemp("alone"), GuestAuthorizer())
    broker.start()
    yield broker
    broker.stop()
