"""Random operations of Kafka's tools on a mixed cluster, while the controller moves between the kinds of
brokers, lead to the same state as on Apache Kafka: the same nodes, descriptions, offsets and ACLs.

Both forms run only with `--campaign`, because they start four brokers of Apache Kafka.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.cluster.pair import Pair, Side, running
from tests.mixed.operations import Operation, Operations
from tests.support import campaign

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
    "zookeeper.session.timeout.ms": "30000",
}
GENUINE_BROKER = 3
"""The broker of Apache Kafka in our cluster. The others are ours."""
COMPARED_EVERY = 50

pytestmark = [
    pytest.mark.timeout(10_000),
    pytest.mark.skipif(not campaign.enabled(), reason="starts four brokers of Apache Kafka: with --campaign"),
]


@pytest.mark.parametrize(("count", "seed"), [(50, 1), (1000, 2)])
def test_random_operations_lead_to_the_same_state_as_on_apache_kafka(
    tmp_path: Path, count: int, seed: int
) -> None:
    operations = Operations(seed)
    began = time.monotonic()
    with running(tmp_path, SETTINGS, genuine=[GENUINE_BROKER]) as pair:
        # The placement of this topic would be random.
        create = ("--create", "--topic", "__consumer_offsets", "--replica-assignment", "1:2:3,2:3:1")
        pair.both(lambda side: side.run("kafka-topics", *create, "--config", "cleanup.policy=compact"))
        for number in range(1, count + 1):
            operation = operations.next()
            try:
                _perform(pair, operation)
            except AssertionError as error:
                raise AssertionError(f"operation {number}: {operation}") from error
            if number % COMPARED_EVERY == 0 or number == count:
                pair.compare(f"operation {number}: {operation}")
        ours, genuine = pair.both(_described)
        assert ours == genuine
    print(f"{count} operations in {time.monotonic() - began:.0f} s")


def _perform(pair: Pair, operation: Operation) -> None:
    if operation.tool == "controller":
        pair.both(lambda side: side.elect(int(operation.arguments[0])))
    elif operation.plan:
        key = "offset" if operation.tool == "kafka-delete-records" else "replicas"
        partitions = [
            {"topic": topic, "partition": index, key: values if key == "replicas" else values[0]}
            for (topic, index), values in operation.plan.items()
        ]
        file = pair.directory / "plan.json"
        file.write_text(json.dumps({"version": 1, "partitions": partitions}))
        flag = "--offset-json-file" if key == "offset" else "--reassignment-json-file"
        pair.both(lambda side: side.run(operation.tool, flag, str(file), *operation.arguments))
    else:
        pair.both(lambda side: side.run(operation.tool, *operation.arguments, stdin=operation.stdin))
    # The next operation begins when this one is complete, so that their effects have one order.
    pair.until(_is_settled, f"the end of {operation}", 120)


def _is_settled(side: Side) -> bool:
    if side.children("/admin/delete_topics") or not side.fully_in_sync():
        return False
    for topic in side.children("/brokers/topics"):
        state = json.loads(side.node(f"/brokers/topics/{topic}") or b"{}")
        if state.get("adding_replicas") or state.get("removing_replicas"):
            return False
    return True


def _described(side: Side) -> list[str]:
    lines = []
    for tool, *arguments in (
        ("kafka-get-offsets",),
        ("kafka-consumer-groups", "--describe", "--all-groups", "--offsets"),
        ("kafka-acls", "--list"),
        ("kafka-configs", "--describe", "--entity-type", "users"),
        ("kafka-configs", "--describe", "--entity-type", "clients"),
    ):
        lines += sorted(side.run(tool, *arguments).out.splitlines())
    return lines
