"""Other projects' own tests pass here if they pass on Apache Kafka (campaigns only, except a few)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.others import both_sides, franz_go
from tests.others.suite import Suite, SuiteMissing
from tests.others.suites import SUITES
from tests.support import campaign


@pytest.mark.timeout(4 * 3600)
@pytest.mark.skipif(not campaign.enabled(), reason="runs the whole suite on both sides")
@pytest.mark.parametrize("suite", SUITES, ids=[suite.name for suite in SUITES])
def test_tests_that_pass_on_apache_kafka_pass_here(suite: Suite, tmp_path: Path) -> None:
    try:
        outcomes = both_sides.run(suite, tmp_path)
    except SuiteMissing as missing:
        pytest.skip(str(missing))
    comparison = both_sides.compare(suite, outcomes)
    assert comparison.unexpected == [], f"their output is in {tmp_path}"


def test_some_tests_of_franz_go_pass_here(tmp_path: Path) -> None:
    if not franz_go.TESTS.compiled and not campaign.enabled():
        pytest.skip("a campaign (scripts/test --campaign tests/others) downloads and compiles the tests")
    try:
        outcomes = franz_go.run("ours", tmp_path, franz_go.EVERYDAY)
    except SuiteMissing as missing:
        pytest.skip(str(missing))
    assert len(outcomes) >= 5
    assert set(outcomes.values()) == {"passed"}
