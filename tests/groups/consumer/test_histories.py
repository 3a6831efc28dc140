"""Consumer groups behave as on Apache Kafka 4.4: the same histories lead to the same responses, states and
assignments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import zip_longest

import pytest

from tests.conformance.wire import Connection
from tests.groups.consumer.histories import (
    SETTINGS,
    Ours,
    Theirs,
    comparable,
    comparable_description,
    comparable_record,
    learn,
    steps,
)
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka

SEEDS = range(500 if campaign.enabled() else 30)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    running = GenuineKafka(directory, SETTINGS, version=NEWEST_VERSION, mode="kraft")
    running.start()
    yield running
    running.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_of_a_group_is_the_same_as_on_apache_kafka(kafka: GenuineKafka, seed: int) -> None:
    with Connection(kafka.address) as connection:
        play(connection, seed, str(seed))


def play(connection: Connection, seed: int, name: str) -> None:
    """Play a history with a new group and new topics, whose names contain `name`."""
    choose = random.Random(seed)
    topics = {f"topic-{name}-{letter}": choose.randint(1, 7) for letter in "abc"[: choose.randint(1, 3)]}
    group = f"group-{name}"
    theirs = Theirs(connection, group)
    theirs.wait_ready()
    ids = theirs.create(topics)
    ours = Ours(group, topics, ids)
    told: list[str] = []
    for what, member, request in steps(seed, list(topics)):
        expected, found = theirs.heartbeat(request), ours.heartbeat(request)
        told.append(f"{what} {request} -> {comparable(expected)}")
        assert comparable(found) == comparable(expected), "\n".join(told)
        learn(member, what, expected)
        expected_group = comparable_description(theirs.describe())
        assert comparable_description(ours.describe()) == expected_group, "\n".join(told)
        if member.assigned and choose.random() < 0.3:
            names = {str(topic_id): name for name, topic_id in ids.items()}
            topic = choose.choice(member.assigned)
            partitions = [(names[str(topic["topic_id"])], each) for each in topic["partitions"]]
            epoch = member.epoch + choose.choice((0, 0, -1, -2, 1))
            arguments = (member.member_id, epoch, partitions)
            told.append(f"commit {arguments}")
            assert ours.commit(*arguments) == theirs.commit(*arguments), "\n".join(told)
    our_records = list(map(comparable_record, ours.records()))
    their_records = list(map(comparable_record, theirs.records()))
    for number, (mine, kafkas) in enumerate(zip_longest(our_records, their_records)):
        assert mine == kafkas, "\n".join((*told, f"record {number}: {mine}", f"not {kafkas}"))
