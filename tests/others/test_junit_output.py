"""The outcomes of tests are read from JUnit's XML reports."""

from __future__ import annotations

from tests.others.junit_output import outcomes

_REPORT = """\
<testsuites><testsuite>
<testcase classname="test.a" name="test_one"/>
<testcase classname="test.a" name="test_two"><failure message="no">text</failure></testcase>
<testcase classname="test.a" name="test_three"><skipped message="later"/></testcase>
<testcase classname="test.a" name="test_four"/>
<testcase classname="test.a" name="test_four"><error message="its cleanup"/></testcase>
<testcase classname="" name="test.b"><error message="not imported"/></testcase>
</testsuite></testsuites>
"""


def test_each_test_has_an_outcome_by_class_and_name() -> None:
    assert outcomes(_REPORT) == {
        "test.a.test_one": "passed",
        "test.a.test_two": "failed",
        "test.a.test_three": "skipped",
        "test.a.test_four": "failed",
        "test.b": "failed",
    }
