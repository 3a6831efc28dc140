"""Kafka's own group coordinator classes, for the tests in this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.consumer_group_oracle import ConsumerGroupOracle


@pytest.fixture(scope="package")
def kafka() -> Iterator[ConsumerGroupOracle]:
    with ConsumerGroupOracle() as running:
        yield running
