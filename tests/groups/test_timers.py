"""The deadlines of one group."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.groups.timers import Timer, TimerKind, Timers

_EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 5), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("keep"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("take"), st.just(0), st.integers(0, 50)),
    )
)


def _timer(number: int) -> Timer:
    return Timer(TimerKind.SESSION, f"member-{number}")


@given(_EVENTS)
def test_the_timers_that_are_due_are_returned_in_the_order_of_their_deadlines(
    events: list[tuple[str, int, int]],
) -> None:
    timers = Timers()
    expected: dict[Timer, int] = {}
    for what, number, time_ms in events:
        if what == "set":
            timers.set(_timer(number), time_ms)
            expected[_timer(number)] = time_ms
        elif what == "cancel":
            timers.cancel(_timer(number))
            expected.pop(_timer(number), None)
        elif what == "keep":
            kept = {f"member-{each}" for each in range(number)}
            timers.keep_members(kept)
            expected = {timer: at_ms for timer, at_ms in expected.items() if timer.member_id in kept}
        else:
            found = []
            while (timer := timers.take_due(time_ms)) is not None:
                found.append(expected.pop(timer))
            assert all(at_ms > time_ms for at_ms in expected.values())
            assert found == sorted(found) and all(at_ms <= time_ms for at_ms in found)
        assert set(timers.pending) == expected.keys()
        wake_at_ms = timers.wake_at_ms
        assert not expected or (wake_at_ms is not None and wake_at_ms <= min(expected.values()))


def test_timers_of_members_that_have_left_need_no_memory_until_their_deadlines() -> None:
    timers = Timers()
    timers.set(_timer(0), 45_000)
    for number in range(1, 3_000):
        timers.set(_timer(number), 45_000)
    for number in range(1, 3_000):
        timers.cancel(_timer(number))
    assert len(timers._queue) <= 200
    assert timers.take_due(45_000) == _timer(0)
    assert timers.wake_at_ms is None or timers.take_due(45_000) is None
