"""Hypothesis strategies for records."""

from __future__ import annotations

from hypothesis import strategies

from kafka_compat.storage.records.records import Record

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
"""The record lists that a producer may send in one batch."""
