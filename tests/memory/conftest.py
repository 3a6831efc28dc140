"""The examination of objects that are older than the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.memory.leftover_objects import examine_older_objects, older_objects_apart


@pytest.fixture(scope="module")
def older_objects(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail after the tests of a module if an older object mentions a name of one of them."""
    failed = request.session.testsfailed
    with older_objects_apart():
        yield
        # The report of a failed test may mention its names.
        if request.session.testsfailed == failed:
            examine_older_objects()
