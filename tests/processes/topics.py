"""The topic that tests with several processes fill and read."""

from __future__ import annotations

from tests.durability.load import ConfluentProducer, Load, check, read_everything
from tests.processes.command import Command
from tests.support.process import wait_until

TOPIC = "ledger"
PARTITIONS = 3


def create_topic(command: Command, name: str = TOPIC, replicas: int = 2) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": command.bootstrap_servers, "log_level": 2})
    admin.create_topics([NewTopic(name, PARTITIONS, replicas)])[name].result(30)


def in_sync(command: Command, topic: str = TOPIC) -> dict[int, tuple[int, set[int]]]:
    """Return the leader and in-sync replicas of each partition, as reported to clients."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": command.bootstrap_servers, "log_level": 2})
    found = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return {number: (item.leader, set(item.isrs)) for number, item in found.items()}


def fill(command: Command, records: int = 500) -> Load:
    """Produce `records` records that all in-sync replicas acknowledge."""
    with Load(ConfluentProducer(command.bootstrap_servers, TOPIC)) as load:
        wait_until(lambda: len(load.acknowledged) >= records, 60, "acknowledgement of the records")
        load.stop_sending()
    return load


def assert_holds(command: Command, load: Load) -> None:
    log = read_everything(command.bootstrap_servers, TOPIC)
    findings = check(log, load.acknowledged, load.sent)
    assert findings.nothing, findings
