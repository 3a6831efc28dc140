"""Session timeouts of the leader."""

from __future__ import annotations

from kafka_compat.coordination.replicated_store.records import OpenSession
from kafka_compat.coordination.replicated_store.session_timeouts import LOOK_EVERY_S, SessionTimeouts
from kafka_compat.coordination.replicated_store.tree_machine import SessionEntry

LATEST = {1: ["one"], 2: ["two"]}


def entry(session_id: int, node_id: int, incarnation: str, timeout_ms: int = 1000) -> SessionEntry:
    return SessionEntry(session_id, OpenSession(f"t{session_id}", node_id, "d", incarnation, timeout_ms))


def looked(
    timeouts: SessionTimeouts, begin_s: float, end_s: float, latest: dict[int, list[str]]
) -> list[int]:
    """Look for expired sessions at the usual interval."""
    found = []
    for number in range(round(begin_s / LOOK_EVERY_S) + 1, round(end_s / LOOK_EVERY_S) + 1):
        found += timeouts.expired(number * LOOK_EVERY_S, latest)
    return found


def test_a_session_expires_if_its_node_does_not_fetch_for_its_timeout() -> None:
    timeouts = SessionTimeouts("one", [entry(5, 1, "one"), entry(6, 2, "two")], 0.0)
    assert looked(timeouts, 0, 0.75, LATEST) == []
    timeouts.heard(2, 0.75)
    assert looked(timeouts, 0.75, 1.5, LATEST) == []
    assert looked(timeouts, 1.5, 1.75, LATEST) == [6]


def test_the_sessions_of_the_leading_process_do_not_expire() -> None:
    timeouts = SessionTimeouts("one", [entry(5, 1, "one")], 0.0)
    assert looked(timeouts, 0, 100, LATEST) == []


def test_sessions_of_an_earlier_process_are_not_kept_alive_by_its_successor() -> None:
    timeouts = SessionTimeouts("one", [entry(6, 2, "old"), entry(7, 2, "two")], 0.0)
    latest = {1: ["one"], 2: ["old", "two"]}
    found = []
    for number in range(1, 9):
        timeouts.heard(2, number * LOOK_EVERY_S)
        found += timeouts.expired(number * LOOK_EVERY_S, latest)
    assert found == [6]


def test_an_expired_session_is_returned_once_unless_its_end_was_not_appended() -> None:
    timeouts = SessionTimeouts("one", [entry(6, 2, "two")], 0.0)
    assert looked(timeouts, 0, 2, LATEST) == [6]
    timeouts.withdraw([6])
    assert looked(timeouts, 2, 3, LATEST) == [6]
    timeouts.ended(6)
    assert looked(timeouts, 3, 9, LATEST) == []


def test_the_timeout_of_a_new_session_starts_when_it_is_opened() -> None:
    timeouts = SessionTimeouts("one", [], 0.0)
    assert looked(timeouts, 0, 5, LATEST) == []
    timeouts.opened(entry(6, 2, "two"), 5.0)
    assert looked(timeouts, 5, 5.75, LATEST) == []
    assert looked(timeouts, 5.75, 6, LATEST) == [6]


def test_time_during_which_the_leader_did_not_run_is_not_counted() -> None:
    timeouts = SessionTimeouts("one", [entry(6, 2, "two")], 0.0)
    assert looked(timeouts, 0, 0.25, LATEST) == []
    assert timeouts.expired(60.0, LATEST) == []
    assert looked(timeouts, 60, 60.25, LATEST) == [6]


def test_times_of_nodes_without_sessions_are_forgotten() -> None:
    timeouts = SessionTimeouts("one", [entry(6, 2, "two"), entry(7, 2, "two")], 0.0)
    timeouts.heard(2, 0.1)
    timeouts.ended(6)
    assert timeouts._heard
    timeouts.ended(7)
    assert not timeouts._heard
    assert not timeouts._sessions
