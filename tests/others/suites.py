"""The suites of other projects."""

from __future__ import annotations

from tests.others import franz_go, kafka_go, kafka_python, sarama, watermill
from tests.others.suite import Suite

SUITES: tuple[Suite, ...] = (
    franz_go.SUITE,
    kafka_go.SUITE,
    sarama.SUITE,
    watermill.SUITE,
    kafka_python.SUITE,
)
