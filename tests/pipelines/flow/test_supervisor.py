"""When jobs start, restart and stop, with times given by the test."""

from __future__ import annotations

import json

from kafka_compat.pipelines.flow.supervisor import Action, State, Supervisor, What

ERROR = "kafka-compat pipeline archive: No such topic: a."


def flow(*, continuous: bool = True) -> Supervisor:
    return Supervisor([("a", "archive"), ("b", "latest")], continuous=continuous, stop_timeout_s=10)


def running(*, continuous: bool = True) -> Supervisor:
    found = flow(continuous=continuous)
    for pid, action in enumerate(found.actions(0), 1):
        found.started(action.name, pid, 0)
    return found


def test_continuous_jobs_start_together() -> None:
    assert flow().actions(0) == [Action(What.START, "a"), Action(What.START, "b")]


def test_other_jobs_run_one_after_another_and_a_failure_is_the_exit_code() -> None:
    found = running(continuous=False)
    assert found.actions(1) == []
    found.ended("a", 2, 1)
    assert found.actions(1) == [Action(What.START, "b")]
    found.started("b", 2, 1)
    found.ended("b", 0, 2, {"rows": 3})
    assert found.finished and found.exit_code == 1
    assert found.statuses["b"].as_json(2)["report"] == {"rows": 3}


def test_a_failed_job_is_restarted_after_a_pause_that_doubles() -> None:
    found, now_s, pauses = running(), 0.0, []
    for _ in range(8):
        found.ended("a", 1, now_s)
        due_s = found.next_s()
        assert due_s is not None and found.actions(due_s - 0.01) == []
        assert found.actions(due_s) == [Action(What.START, "a")]
        pauses.append(due_s - now_s)
        now_s = due_s
        found.started("a", 7, now_s)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert found.statuses["a"].restarts == 8
    found.ended("a", 1, now_s + 60)
    assert found.next_s() == now_s + 61, "a job that ran for a minute starts with the first pause"


def test_a_job_that_lost_records_is_not_restarted() -> None:
    found = running()
    found.ended("a", 3, 5)
    assert found.next_s() is None and not found.finished
    found.stop(6)
    found.ended("b", 0, 7)
    assert found.finished and found.exit_code == 1


def test_a_stop_ends_all_jobs_and_kills_those_that_do_not_end() -> None:
    found = running()
    found.ended("a", 1, 1)
    found.stop(1)
    assert found.actions(1) == [Action(What.TERMINATE, "b")]
    assert found.statuses["a"].state == State.STOPPED
    assert found.next_s() == 11
    assert found.actions(11) == [Action(What.KILL, "b")] and found.actions(12) == []
    found.ended("b", 137, 12)
    assert found.finished and found.exit_code == 0


def test_a_second_signal_kills_at_once() -> None:
    found = running()
    found.stop(1)
    found.stop(2)
    due = found.actions(2)
    assert due[-2:] == [Action(What.KILL, "a"), Action(What.KILL, "b")]


def test_a_flow_that_is_interrupted_has_exit_code_130() -> None:
    found = running(continuous=False)
    found.stop(1)
    found.ended("a", 130, 2)
    assert found.finished and found.exit_code == 130


def test_the_status_shows_the_progress_and_the_reason_of_a_failure() -> None:
    found = running()
    found.said("a", "archive: batch 3: 10 rows, 5 rows/s, 0 offsets behind")
    line = found.statuses["a"].as_text(65, 5)
    assert line == "a      running     pid 1, up 65 s: batch 3: 10 rows, 5 rows/s, 0 offsets behind"
    found.said("a", ERROR)
    found.said("a", "Topics there: b.")
    found.ended("a", 2, 65)
    assert found.statuses["a"].as_text(65, 1) == "a  restarting  in 1 s, exit code 2: No such topic: a."
    status = json.loads(json.dumps(found.statuses["a"].as_json(65)))
    assert status == {
        "name": "a",
        "job": "archive",
        "state": "restarting",
        "pid": None,
        "up_s": None,
        "restarts": 0,
        "exit_code": 2,
        "message": "No such topic: a.",
    }
