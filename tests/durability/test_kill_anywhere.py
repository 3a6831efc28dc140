"""kill -9 at random moments, while clients create, grow, fill and delete topics, change settings, delete
records, commit offsets, compact and move logs, and share flushes.

After each restart, topics, settings, offsets and log start offsets must match what was acknowledged.

The campaign, 1,500 kills of one broker and 500 of three, is split into parts, so that `-n 2` uses both cores.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.durability.operations import (
    Client,
    DeletedRecords,
    FlushedRecords,
    LatestByKey,
    Moves,
    Operations,
    Positions,
    Records,
    Settings,
    Topics,
    Unreplicated,
)
from tests.support import campaign
from tests.support.ports import adjacent_ports
from tests.support.servers import KafkaCompatBroker

_LONGEST_RUN_S = 0.5
_LONGEST_START_S = 0.2
_SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.segment.delete.delay.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "50",
    "offsets.topic.num.partitions": "3",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(campaign.rounds(1, 6)))
def test_all_acknowledged_operations_survive_kills(part: int, tmp_path: Path) -> None:
    directories = [str(tmp_path / "first"), str(tmp_path / "second")]
    broker = KafkaCompatBroker(tmp_path / "broker", {**_SETTINGS, "log.dirs": ",".join(directories)})
    address = broker.address
    operations: list[Operations] = [
        Topics(address, 1 + 100 * part),
        Settings(address, 2 + 100 * part),
        Records(address, 3 + 100 * part),
        FlushedRecords(address, 4 + 100 * part),
        DeletedRecords(address, 5 + 100 * part),
        Moves(address, 6 + 100 * part, directories),
        LatestByKey(address, 7 + 100 * part),
        Positions(address, 8 + 100 * part),
    ]
    _kill_again_and_again(broker, operations, campaign.rounds(12, 250), part)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(campaign.rounds(1, 4)))
def test_all_acknowledged_operations_survive_killing_three_brokers_at_once(part: int, tmp_path: Path) -> None:
    settings = {
        **_SETTINGS,
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "replica.lag.time.max.ms": "1000",
        "auto.leader.rebalance.enable": "false",
    }
    port = adjacent_ports(3)
    broker = KafkaCompatBroker(tmp_path / "brokers", settings, port=port, arguments=["--brokers", "3"])
    del broker.overrides["broker.id"]
    address = broker.address
    operations: list[Operations] = [
        Topics(address, 11 + 100 * part),
        Settings(address, 12 + 100 * part),
        Records(address, 13 + 100 * part),
        Unreplicated(address, 14 + 100 * part),
        DeletedRecords(address, 15 + 100 * part),
        LatestByKey(address, 16 + 100 * part),
        Positions(address, 17 + 100 * part),
    ]
    for operation in operations:
        operation.replicas = 3
    _kill_again_and_again(broker, operations, campaign.rounds(5, 125), part, patience_s=30)


def _kill_again_and_again(
    broker: KafkaCompatBroker, operations: list[Operations], rounds: int, part: int, patience_s: float = 0
) -> None:
    """Kill the brokers at moments that depend on `part`. Within `patience_s`, a cluster must have propagated
    all metadata, and followers must have caught up. Slow machines get additional rounds until enough
    operations are done.
    """
    chance = random.Random(13 + part)
    broker.start()
    try:
        _ask(broker.address, operations, "prepare")
        for number in range(10 * rounds):
            if number >= rounds and _enough(operations, rounds):
                break
            threads = [operation.begin() for operation in operations]
            # The kill comes at a random moment of the operations.
            time.sleep(chance.uniform(0.02, _LONGEST_RUN_S))
            broker.kill()
            for operation, thread in zip(operations, threads, strict=True):
                thread.join(30)
                assert not thread.is_alive(), f"{operation.name} did not notice the kill"
                if operation.failure is not None:
                    raise AssertionError(f"{operation.name}, round {number}") from operation.failure
            if number % 4 == 3:
                # Kill the broker again during startup.
                broker.launch()
                # The kill comes at a random moment of startup.
                time.sleep(chance.uniform(0, _LONGEST_START_S))
                broker.kill()
            broker.start()
            _ask(broker.address, operations, "check", f", round {number}", patience_s)
    finally:
        broker.stop()
    print(f"{number} kills; operations: {', '.join(f'{item.steps} {item.name}' for item in operations)}")
    assert _enough(operations, rounds)


def _enough(operations: list[Operations], rounds: int) -> bool:
    return all(operation.steps >= rounds // 2 for operation in operations)


def _ask(
    address: str, operations: list[Operations], method: str, when: str = "", patience_s: float = 0
) -> None:
    client = Client(address)
    deadline_s = time.monotonic() + patience_s
    try:
        for operation in operations:
            while True:
                try:
                    getattr(operation, method)(client)
                    break
                except AssertionError as error:
                    if time.monotonic() > deadline_s:
                        raise AssertionError(f"{operation.name}{when}: {error}") from error
                    time.sleep(0.05)  # polling interval
    finally:
        client.close()
