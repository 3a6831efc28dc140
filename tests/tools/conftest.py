"""Fixtures: a pair of brokers for each module that compares tools, because some tests change only one of
them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import kafka_jars
from tests.support.java_tools import JavaTools
from tests.tools.world import Pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    found = Pair(tmp_path_factory.mktemp("tools"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def newest() -> Iterator[JavaTools]:
    """The version of Kafka's tools that this project's commands follow."""
    found = JavaTools(kafka_jars.TOOLS_VERSION)
    yield found
    found.close()
