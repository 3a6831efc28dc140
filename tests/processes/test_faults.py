"""`serve --processes N` when processes die, hang or do not stop."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.durability.load import read_everything
from tests.faults import evidence
from tests.faults.producers import Producer, now_ms
from tests.processes.command import Command, wait_gone
from tests.processes.topics import PARTITIONS, TOPIC, assert_holds, create_topic, fill, in_sync
from tests.support import campaign
from tests.support.ports import adjacent_ports
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, ZooKeeper, metadata

_SESSION_MS = 2000
_CLIENTS = ("confluent", "kafka-python")
_KILLS = campaign.rounds(3, 50)


def leaders(command: Command) -> set[int]:
    return {leader for leader, _ in in_sync(command).values()}


def all_in_sync(command: Command, replicas: int = 2) -> bool:
    return all(leader > 0 and len(isr) == replicas for leader, isr in in_sync(command).values())


def test_a_killed_process_is_replaced_as_leader_and_restarted(tmp_path: Path) -> None:
    """The sessions would last 18 s with the default timeout."""
    with Command(tmp_path, 3) as command:
        create_topic(command, replicas=3)
        load = fill(command)
        before = command.ports
        killed = in_sync(command)[0][0]
        old = command.kill(killed)
        began = time.monotonic()
        wait_until(lambda: killed not in leaders(command), 10, "leaders on the other brokers", 0.01)
        assert time.monotonic() - began < 9
        command.wait_for(rf"Broker {killed} ready", times=2)
        assert f"Broker {killed} was killed by SIGKILL" in command.said
        assert f"Restarting broker {killed} now" in command.said
        assert command.pid_of(killed) != old
        assert command.ports == before
        wait_until(lambda: all_in_sync(command, 3), 30, "all replicas in sync", 0.1)
        assert_holds(command, load)
        assert command.stop() == 0
        assert command.is_clean


def test_a_single_process_that_receives_sigterm_is_restarted(tmp_path: Path) -> None:
    with Command(tmp_path) as command:
        os.kill(command.pid_of(2), signal.SIGTERM)
        command.wait_for("Broker 2 ready", times=2)
        assert "Broker 2 exited with code 0" in command.said
        command.wait_registered({1, 2})
        assert command.stop() == 0


def test_automatically_chosen_ports_are_kept_across_restarts(tmp_path: Path) -> None:
    with Command(tmp_path, port=0) as command:
        before = command.ports
        assert 0 not in before.values()
        command.kill(1)
        command.wait_for("Broker 1 ready", times=2)
        assert command.ports == before
        command.wait_registered({1, 2})


def test_a_restarted_process_listens_on_all_interfaces_again(tmp_path: Path) -> None:
    port = adjacent_ports(2)
    settings = {
        "listeners": f"PLAINTEXT://:{port}",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
    }
    with Command(tmp_path, 2, settings, port=port) as command:
        command.kill(2)
        command.wait_for("Broker 2 ready", times=2)
        command.wait_registered({1, 2})
        known = metadata(port + 1)
        assert known is not None
        addresses = [(broker.host, broker.port) for broker in known.brokers]
        assert sorted(addresses) == [("localhost", port), ("localhost", port + 1)]


def test_a_process_that_keeps_crashing_is_restarted_at_growing_intervals(tmp_path: Path) -> None:
    with Command(tmp_path) as command:
        for death, wait in enumerate(("now", "in 0.5 s", "in 1 s"), 1):
            command.kill(2)
            command.wait_for(f"Restarting broker 2 {wait}")
            command.wait_for("Broker 2 ready", times=1 + death)
        command.kill(2)
        command.wait_for("Restarting broker 2 in 2 s")
        began = time.monotonic()
        # Stopping does not wait for the restart delay.
        assert command.stop() == 0
        assert time.monotonic() - began < 1.5


def test_brokers_stop_cleanly_when_their_parent_is_killed(tmp_path: Path) -> None:
    with Command(tmp_path, 3) as command:
        create_topic(command)
        load = fill(command)
        pids = command.processes()
        os.kill(command.pid, signal.SIGKILL)
        command.wait()
        wait_gone(pids, 5)
        assert command.is_clean
        assert "Traceback" not in command.said
        assert "registering broker" not in command.said
        command.start()
        assert_holds(command, load)


def test_a_paused_process_loses_leadership_and_rejoins(tmp_path: Path) -> None:
    settings = {"zookeeper.session.timeout.ms": str(_SESSION_MS)}
    with Command(tmp_path, 3, settings) as command:
        create_topic(command, replicas=3)
        load = fill(command)
        stopped = in_sync(command)[0][0]
        others = {1, 2, 3} - {stopped}
        pid = command.pid_of(stopped)
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        try:
            command.wait_registered(others)
            assert _SESSION_MS / 1000 - 1 < time.monotonic() - began < 10
        finally:
            os.kill(pid, signal.SIGCONT)
        command.wait_for(rf"broker {stopped}: The metadata session expired")
        command.wait_registered({1, 2, 3})
        assert command.pid_of(stopped) == pid
        wait_until(lambda: all_in_sync(command, 3), 30, "all replicas in sync", 0.1)
        assert_holds(command, load)


@pytest.mark.skipif(not campaign.enabled(), reason="waits for a timeout: with --campaign")
def test_a_process_that_does_not_stop_is_killed_and_logged(tmp_path: Path) -> None:
    with Command(tmp_path) as command:
        pids = command.processes()
        os.kill(command.pid_of(2), signal.SIGSTOP)
        assert command.stop() == 1
        wait_gone(pids, 1)
        assert "Broker 2 did not stop in time and was killed" in command.said
        assert (tmp_path / "data" / "broker-1" / ".kafka_cleanshutdown").exists()
        assert not (tmp_path / "data" / "broker-2" / ".kafka_cleanshutdown").exists()


@pytest.mark.timeout(1800)
def test_killing_single_processes_does_not_lose_acknowledged_records(tmp_path: Path) -> None:
    """A process is killed as soon as the previously killed one is ready, whether or not its replicas are in
    sync.
    """
    chance = random.Random(7)
    settings = {"min.insync.replicas": "1"}
    kills: list[tuple[int, int]] = []
    with Command(tmp_path, 3, settings) as command, ExitStack() as stack:
        create_topic(command)
        producers = [_producer(client, command, tmp_path) for client in _CLIENTS]
        for producer in producers:
            stack.callback(producer.kill)
        _wait_acknowledged(producers)
        deaths = {broker_id: 0 for broker_id in (1, 2, 3)}
        for _ in range(_KILLS):
            time.sleep(chance.uniform(0, 0.5))  # the kill comes at a random moment of the load
            killed = chance.choice(sorted(deaths))
            deaths[killed] += 1
            began_ms = now_ms()
            command.kill(killed)
            _wait_acknowledged(producers)
            kills.append((began_ms, now_ms()))
            command.wait_for(rf"Broker {killed} ready", times=1 + deaths[killed])
        for producer in producers:
            producer.stop()
        found = {producer.client: producer.outcomes() for producer in producers}
        acknowledged = {client: items for client, (items, _) in found.items()}
        log = read_everything(command.bootstrap_servers, TOPIC)
        findings = evidence.check(log, acknowledged)
        for client, items in acknowledged.items():
            gaps_s = sorted(evidence.longest_gap_s(items, *kill) for kill in kills)
            usual, worst = gaps_s[len(gaps_s) // 2], gaps_s[-1]
            print(
                f"{client}: {len(items)} acknowledged over {len(kills)} kills; longest time without an "
                f"acknowledgement of one partition {usual:.2f} s as a rule, {worst:.2f} s at most"
            )
        print(f"{len(log)} records stored, {findings}")
        assert findings.nothing, findings
        assert not any(given_up for _, given_up in found.values()), found
        assert min(map(len, acknowledged.values())) > 20 * _KILLS
        wait_until(lambda: all_in_sync(command), 60, "all replicas in sync at the end", 0.1)
        assert command.stop() == 0


def _producer(client: str, command: Command, directory: Path) -> Producer:
    return Producer(
        client,
        command.bootstrap_servers,
        TOPIC,
        PARTITIONS,
        pause_ms=5,
        request_timeout_ms=5000,
        directory=directory,
    )


def _wait_acknowledged(producers: Sequence[Producer]) -> None:
    """Wait until every client has received a new acknowledgement for every partition."""
    since_ms = now_ms()
    for producer in producers:
        acknowledged = partial(producer.acknowledged_since, since_ms)
        wait_until(acknowledged, 60, f"acknowledgements for {producer.client}")


def test_brokers_register_in_zookeeper_and_hand_over_leadership(tmp_path: Path) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    zookeeper.start()
    settings = {
        "zookeeper.connect": f"{zookeeper.address}/cluster",
        "zookeeper.session.timeout.ms": str(_SESSION_MS),
        "broker.id": "4",
        "offsets.topic.replication.factor": "2",
        "controlled.shutdown.retry.backoff.ms": "200",
    }
    try:
        with Command(tmp_path, 3, settings) as command:
            command.wait_registered({4, 5, 6})
            assert not list((tmp_path / "data").glob("*.journal"))
            create_topic(command)
            assert leaders(command) == {4, 5, 6}
            load = fill(command)
            command.kill(5)
            # The broker is ready once ZooKeeper expires the session of its previous process.
            command.wait_for("Broker 5 ready", times=2)
            wait_until(lambda: all_in_sync(command), 30, "all replicas in sync", 0.1)
            assert_holds(command, load)
            pids = command.processes()
            assert command.stop() == 0
            wait_gone(pids, 1)
            assert command.is_clean
    finally:
        zookeeper.stop()


def _create_topic_with_a_failed_replica(command: Command, directory: Path, settings: dict[str, str]) -> None:
    """Create a topic with a replica on a third broker, and kill this broker. When the others stop, they wait
    for it, since it might become leader.
    """
    third = KafkaCompatBroker(directory / "third", {**settings, "broker.id": "9", "broker.rack": "third"})
    third.start()
    create_topic(command, replicas=3)
    third.kill()
    wait_until(lambda: 9 not in leaders(command), 30, "leaders on the other brokers", 0.1)


def test_a_second_signal_ends_the_wait_for_new_leaders(tmp_path: Path) -> None:
    """The last broker requests new leaders three times, 5 s apart."""
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    zookeeper.start()
    settings = {
        "zookeeper.connect": f"{zookeeper.address}/cluster",
        "zookeeper.session.timeout.ms": str(_SESSION_MS),
        "broker.id": "1",
    }
    try:
        with Command(tmp_path, 2, settings) as command:
            _create_topic_with_a_failed_replica(command, tmp_path, settings)
            command.interrupt()
            command.wait_for("Controlled shutdown is incomplete")
            began = time.monotonic()
            command.interrupt()
            assert command.wait() == 0
            assert time.monotonic() - began < 4
            assert command.is_clean
    finally:
        zookeeper.stop()


def test_a_signal_to_the_whole_process_group_counts_as_one_signal(tmp_path: Path) -> None:
    """Service managers send signals this way. The last broker must request new leaders as often as after a
    single signal.
    """
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    zookeeper.start()
    settings = {
        "zookeeper.connect": f"{zookeeper.address}/cluster",
        "zookeeper.session.timeout.ms": str(_SESSION_MS),
        "broker.id": "1",
        "controlled.shutdown.retry.backoff.ms": "300",
    }
    try:
        with Command(tmp_path, 2, settings) as command:
            _create_topic_with_a_failed_replica(command, tmp_path, settings)
            for pid in (*command.processes(), command.pid):
                os.kill(pid, signal.SIGTERM)
            assert command.wait() == 0
            tries = re.findall("Controlled shutdown is incomplete|no controller responded", command.said)
            assert len(tries) >= 3, command.said
            assert command.is_clean
    finally:
        zookeeper.stop()


def test_orphaned_brokers_with_zookeeper_hand_over_leadership(tmp_path: Path) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    zookeeper.start()
    settings = {
        "zookeeper.connect": f"{zookeeper.address}/cluster",
        "broker.id": "1",
        "controlled.shutdown.retry.backoff.ms": "200",
    }
    try:
        with Command(tmp_path, 2, settings) as command:
            pids = command.processes()
            os.kill(command.pid, signal.SIGKILL)
            wait_gone(pids)
            assert command.is_clean
    finally:
        zookeeper.stop()
