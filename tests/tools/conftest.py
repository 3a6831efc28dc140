"""One pair of brokers for all comparisons of tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tools.world import Pair


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    found = Pair(tmp_path_factory.mktemp("tools"))
    yield found
    found.close()
