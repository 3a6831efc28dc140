"""A cluster has the same topic descriptions and the same nodes, including their data, as Apache Kafka 3.9.1
after each change to brokers and topics.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.pair import Pair, Side, running
from tests.cluster.requests import (
    bad_admin_requests,
    compare_answers,
    during_a_reassignment,
    elections_without_candidates,
    stale_requests,
)

EVERYONE = [1, 2, 3]


def create(pair: Pair) -> None:
    def step(side: Side) -> None:
        assignment = ("--replica-assignment", "1:2:3,2:3:1,3:1:2")
        side.run("kafka-topics", "--create", "--topic", "t", *assignment, "--config", "retention.ms=7200000")
        side.run("kafka-topics", "--create", "--topic", "moved", "--replica-assignment", "1:2,2:1")
        side.run("kafka-topics", "--create", "--topic", "pair", "--replica-assignment", "1:2")
        side.run("kafka-topics", "--create", "--topic", "single", "--replica-assignment", "2")
        side.run("kafka-console-producer", "--topic", "t", stdin="one\ntwo\n")

    pair.both(step)
    pair.compare("create")


def ask_what_is_refused(pair: Pair) -> None:
    for asks in (bad_admin_requests, stale_requests):
        compare_answers(pair, [asks(side) for side in pair.sides])
        pair.compare(asks.__name__)


def kill_and_return(pair: Pair) -> None:
    pair.both(lambda side: side.brokers[2].kill())
    pair.until(lambda side: side.partition("t", 1) == (3, [3, 1]), "a new leader")
    pair.compare("kill -9")
    compare_answers(pair, [elections_without_candidates(side) for side in pair.sides])
    pair.compare("elections without candidates")
    come_back(pair, 2)
    pair.compare("restart of the killed broker")


def elect_preferred(pair: Pair) -> None:
    arguments = ("--election-type", "preferred", "--all-topic-partitions")
    pair.both(lambda side: side.run("kafka-leader-election", *arguments))
    pair.until(lambda side: side.partition("t", 1)[0] == 2, "the preferred leader")
    pair.compare("preferred election")


def reassign(pair: Pair) -> None:
    file = plan(pair, {("moved", 0): [3, 2], ("moved", 1): [3, 1, 2]})
    pair.both(lambda side: side.reassign(file, "--execute"))
    pair.until(lambda side: in_sync(side, "moved", [2, 3], 0), "reassignment of the first partition")
    pair.until(lambda side: in_sync(side, "moved", EVERYONE, 1), "reassignment of the second partition")
    pair.compare("reassignment")
    ours, genuine = pair.both(lambda side: side.reassign(file, "--verify"))
    assert ours == genuine
    pair.compare("verification of the reassignment")


def cancel_a_reassignment(pair: Pair) -> None:
    """The new replica's broker is killed. It remains registered until its session expires, and never catches
    up.
    """
    file = plan(pair, {("pair", 0): [3, 2]})
    pair.both(lambda side: side.brokers[3].kill())
    pair.both(lambda side: side.reassign(file, "--execute"))
    pair.until(lambda side: side.node("/brokers/ids/3") is None, "the end of broker 3's session")
    pair.compare("a reassignment to a dead broker")
    compare_answers(pair, [during_a_reassignment(side) for side in pair.sides])
    listed = pair.both(lambda side: side.run("kafka-reassign-partitions", "--list").out)
    assert listed[0] == listed[1]
    # Without --preserve-throttles, the tool would wait for the dead broker while it changes that broker's
    # settings.
    cancelled = pair.both(lambda side: side.reassign(file, "--cancel", "--preserve-throttles"))
    assert cancelled[0] == cancelled[1]
    pair.compare("cancellation of the reassignment")
    come_back(pair, 3)
    pair.compare("restart after the cancellation")


def controlled_shutdown(pair: Pair) -> None:
    pair.both(lambda side: side.brokers[2].stop())
    pair.compare("controlled shutdown")
    come_back(pair, 2)
    pair.compare("restart after a controlled shutdown")


def configure(pair: Pair) -> None:
    def alter(side: Side) -> None:
        side.run("kafka-configs", "--alter", "--topic", "t", "--add-config", "max.message.bytes=2000000")
        side.run("kafka-configs", "--alter", "--topic", "t", "--delete-config", "retention.ms")
        side.run("kafka-configs", "--alter", "--broker", "2", "--add-config", "log.cleaner.threads=2")
        side.run("kafka-configs", "--alter", "--broker-defaults", "--add-config", "log.retention.ms=3600000")

    pair.both(alter)
    pair.compare("changed settings")


def add_partitions(pair: Pair) -> None:
    assignment = ("--partitions", "4", "--replica-assignment", "1:2:3,2:3:1,3:1:2,1:3:2")
    pair.both(lambda side: side.run("kafka-topics", "--alter", "--topic", "t", *assignment))
    pair.until(lambda side: in_sync(side, "t", EVERYONE, 3), "the new partition")
    pair.compare("added partition")


def delete(pair: Pair) -> None:
    pair.both(lambda side: side.run("kafka-topics", "--delete", "--topic", "moved"))
    pair.compare("deletion")


def delete_while_a_broker_is_away(pair: Pair) -> None:
    pair.both(lambda side: side.brokers[2].stop())
    pair.both(lambda side: side.run("kafka-topics", "--delete", "--topic", "t"))
    pair.compare("deletion while a broker is away")
    pair.both(lambda side: side.brokers[2].start())
    pair.until(lambda side: not side.children("/admin/delete_topics"), "the end of the deletion")
    pair.compare("end of the deletion")


def lose_the_controller(pair: Pair) -> None:
    """Broker 2 is stopped first, so that only one broker can be elected."""
    pair.both(lambda side: side.brokers[2].stop())
    pair.both(lambda side: side.brokers[1].kill())
    pair.until(lambda side: side.partition("t") == (3, [3]), "a leader elected by a new controller")
    pair.compare("kill -9 of the controller")
    come_back(pair, 1)
    come_back(pair, 2)
    pair.compare("restart of the former controller")


def obey_what_is_written_by_hand(pair: Pair) -> None:
    """Old Kafka tools write these nodes directly. The controller executes the requests and deletes the
    nodes.
    """

    def written(path: str, payload: object = None) -> None:
        pair.both(lambda side: side.write(path, payload))
        pair.until(lambda side: not side.exists(path), f"the end of {path}")
        pair.compare(path)

    pair.both(lambda side: side.write("/brokers/topics/old", {"version": 1, "partitions": {"0": [2, 1]}}))
    pair.until(lambda side: side.partition("old") == (2, [2, 1]), "a leader")
    pair.compare("a topic created before Kafka 2.8")
    one = {"topic": "old", "partition": 0}
    written("/admin/reassign_partitions", {"version": 1, "partitions": [{**one, "replicas": [1, 2]}]})
    written("/admin/preferred_replica_election", {"version": 1, "partitions": [one]})
    for notices, name, notice in (
        ("/log_dir_event_notification", "log_dir_event_", {"version": 1, "broker": 2, "event": 1}),
        ("/isr_change_notification", "isr_change_", {"version": 1, "partitions": [one]}),
    ):
        path = f"{notices}/{name}"
        pair.both(lambda side: side.write(path, notice, sequential=True))  # noqa: B023
        pair.until(lambda side: not side.children(notices), f"the end of {name}")  # noqa: B023
        pair.compare(path)
    written("/admin/delete_topics/nowhere")
    written("/admin/delete_topics/old")


def generate_a_broker_id(pair: Pair) -> None:
    pair.both(lambda side: side.add_broker(1001, configured_id=-1).start())
    pair.compare("a broker without broker.id")
    pair.both(lambda side: side.brokers[1001].stop())
    pair.compare("shutdown of the broker without broker.id")


EVERYDAY = (create, ask_what_is_refused, kill_and_return, elect_preferred, reassign, controlled_shutdown)
CAMPAIGN = (
    obey_what_is_written_by_hand,
    cancel_a_reassignment,
    configure,
    add_partitions,
    lose_the_controller,
    delete,
    delete_while_a_broker_is_away,
    generate_a_broker_id,
)
STEPS = EVERYDAY + CAMPAIGN


def test_a_topic_is_created_changed_and_deleted_as_in_apache_kafka(tmp_path: Path, campaign: bool) -> None:
    with running(tmp_path) as pair:
        pair.compare("startup")
        for step in STEPS if campaign else EVERYDAY:
            step(pair)


def come_back(pair: Pair, broker_id: int) -> None:
    """Restart the broker, and wait until all its replicas are in sync."""
    pair.both(lambda side: side.brokers[broker_id].start())
    pair.until(lambda side: side.fully_in_sync(), "all replicas in sync")


def plan(pair: Pair, targets: dict[tuple[str, int], list[int]]) -> str:
    """Write a file for kafka-reassign-partitions."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": replicas}
        for (topic, index), replicas in targets.items()
    ]
    file = pair.directory / f"plan-{len(list(pair.directory.glob('plan-*')))}.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(file)


def in_sync(side: Side, topic: str, brokers: list[int], partition: int) -> bool:
    return sorted(side.partition(topic, partition)[1]) == brokers
