"""What the tests of the record formats share: Kafka's own record classes, and what producers send."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import strategies

from kafka_compat.storage.records.records import Record
from tests.storage.record_oracle import RecordOracle

RECORDS = strategies.lists(
    strategies.builds(
        Record,
        timestamp=strategies.integers(0, 2**45),
        key=strategies.none() | strategies.binary(max_size=70),
        value=strategies.none() | strategies.binary(max_size=300),
        headers=strategies.lists(
            strategies.tuples(
                strategies.text(strategies.characters(codec="ascii", categories=["L", "N"]), max_size=9),
                strategies.none() | strategies.binary(max_size=20),
            ),
            max_size=3,
        ),
    ),
    min_size=1,
    max_size=12,
)
"""What a producer may put into one batch."""


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordOracle]:
    """Kafka 3.9.1's record classes."""
    with RecordOracle(tmp_path_factory.mktemp("record-oracle")) as running:
        yield running
