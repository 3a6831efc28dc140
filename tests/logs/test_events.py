"""Log messages at INFO: each event is logged once, with names and numbers."""

from __future__ import annotations

import re
from pathlib import Path

from confluent_kafka import Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.logs.reading import lines_with, make_topic, wait_for
from tests.processes.command import Command
from tests.support.process import wait_until
from tests.support.servers import Server, StartBroker

INFO = {"kafka.compat.log.level": "INFO"}


def member(server: Server, group: str = "shop") -> Consumer:
    consumer = Consumer({"bootstrap.servers": server.address, "group.id": group, "log_level": 0})
    consumer.subscribe(["orders"])
    return consumer


def join(*consumers: Consumer) -> None:
    """Poll until each consumer has a partition."""
    while not all(consumer.assignment() for consumer in consumers):
        for consumer in consumers:
            consumer.poll(0.02)


def test_the_lifecycle_of_a_topic_is_logged(start_broker: StartBroker) -> None:
    broker = start_broker(INFO)
    make_topic(broker, "orders", 3)
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    admin.create_partitions([NewPartitions("orders", 5)])["orders"].result(20)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    producer.produce("of-first-use", b"x")
    assert producer.flush(20) == 0
    broker.restart()
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    admin.delete_topics(["orders"])["orders"].result(20)
    wait_for(broker, "Deleted topic orders")
    lines = [line.split(" INFO ")[1] for line in lines_with(broker, "topic ")]
    assert lines == [
        "Created topic orders (3 partitions, 1 replica each)",
        "Added 2 partitions to topic orders (now 5)",
        "Created topic of-first-use (1 partition, 1 replica each)",
        "Deleted topic orders",
    ]
    leads = [line.split(" INFO ")[1] for line in lines_with(broker, "became leader of")]
    assert leads == [
        "Broker 1 became leader of 3 partitions: orders-0, orders-1, orders-2",
        "Broker 1 became leader of 2 partitions: orders-3, orders-4",
        "Broker 1 became leader of 1 partition: of-first-use-0",
        "Broker 1 became leader of 6 partitions: "
        "of-first-use-0, orders-0, orders-1, orders-2, orders-3, orders-4",
    ]


def test_rebalances_are_logged_with_generation_members_and_reason(start_broker: StartBroker) -> None:
    broker = start_broker(INFO)
    make_topic(broker, "orders", 2)
    first = member(broker)
    join(first)
    second = member(broker)
    join(first, second)
    wait_for(broker, "members: 2")
    second.close()
    while len(first.assignment()) < 2:
        first.poll(0.02)
    first.close()
    wait_for(broker, "became empty")
    told = [line.split("Group shop: ")[1] for line in lines_with(broker, "Group shop: ")]
    reasons = [line for line in told if line.startswith("preparing")]
    assert len(reasons) == len(told) - len(reasons), "each generation logs its reason and its result"
    assert reasons[0].startswith(
        "preparing to rebalance in state Empty with generation 0: adding new member "
    )
    assert any("adding new member" in line and "generation 1" in line for line in reasons)
    assert any(re.search(r"member rdkafka-\S+ left", line) for line in reasons)
    assert [line for line in told if "members: 2" in line] == [
        "formed generation 2 (members: 2, protocol range)"
    ]
    assert told[-1] == "became empty in generation 4"


def test_the_steps_of_a_shutdown_are_logged(start_broker: StartBroker) -> None:
    broker = start_broker(INFO)
    make_topic(broker, "orders", 3)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    producer.produce("orders", b"x")
    assert producer.flush(20) == 0
    assert broker.stop() == 0
    lines = [line.split(" INFO ")[1] for line in lines_with(broker, " INFO Broker 1 ") if "stop" in line]
    told = [re.sub(r"\d+ ms", "N ms", line) for line in lines]
    closed = told.pop(2)
    assert told == [
        "Broker 1 is stopping",
        "Broker 1 is stopping: stopped accepting connections (N ms)",
        "Broker 1 is stopping: closed 3 logs (N ms)",
        "Broker 1 stopped (N ms)",
    ]
    assert re.fullmatch(
        r"Broker 1 is stopping: ended background tasks, closed [1-9]\d* connections? \(N ms\)", closed
    )
    steps = [
        int(took) for line in lines_with(broker, "is stopping: ") for took in re.findall(r"(\d+) ms", line)
    ]
    [whole] = re.findall(r"Broker 1 stopped \((\d+) ms", broker.log.read_text())
    assert sum(steps) == int(whole)


def test_leadership_changes_of_many_partitions_are_logged_in_one_line(tmp_path: Path) -> None:
    """In a cluster, one broker logs each change, in one line even for 60 partitions."""
    with Command(tmp_path, 3, arguments=["--verbose"]) as command:

        def led(how: str) -> int:
            found = re.findall(rf"Broker \d {how} leader of (\d+) partitions?: orders-", command.said)
            return sum(map(int, found))

        def wait_led(how: str, count: int) -> None:
            wait_until(lambda: led(how) >= count, 30, f"{how} leader of {count} partitions", 0.05)
            assert led(how) == count

        admin = AdminClient({"bootstrap.servers": command.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("orders", 60, 3)])["orders"].result(30)
        wait_led("became", 60)
        assert len(re.findall(r"became leader of 20 partitions: orders-", command.said)) == 3
        assert re.search(
            r"became leader of 20 partitions: (orders-\d+, ){9}orders-\d+ and 10 others\n", command.said
        )
        command.kill(2)
        command.wait_for("Broker 2 ready", 2)
        wait_led("became", 80)
        wait_until(lambda: all_in_sync(admin), 30, "all replicas in sync", 0.05)
        back = [TopicPartition("orders", index) for index in range(60)]
        admin.elect_leaders(ElectionType.PREFERRED, back).result(30)
        wait_led("became", 100)
        wait_led("is no longer", 20)
        admin.delete_topics(["orders"])["orders"].result(30)
        command.wait_for("Deleted topic orders")
        command.stop()
        assert command.said.count("Created topic orders (60 partitions, 3 replicas each)") == 1
        assert command.said.count("Deleted topic orders") == 1
        assert led("is no longer") == 20, "deletion is not logged as lost leadership"


def all_in_sync(admin: AdminClient) -> bool:
    partitions = admin.list_topics("orders", timeout=10).topics["orders"].partitions.values()
    return all(len(partition.isrs) == 3 for partition in partitions)
