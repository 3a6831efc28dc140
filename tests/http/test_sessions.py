"""Browser sessions, which are limited in number and duration."""

from __future__ import annotations

from kafka_compat.http.guard import IDLE_MAX_S, SESSIONS_MAX, Sessions


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_session_stays_valid_while_it_is_used() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    session = sessions.open()
    for _ in range(3):
        clock.now_s += IDLE_MAX_S
        assert sessions.use(session)
    clock.now_s += IDLE_MAX_S + 1
    assert not sessions.use(session) and not sessions.use(session)


def test_an_unknown_session_is_invalid() -> None:
    sessions = Sessions(Clock())
    sessions.open()
    assert not sessions.use("") and not sessions.use("x")


def test_the_least_recently_used_session_is_evicted() -> None:
    sessions = Sessions(Clock())
    first, second = sessions.open(), sessions.open()
    assert sessions.use(first)
    more = [sessions.open() for _ in range(SESSIONS_MAX - 1)]
    assert len({first, second, *more}) == SESSIONS_MAX + 1
    assert not sessions.use(second)
    assert sessions.use(first) and all(map(sessions.use, more))


def test_a_session_is_invalid_after_logout() -> None:
    sessions = Sessions(Clock())
    session = sessions.open()
    sessions.end(session)
    sessions.end(session)
    assert not sessions.use(session)
