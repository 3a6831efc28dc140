"""Patterns for transactional ids: they match like `re`, in time linear in the length of the id."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.transactions.id_pattern import IdPattern, InvalidPattern

PATTERNS = [
    "a", "a.*", "(a|b)+c?", "[a-c]{2,3}", "[^a]b", "^ab$", "a$b", "x?^a", r"\d+\w*\s?", "a{0}b", "(a*)*", "",
    "(ab|a)(c|bcd)", "(?i)aB", "a+?b", "(?:ab)*", r"\.a", "[a-c-]",
]  # fmt: skip


@given(st.sampled_from(PATTERNS), st.text("abcdB1 .-", max_size=6))
def test_a_pattern_matches_the_same_text_as_in_pythons_re(pattern: str, text: str) -> None:
    assert IdPattern(pattern).matches(text) == (re.fullmatch(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern", ["(", "a)", "[", "*", r"(a)\1", "(?=a)", "(?<!a)b", "((a{100}){100}){100}"]
)
def test_unsupported_patterns_are_rejected(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        IdPattern(pattern)


def test_a_pattern_that_takes_exponential_time_in_pythons_re_is_fast() -> None:
    begun = time.process_time()
    assert not IdPattern("(a+)+b").matches("a" * 200)
    assert not IdPattern("(a|a)*(a|a)*(a|aa)*c").matches("a" * 200)
    assert time.process_time() - begun < 1
