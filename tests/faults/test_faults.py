"""Kills, pauses and restarts of leaders and controllers under acks=all load from three clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import schedule
from tests.faults.cluster import FaultCluster
from tests.faults.evidence import Findings, check, longest_gap_s, take_out_repeated
from tests.faults.producers import Acknowledgement, value_of
from tests.faults.quorum_cluster import QuorumFaultCluster
from tests.support import campaign
from tests.support.secured import FORMS

_OVER_THE_SESSION_S = campaign.rounds(15, 3)
"""The time allowed in addition to the timeouts. Normal test runs share busy machines."""


@FORMS
@pytest.mark.timeout(2400)
def test_faults_do_not_lose_duplicate_or_reorder_acknowledged_records(tmp_path: Path, secured: bool) -> None:
    if not (secured or campaign.enabled()):
        pytest.skip("only in campaigns; normal runs test the secured cluster")
    session_timeout_ms, request_timeout_ms = (6000, 5000) if campaign.enabled() else (2000, 2000)
    planned = schedule.faults(campaign.rounds(3, 30))
    with FaultCluster(tmp_path, session_timeout_ms=session_timeout_ms, secured=secured) as cluster:
        run = schedule.run(cluster, planned, tmp_path, request_timeout_ms=request_timeout_ms)
    print(run.table())
    assert run.findings.nothing, run.findings
    assert not any(run.given_up.values()), run.given_up
    assert min(run.acknowledged.values()) > 20 * len(planned)
    allowed_s = session_timeout_ms / 1000 + _OVER_THE_SESSION_S
    assert run.longest_gap_s("kill -9") <= allowed_s
    assert run.longest_gap_s("SIGSTOP") <= allowed_s + request_timeout_ms / 1000


@pytest.mark.skipif(not campaign.enabled(), reason="takes ten minutes: with --campaign")
@pytest.mark.parametrize("separate", [False, True], ids=["combined", "separate"])
@pytest.mark.timeout(2400)
def test_faults_of_a_quorum_do_not_lose_duplicate_or_reorder_acknowledged_records(
    tmp_path: Path, separate: bool
) -> None:
    session_timeout_ms, request_timeout_ms = 6000, 5000
    planned = schedule.quorum_faults(30)
    with QuorumFaultCluster(tmp_path, session_timeout_ms=session_timeout_ms, separate=separate) as cluster:
        run = schedule.run(cluster, planned, tmp_path, request_timeout_ms=request_timeout_ms)
    print(run.table())
    assert run.findings.nothing, run.findings
    assert not any(run.given_up.values()), run.given_up
    assert min(run.acknowledged.values()) > 20 * len(planned)
    # A killed process is noticed before its session times out, and a paused one at its timeout. Clients that
    # have connected to a paused process again wait for its response.
    assert run.longest_gap_s("kill -9") <= session_timeout_ms / 1000
    allowed_s = session_timeout_ms / 1000 + _OVER_THE_SESSION_S + request_timeout_ms / 1000
    assert run.longest_gap_s("SIGSTOP") <= allowed_s


def test_the_check_finds_every_kind_of_damage() -> None:
    log = {(number % 2, number // 2): value_of("java", number) for number in range(6)}
    acknowledged = {"java": [Acknowledgement(number, number % 2, 0, number // 2) for number in range(6)]}
    assert check(log, acknowledged).nothing
    missing = {place: value for place, value in log.items() if place != (1, 2)}
    assert check(missing, acknowledged) == Findings(lost=[("java", 5)])
    assert check(log | {(1, 3): value_of("java", 5)}, acknowledged) == Findings(duplicated=[("java", 5)])
    assert check(log | {(1, 3): b"stranger:1:"}, acknowledged) == Findings(phantom=[(1, 3)])
    swapped = log | {(0, 0): value_of("java", 2), (0, 1): value_of("java", 0)}
    assert check(swapped, acknowledged) == Findings(moved=[("java", 0), ("java", 2)], disordered=[(0, 1)])


def test_only_the_repeated_records_of_one_client_are_taken_out() -> None:
    values = [value_of(client, number) for number in (2, 1, 2) for client in ("java", "confluent")]
    log = {(0, offset): value for offset, value in enumerate(values)}
    findings = check(log, {"java": [], "confluent": [Acknowledgement(3, 0, 0, 9)]})
    assert take_out_repeated(findings, log, "confluent") == 2
    expected = Findings(lost=[("confluent", 3)], duplicated=[("java", 2)], disordered=[(0, 2)])
    assert findings == expected


def test_the_longest_gap_is_measured_per_partition() -> None:
    moments = [(0, 1000), (1, 1100), (1, 1200), (1, 5000), (0, 7000), (0, 7100)]
    items = [Acknowledgement(number, *moment, 0) for number, moment in enumerate(moments)]
    assert longest_gap_s(items, 2000, 3000) == 6.0
    assert longest_gap_s(items, 7050, 8000) == 0.1
