"""Metadata hashes, compared with those of Kafka's own classes."""

from __future__ import annotations

import random
from uuid import UUID

from kafka_compat.groups.consumer.metadata_hash import group_hash, topic_hash
from kafka_compat.storage.directories.checkpoints import encode_topic_id
from tests.oracle.consumer_group_oracle import ConsumerGroupOracle
from tests.support.campaign import rounds

_RACKS = (None, "", "a", "rack-1", "é", "😀x", "\ue000y", "z" * 300)


def test_hashes_match_kafkas(kafka: ConsumerGroupOracle) -> None:
    for seed in range(rounds(500, 10_000)):
        chance = random.Random(seed)
        racks = chance.choices(_RACKS, k=chance.randint(0, 6))
        topics = []
        hashes = {}
        for index in range(chance.randint(0, 5)):
            name = f"{'t' * chance.randint(1, 100)}-{index}"
            topic_id = UUID(int=chance.getrandbits(128))
            # Some replicas are on brokers that are not registered.
            partitions = [
                [chance.randrange(8) for _ in range(chance.randint(0, 3))]
                for _ in range(chance.choice((1, 3, 40)))
            ]
            topics.append({"name": name, "id": encode_topic_id(topic_id), "partitions": partitions})
            of_replicas = [
                [racks[broker] for broker in replicas if broker < len(racks)] for replicas in partitions
            ]
            known = [[rack for rack in found if rack is not None] for found in of_replicas]
            hashes[name] = topic_hash(topic_id, name, known)
        answer = kafka.ask(kind="hash", racks=racks, topics=topics)
        assert answer == {"topics": hashes, "group": group_hash(hashes)}, seed


def test_a_group_without_topics_has_the_hash_zero() -> None:
    assert group_hash({}) == 0


def test_the_hash_of_a_group_depends_on_the_order_of_names_only() -> None:
    assert group_hash({"a": 1, "b": 2}) == group_hash({"b": 2, "a": 1}) != group_hash({"a": 2, "b": 1})


def test_the_order_of_replicas_has_no_influence() -> None:
    topic_id = UUID(int=7)
    assert topic_hash(topic_id, "t", [["b", "a"]]) == topic_hash(topic_id, "t", [["a", "b"]])
    assert topic_hash(topic_id, "t", [["a"]]) != topic_hash(topic_id, "t", [["a", "a"]])
