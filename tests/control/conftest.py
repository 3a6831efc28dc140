"""Brokers shared by a module and reset for each test.

running   a KafkaBroker, or a module's choice: `pytest.mark.parametrize("running", …, indirect=True)`
broker    the same broker; fails a test that leaves faults or logs tracebacks
killed    a broker for one test, which may kill it
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_compat.testing import KafkaBroker


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    kind: type[KafkaBroker] = getattr(request, "param", KafkaBroker)
    with kind() as broker:
        yield broker


@pytest.fixture
def broker(running: KafkaBroker) -> Iterator[KafkaBroker]:
    yield running
    running.reset()
    assert running.control.ask("GET", "/faults") == []
    assert "Traceback" not in running.log


@pytest.fixture
def killed() -> Iterator[KafkaBroker]:
    with KafkaBroker() as broker:
        yield broker
