"""The outcomes of Go tests are read from their output."""

from __future__ import annotations

from tests.others.go_output import outcomes

_LINES = """\
{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"=== RUN   TestA\\n"}
{"Action":"run","Test":"TestA/one"}
{"Action":"pass","Test":"TestA/one","Elapsed":0.1}
{"Action":"pass","Test":"TestA","Elapsed":0.1}
{"Action":"run","Test":"TestB"}
{"Action":"skip","Test":"TestB"}
text of a program
{"Action":"run","Test":"TestC"}
{"Action":"output","Test":"TestC","Output":"panic: no\\n"}
{"Action":"fail"}
"""


def test_each_test_and_subtest_has_an_outcome_also_after_a_panic() -> None:
    assert outcomes(_LINES.splitlines()) == {
        "TestA": "passed",
        "TestA/one": "passed",
        "TestB": "skipped",
        "TestC": "failed",
    }
