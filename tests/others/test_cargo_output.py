"""The outcomes of Rust tests are read from the output of `cargo test`."""

from __future__ import annotations

from tests.others.cargo_output import outcomes

_OUTPUT = """\
     Running unittests src/lib.rs (target/debug/deps/rskafka-4c1e)

running 3 tests
test protocol::test_int8 ... ok
test protocol::test_refused - should panic ... ok
test protocol::test_slow ... ignored, takes a minute

     Running tests/client.rs (target/debug/deps/client-9a3b)

running 1 test
test test_sasl ... FAILED
"""


def test_each_test_has_an_outcome_by_file_and_name() -> None:
    assert outcomes(_OUTPUT.splitlines()) == {
        "src/lib::protocol::test_int8": "passed",
        "src/lib::protocol::test_refused": "passed",
        "src/lib::protocol::test_slow": "skipped",
        "tests/client::test_sasl": "failed",
    }
