"""Kafka's own group coordinator classes, for the tests in this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.consumer_group_oracle import ConsumerGroupOracle


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsumerGroupOracle]:
    with ConsumerGroupOracle(tmp_path_factory.mktemp("oracle")) as running:
        yield running
