"""Which outcomes of other projects' tests need a decision."""

from __future__ import annotations

from tests.others.comparison import Comparison, counts
from tests.others.suite import Outcomes


def test_a_test_that_fails_on_both_sides_needs_no_decision() -> None:
    comparison = Comparison({"a": "failed", "b": "passed"}, {"a": "failed", "b": "skipped"}, {})
    assert comparison.unexpected == []
    assert comparison.only_ours == ["b"]


def test_a_test_that_did_not_run_here_counts_as_a_difference() -> None:
    comparison = Comparison({}, {"a": "passed"}, {})
    assert comparison.only_genuine == comparison.unexpected == ["a"]


def test_a_decision_about_a_subtest_covers_the_test_that_contains_it() -> None:
    genuine: Outcomes = {"a": "passed", "a/one": "passed", "a/two": "passed"}
    decided = {"a/one": "decided"}
    one = Comparison({"a": "failed", "a/one": "failed", "a/two": "passed"}, genuine, decided)
    assert one.unexpected == []
    both = Comparison({"a": "failed", "a/one": "failed", "a/two": "failed"}, genuine, decided)
    assert both.unexpected == ["a/two"]


def test_counts_contain_every_outcome() -> None:
    assert counts({"a": "passed", "b": "passed", "c": "skipped"}) == {"passed": 2, "failed": 0, "skipped": 1}
