"""What the tests of the record formats share: Kafka's own record classes, and what producers send."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.storage.record_oracle import RecordOracle


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordOracle]:
    """Kafka 3.9.1's record classes."""
    with RecordOracle(tmp_path_factory.mktemp("record-oracle")) as running:
        yield running
