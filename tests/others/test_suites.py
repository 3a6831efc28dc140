"""Other projects' own tests pass here if they pass on Apache Kafka (campaigns only, except a few)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.others import franz_go, results
from tests.others.comparison import Comparison, counts
from tests.others.differences import KNOWN
from tests.others.suite import SIDES, Suite, SuiteMissing
from tests.others.suites import SUITES
from tests.support import campaign


@pytest.mark.timeout(4 * 3600)
@pytest.mark.skipif(not campaign.enabled(), reason="runs the whole suite on both sides")
@pytest.mark.parametrize("suite", SUITES, ids=[suite.name for suite in SUITES])
def test_tests_that_pass_on_apache_kafka_pass_here(suite: Suite, tmp_path: Path) -> None:
    outcomes = {}
    for side in SIDES:
        try:
            outcomes[side] = suite.run(side, tmp_path / side)
        except SuiteMissing as missing:
            pytest.skip(str(missing))
        (tmp_path / f"{side}.json").write_text(json.dumps(outcomes[side], indent=1))
        print(f"{suite.name} {suite.version} on {side}: {counts(outcomes[side])}")
    comparison = Comparison(outcomes["ours"], outcomes["genuine"], KNOWN.get(suite.name, {}))
    print("passed only on Apache Kafka:", comparison.only_genuine)
    print("passed only here:", comparison.only_ours)
    results.write(suite.name, results.result_of(suite, comparison))
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
