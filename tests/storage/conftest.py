"""Fixtures for the tests of record formats: Apache Kafka's record classes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.storage.record_oracle import RecordOracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[RecordOracle]:
    with RecordOracle() as running:
        yield running
