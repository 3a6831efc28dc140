"""Kafka's own exactly-once copier, of two versions, over a kill -9 of the broker."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import StartBroker
from tests.support import campaign, java
from tests.transactions.programs import PATIENCE_S, create_topic, read_all, transactional_producer, write

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
RECORDS = 10_000


@pytest.mark.parametrize("version", ["3.9.1", "4.1.0"] if campaign.enabled() else ["4.1.0"])
def test_the_copier_with_random_aborts(start_broker: StartBroker, version: str) -> None:
    broker = start_broker({"kafka.compat.transaction.version": "2"})
    address = broker.address
    for topic in ("source", "target"):
        create_topic(address, topic)
    feeder = transactional_producer(address, "feeder")
    feeder.begin_transaction()
    write(feeder, "source", range(RECORDS))
    feeder.commit_transaction(PATIENCE_S)
    arguments = {
        "--broker-list": address,
        "--input-topic": "source",
        "--input-partition": "0",
        "--output-topic": "target",
        "--consumer-group": "group",
        "--transactional-id": "copier",
        "--transaction-size": "10",
        "--max-messages": str(RECORDS),
    }
    line = java.command(
        COPIER,
        *[part for pair in arguments.items() for part in pair],
        "--enable-random-aborts",
        version=version,
        jvm_options=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
    )
    copier = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert copier.stdout is not None
        # It tells its progress, the first time as soon as it has records.
        assert next(told for told in copier.stdout if "ProcessLoop" in told)
        broker.kill()
        assert copier.poll() is None, "the kill comes in the middle"
        broker.start()
        _, errors = copier.communicate(timeout=90)
        assert copier.returncode == 0, errors[-2000:]
    finally:
        copier.kill()
    # Without keys the order is kept too; an aborted transaction is copied again from its first record.
    assert read_all(address, "target") == [str(number) for number in range(RECORDS)]
    assert len(read_all(address, "target", "read_uncommitted")) > RECORDS
