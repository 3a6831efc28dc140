"""Combination of state batches, compared with a model that has one state per offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.long_work import batched
from kafka_compat.share_coordinator.persister import StateBatch
from kafka_compat.share_coordinator.state_batches import (
    BATCHES_MAX,
    combine,
    combine_in_steps,
    is_valid,
)
from tests.share_coordinator.batches import batches, model
from tests.support.steps import result_of


@given(st.lists(st.tuples(batches(), st.integers(-1, 35)), min_size=1, max_size=4))
def test_each_offset_keeps_the_highest_count_and_state(changes: list[tuple[list[StateBatch], int]]) -> None:
    stored: tuple[StateBatch, ...] = ()
    all_so_far: list[StateBatch] = []
    start_offset = -1
    for new, offset in changes:
        start_offset = max(start_offset, offset)
        all_so_far += new
        stored = combine(stored, new, start_offset)
        assert stored == model(all_so_far, start_offset)


def in_steps(new: list[StateBatch]) -> tuple[StateBatch, ...]:
    return result_of(combine_in_steps(batched(new, 1_000)))


@given(st.lists(batches(), max_size=4), batches(), st.integers(-1, 35))
def test_a_write_that_was_combined_in_steps_has_the_same_effect(
    new: list[list[StateBatch]], stored: list[StateBatch], start_offset: int
) -> None:
    # Each step combines a thousand batches.
    filling = [StateBatch(5, 5, 0, 1)] * 800
    given_batches = [each for some in new for each in (*some, *filling)]
    combined = in_steps(given_batches)
    assert combine(combine((), stored, -1), combined, start_offset) == model(
        [*stored, *given_batches], start_offset
    )


def test_a_write_of_too_many_batches_is_noticed_and_invalid_batches_are_kept() -> None:
    many = [StateBatch(2 * n, 2 * n, 2, 1) for n in range(BATCHES_MAX + 500)]
    assert len(in_steps(many)) == BATCHES_MAX + 1
    invalid = [StateBatch(9, 7, 2, 1), StateBatch(9, 8, 2, 1), StateBatch(9, 6, 2, 1)]
    assert in_steps([*invalid, *many[:3]]) == (*many[:3], invalid[1])


def test_a_batch_without_records_is_valid_only_below_the_start_offset() -> None:
    assert is_valid(StateBatch(5, 4, 0, 1), 5)
    assert not is_valid(StateBatch(5, 4, 0, 1), 4)
    assert not is_valid(StateBatch(5, 4, 0, 1), -1)
    assert is_valid(StateBatch(5, 5, 0, 1), 7)


@pytest.mark.parametrize("start_offset", [-1, 0, 3])
def test_combining_nothing_changes_nothing_after_the_start_offset(start_offset: int) -> None:
    stored = (StateBatch(3, 4, 2, 1), StateBatch(6, 9, 0, 1))
    assert combine(stored, (), start_offset) == stored
