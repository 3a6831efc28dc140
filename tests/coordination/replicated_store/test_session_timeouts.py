"""Session timeouts of the leader."""

from __future__ import annotations

from kafka_compat.coordination.replicated_store.metadata_log import Reach
from kafka_compat.coordination.replicated_store.records import OpenSession
from kafka_compat.coordination.replicated_store.session_timeouts import (
    GRACE_S,
    LOOK_EVERY_S,
    RECONNECTION_S,
    SessionTimeouts,
)
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
    timeouts.left(2, 0.2)
    for number in range(1, 9):
        timeouts.silent(number * LOOK_EVERY_S, LATEST)
    timeouts.ended(6)
    assert timeouts._heard
    assert timeouts._probed
    timeouts.ended(7)
    assert not timeouts._heard
    assert not timeouts._probed
    assert not timeouts._left
    assert not timeouts._sessions


def probed(timeouts: SessionTimeouts, begin_s: float, end_s: float, reach: Reach) -> list[tuple[float, int]]:
    """Look at the usual interval, probe silent nodes, and return the ends of sessions with their times."""
    found = []
    for number in range(round(begin_s / LOOK_EVERY_S) + 1, round(end_s / LOOK_EVERY_S) + 1):
        now_s = number * LOOK_EVERY_S
        for node_id in timeouts.silent(now_s, LATEST):
            timeouts.probed(node_id, reach)
        found += [(now_s, session_id) for session_id in timeouts.expired(now_s, LATEST)]
    return found


def of_node_two(timeout_ms: int = 9000) -> SessionTimeouts:
    return SessionTimeouts("one", [entry(5, 1, "one"), entry(6, 2, "two", timeout_ms)], 0.0)


def test_sessions_of_a_node_at_whose_address_nothing_listens_end_after_the_grace() -> None:
    timeouts = of_node_two()
    timeouts.heard(2, 0.0)
    assert probed(timeouts, 0, 5, Reach.REFUSED) == [(GRACE_S, 6)]
    assert timeouts.is_gone(2)


def test_a_new_leader_ends_the_sessions_of_a_node_that_has_not_fetched_from_it_if_nothing_listens() -> None:
    assert probed(of_node_two(), 0, 5, Reach.REFUSED) == [(RECONNECTION_S, 6)]
    for other in (Reach.FAILED, Reach.NO_ADDRESS, Reach.CONNECTED):
        assert probed(of_node_two(), 0, 8.75, other) == []


def test_sessions_of_a_killed_process_end_at_once_if_nothing_listens_at_its_address() -> None:
    timeouts = of_node_two()
    timeouts.heard(2, 0.0)
    timeouts.left(2, 0.5)
    assert probed(timeouts, 0.5, 5, Reach.REFUSED) == [(0.5 + RECONNECTION_S, 6)]


def test_sessions_of_a_node_that_closed_its_connection_end_after_the_grace_if_it_cannot_be_reached() -> None:
    for reach in (Reach.FAILED, Reach.NO_ADDRESS):
        timeouts = of_node_two()
        timeouts.heard(2, 0.0)
        timeouts.left(2, 0.5)
        ((ended_s, session_id),) = probed(timeouts, 0.5, 5, reach)
        assert session_id == 6
        assert GRACE_S <= ended_s - 0.5 <= GRACE_S + RECONNECTION_S + LOOK_EVERY_S


def test_a_node_that_reconnects_at_once_is_not_probed() -> None:
    timeouts = of_node_two()
    for number in range(1, 5):
        timeouts.left(2, number * 1.0)
        timeouts.heard(2, number + 0.1)
        assert timeouts.silent(number + 0.5, LATEST) == []


def test_a_node_that_accepts_connections_keeps_its_sessions_for_their_timeout() -> None:
    timeouts = of_node_two()
    timeouts.heard(2, 0.0)
    timeouts.left(2, 0.0)
    assert probed(timeouts, 0, 20, Reach.CONNECTED) == [(9.0, 6)]


def test_a_node_that_cannot_be_reached_but_closed_no_connection_keeps_its_sessions() -> None:
    timeouts = of_node_two()
    timeouts.heard(2, 0.0)
    assert probed(timeouts, 0, 20, Reach.FAILED) == [(9.0, 6)]


def test_a_node_that_fetches_over_another_connection_keeps_its_sessions() -> None:
    timeouts = of_node_two()
    for number in range(20):
        timeouts.heard(2, number * 1.0)
        timeouts.left(2, number * 1.0 + 0.25)
        assert probed(timeouts, number * 1.0, number + 1.0, Reach.NO_ADDRESS) == []


def test_a_fetch_that_arrives_during_a_probe_makes_its_result_void() -> None:
    timeouts = of_node_two()
    timeouts.heard(2, 0.0)
    assert looked_silent(timeouts, 0, GRACE_S) == [2]
    timeouts.heard(2, GRACE_S + 0.1)
    timeouts.probed(2, Reach.REFUSED)
    assert timeouts.expired(GRACE_S + 0.25, LATEST) == []


def test_time_during_which_the_leader_did_not_run_is_no_silence() -> None:
    timeouts = of_node_two()
    timeouts.heard(2, 0.0)
    assert timeouts.silent(60.0, LATEST) == []


def test_the_leading_process_and_processes_with_a_successor_are_not_probed() -> None:
    timeouts = SessionTimeouts("one", [entry(5, 1, "one"), entry(6, 2, "old")], 0.0)
    for number in range(1, 40):
        assert timeouts.silent(number * LOOK_EVERY_S, {1: ["one"], 2: ["old", "two"]}) == []


def test_a_process_that_starts_after_the_end_of_its_predecessor_is_not_gone() -> None:
    timeouts = of_node_two()
    assert probed(timeouts, 0, 2, Reach.REFUSED) == [(RECONNECTION_S, 6)]
    timeouts.opened(entry(7, 2, "two", 9000), 2.0)
    assert probed(timeouts, 2, 3.25, Reach.REFUSED) == []


def looked_silent(timeouts: SessionTimeouts, begin_s: float, end_s: float) -> list[int]:
    """Return the nodes to be probed, looking at the usual interval."""
    found = []
    for number in range(round(begin_s / LOOK_EVERY_S) + 1, round(end_s / LOOK_EVERY_S) + 1):
        found += timeouts.silent(number * LOOK_EVERY_S, LATEST)
    return found
