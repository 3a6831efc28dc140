"""ZooKeeper dies or is unreachable: no two leaders acknowledge in the same epoch, and the cluster recovers
afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.faults.fixed_broker_producers import StubbornProducers, lost, read_log, rivals
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.secured import FORMS

_TOPIC = "duel"
_PARTITIONS = 3
_RESUMES_S = 15.0

campaign_only = pytest.mark.skipif(not campaign.enabled(), reason="takes a minute: with --campaign")


@contextmanager
def _work(directory: Path, secured: bool) -> Iterator[tuple[FaultCluster, StubbornProducers]]:
    """A cluster behind proxies, with producers that each write to a fixed broker. At the end, no acknowledged
    record may be lost, and no two brokers may have acknowledged in the same epoch.
    """
    session_timeout_ms = 6000 if campaign.enabled() else 2000
    with FaultCluster(
        directory, session_timeout_ms=session_timeout_ms, proxied=True, secured=secured
    ) as cluster:
        cluster.create_topic(_TOPIC, _PARTITIONS)
        with StubbornProducers(cluster, _TOPIC, _PARTITIONS) as producers:
            _wait_acknowledged(producers, 30)
            yield cluster, producers
        states = cluster.states(_TOPIC)
        logs = {
            partition: read_log(cluster.brokers[state.leader].port, _TOPIC, partition)
            for partition, state in states.items()
        }
    acknowledged = producers.acknowledged
    brokers = {item.broker_id for item in acknowledged}
    stored = sum(map(len, logs.values()))
    print(f"{len(acknowledged)} records acknowledged by brokers {brokers}, {stored} stored")
    assert not lost(acknowledged, logs)
    assert not rivals(acknowledged, logs)
    assert len(acknowledged) > 100


def _wait_acknowledged(producers: StubbornProducers, timeout_s: float) -> float:
    """Wait until every partition has a new acknowledgement, and return how long it took in seconds."""
    began_s = time.monotonic()
    wait_until(
        lambda: producers.acknowledged_since(began_s), timeout_s, "acknowledgements in every partition"
    )
    return time.monotonic() - began_s


def _resumes(cluster: FaultCluster, producers: StubbornProducers, alive: Sequence[int] = BROKER_IDS) -> None:
    """Check that within 15 s, records are acknowledged for every partition, and topics can be created."""
    began_s = time.monotonic()
    wait_until(
        lambda: cluster.registered() == set(alive) and cluster.controller() in alive,
        _RESUMES_S,
        "registration of all brokers and a controller",
    )
    registered_s = time.monotonic() - began_s
    _wait_acknowledged(producers, _RESUMES_S)
    written_s = time.monotonic() - began_s
    cluster.create_topic(f"after-{time.time_ns()}", 1, replicas=len(alive))
    created_s = time.monotonic() - began_s
    print(f"registered after {registered_s:.1f} s, written {written_s:.1f} s, created {created_s:.1f} s")
    assert created_s <= _RESUMES_S


@FORMS
@pytest.mark.timeout(300)
@pytest.mark.parametrize("who", ["controller", "leader"])
def test_a_broker_isolated_from_zookeeper_is_replaced_and_stops_acknowledging_records(
    tmp_path: Path, who: str, secured: bool
) -> None:
    if (who == "leader" or secured) and not campaign.enabled():
        pytest.skip("only with --campaign")
    with _work(tmp_path, secured) as (cluster, producers):
        controller = cluster.controller()
        leaders = [state.leader for state in cluster.states(_TOPIC).values()]
        victim = controller if who == "controller" else next(item for item in leaders if item != controller)
        assert victim is not None
        cluster.proxies[victim].silence()
        cluster.wait_without(victim, _TOPIC, 30)
        replaced_s = time.monotonic()
        _wait_acknowledged(producers, 30)
        # the isolated broker would acknowledge something within this time
        time.sleep(campaign.rounds(1, 20))
        late = [
            item
            for item in producers.acknowledged
            if item.broker_id == victim and item.time_s > replaced_s + 0.5
        ]
        assert not late
        cluster.proxies[victim].resume()
        _resumes(cluster, producers)
        cluster.wait_in_sync(_TOPIC, 15)


@campaign_only
@FORMS
@pytest.mark.timeout(300)
def test_all_brokers_recover_after_being_isolated_from_zookeeper(tmp_path: Path, secured: bool) -> None:
    with _work(tmp_path, secured) as (cluster, producers):
        for proxy in cluster.proxies.values():
            proxy.silence()
        wait_until(lambda: not cluster.registered(), 30, "expiry of all sessions")
        time.sleep(24)  # the outage lasts longer than the session timeout
        _wait_acknowledged(producers, 5)
        for proxy in cluster.proxies.values():
            proxy.resume()
        _resumes(cluster, producers)
        cluster.wait_in_sync(_TOPIC, 15)


@campaign_only
@FORMS
@pytest.mark.timeout(300)
@pytest.mark.parametrize("broker_dies", [False, True])
def test_brokers_recover_after_zookeeper_was_down_for_30_s(
    tmp_path: Path, broker_dies: bool, secured: bool
) -> None:
    with _work(tmp_path, secured) as (cluster, producers):
        alive = set(BROKER_IDS)
        victim = cluster.states(_TOPIC)[0].leader
        cluster.zookeeper.kill()
        time.sleep(15)  # half of the outage
        _wait_acknowledged(producers, 5)
        if broker_dies:
            cluster.brokers[victim].kill()
            alive.remove(victim)
        time.sleep(15)  # the other half of the outage
        cluster.zookeeper.start()
        _resumes(cluster, producers, sorted(alive))
        if broker_dies:
            cluster.start(victim)
        cluster.wait_in_sync(_TOPIC, 30)
