"""Repeated kill -9 of the broker under idempotent acks=all load.

Every acknowledged record must exist exactly once at its acknowledged offset, and all other records must be
ones that were sent.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.durability.load import (
    PARTITIONS,
    ConfluentProducer,
    Findings,
    KafkaPythonProducer,
    Load,
    Producer,
    check,
    read_everything,
    value_of,
)
from tests.support import campaign
from tests.support.servers import KafkaCompatBroker, Server

_TOPIC = "ledger"
_LONGEST_RUN_S = 0.3
_LONGEST_START_S = 0.2
_SMALL_SEGMENTS = {"log.segment.bytes": "262144", "num.partitions": str(PARTITIONS)}
"""Segments fill within a few rounds, so kills also interrupt rolls, and old segments exist."""


@pytest.fixture
def killed_broker(tmp_path: Path) -> Iterator[KafkaCompatBroker]:
    server = KafkaCompatBroker(tmp_path / "broker", _SMALL_SEGMENTS)
    server.start()
    yield server
    server.stop()


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("producer", [ConfluentProducer, KafkaPythonProducer])
def test_acknowledged_records_are_stored_exactly_once_despite_kills(
    killed_broker: KafkaCompatBroker,
    producer: Callable[[str, str], Producer],
    record_property: Callable[[str, object], None],
) -> None:
    rounds = campaign.rounds(12, 200)
    _create_topic(killed_broker.address)
    with Load(producer(killed_broker.address, _TOPIC)) as load:
        _kill_again_and_again(killed_broker, load, rounds, random.Random(producer.__name__))
        load.stop_sending()
    log = read_everything(killed_broker.address, _TOPIC)
    findings = check(log, load.acknowledged, load.sent)
    record_property("rounds", rounds)
    print(f"{rounds} rounds, {len(load.acknowledged)} of {load.sent} records acknowledged, {len(log)} stored")
    assert findings.nothing, findings
    assert len(load.acknowledged) > rounds * 10


def _kill_again_and_again(server: Server, load: Load, rounds: int, chance: random.Random) -> None:
    """Kill the broker while records are in flight. In every fourth round, kill it again during startup."""
    for number in range(rounds):
        load.wait_for_acknowledgement()
        time.sleep(chance.uniform(0, _LONGEST_RUN_S))  # the kill comes at a random moment of the load
        server.kill()
        if number % 4 == 3:
            server.launch()
            time.sleep(chance.uniform(0, _LONGEST_START_S))  # the kill comes at a random moment of startup
            server.kill()
        server.start()


def test_the_check_finds_every_kind_of_damage() -> None:
    log = {(number % PARTITIONS, number // PARTITIONS): value_of(number) for number in range(9)}
    acknowledged = {number: place for place, value in log.items() for number in [int(value.split(b":")[0])]}
    assert check(log, acknowledged, 9).nothing
    assert check({p: v for p, v in log.items() if p != (2, 2)}, acknowledged, 9) == Findings(lost=[8])
    assert check(log | {(2, 3): value_of(8)}, acknowledged, 9) == Findings(duplicated=[8])
    assert check(log | {(2, 3): b"10:stranger"}, acknowledged, 9) == Findings(phantom=[(2, 3)])
    assert check(log | {(2, 4): value_of(9)}, acknowledged, 10) == Findings(gaps=[(2, 3)])
    swapped = log | {(0, 0): value_of(1), (1, 0): value_of(0)}
    assert check(swapped, acknowledged, 9) == Findings(moved=[0, 1])


def _create_topic(address: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    admin.create_topics([NewTopic(_TOPIC, PARTITIONS, 1)])[_TOPIC].result(30)
