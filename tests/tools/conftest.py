"""A pair of brokers for each module that compares tools: some change one of both alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tools.world import Pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    found = Pair(tmp_path_factory.mktemp("tools"))
    yield found
    found.close()
