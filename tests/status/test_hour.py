"""The hour keeps the newest samples of each figure, in bounded memory."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.status.hour import CHARTS, GAP_MAX, GROUPS_MAX, SLOTS, STEP_S, Hour, Ring, chosen

HOUR_BYTES_MAX = 5_000_000


def test_a_sample_covers_the_slots_since_the_sample_before_it() -> None:
    ring = Ring()
    ring.put(105, 7.0)
    ring.put(135, 9.0)
    assert ring.values(139)[-5:] == [None, 7.0, 9.0, 9.0, 9.0]
    ring.put(138, 4.0)
    assert ring.values(155)[-5:] == [9.0, 9.0, 4.0, None, None]


def test_a_long_pause_leaves_a_gap() -> None:
    ring = Ring()
    ring.put(0, 1.0)
    later_s = (GAP_MAX + 1) * STEP_S
    ring.put(later_s, 2.0)
    assert ring.values(later_s)[-GAP_MAX - 3 :] == [None, 1.0, *[None] * GAP_MAX, 2.0]
    ring.put(later_s + 3 * STEP_S, 3.0, is_first=True)
    assert ring.values(later_s + 3 * STEP_S)[-4:] == [2.0, None, None, 3.0]


@given(st.lists(st.tuples(st.integers(1, 2 * SLOTS), st.integers(0, 1000)), max_size=30))
def test_a_ring_equals_a_list_of_all_slots(samples: list[tuple[int, int]]) -> None:
    ring = Ring()
    every: dict[int, float] = {}
    slot = last = 5_000
    for step, value in samples:
        slot = last + step
        ring.put(slot * STEP_S, value)
        covers = every and step <= GAP_MAX
        every.update(dict.fromkeys(range(last + 1 if covers else slot, slot + 1), float(value)))
        last = slot
    for now in (slot, slot + 3):
        assert ring.values(now * STEP_S) == [every.get(each) for each in range(now - SLOTS + 1, now + 1)]
    assert ring.most() == max([every.get(each, -1) for each in range(slot - SLOTS + 1, slot + 1)])


def test_values_in_json_have_four_digits() -> None:
    ring = Ring()
    ring.put(0, 1234.5678)
    assert ring.values(0)[-1] == 1235.0


def test_only_followed_groups_have_a_past() -> None:
    hour = Hour()
    hour.follow(["a", "b"])
    hour.put_lag("a", 10, 3.0)
    hour.put_lag("stranger", 10, 3.0)
    assert (hour.most("a"), hour.most("b"), hour.most("stranger")) == (3.0, -1.0, -1.0)
    assert hour.lag("stranger", 10, 0) is None
    hour.follow(["b"])
    hour.follow(["a", "b"])
    assert hour.most("a") < 0
    hour.follow(f"group-{number}" for number in range(2 * GROUPS_MAX))
    assert len(hour.groups) == GROUPS_MAX


def test_the_groups_with_the_most_lag_are_chosen() -> None:
    many = {f"group-{number:05}": 0.0 for number in range(10_000)}
    assert chosen({"a": 1, "b": 3, "c": 3}, []) == ["b", "c", "a"]
    assert chosen({**many, "late": 5.0}, [])[:2] == ["late", "group-00000"]
    assert len(chosen(many, [])) == GROUPS_MAX
    assert chosen(many, ["group-09999"])[0] == "group-09999"


def test_an_hour_of_many_groups_fits_the_memory_limit() -> None:
    names = [f"{'group-with-a-long-name-' * 8}{number}" for number in range(10_000)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        hour = Hour()
        for at_s in range(0, 2 * SLOTS * STEP_S, 97 * STEP_S):
            hour.follow(chosen({name: float(len(name)) for name in names}, hour.groups))
            for name in hour.groups:
                hour.put_lag(name, at_s, 1e6)
            hour.put(at_s, {name: 1e9 for chart in CHARTS for name, _ in chart.lines})
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(hour.groups) == GROUPS_MAX
    print(f"{taken:,} bytes for {GROUPS_MAX} groups")
    assert taken < HOUR_BYTES_MAX / 3
