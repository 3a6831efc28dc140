"""Which transactions hang: open in a partition for longer than any may be, and unknown to their
coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kafka_compat.client import transactions
from kafka_compat.client.partitions import TopicPartition
from kafka_compat.errors import ErrorCode, KafkaError, known_code

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster

Hanging = tuple[TopicPartition, transactions.ActiveProducer]
Failed = Callable[[str, Exception], NoReturn]

_AT_ONCE_MAX: Final = 500


def find_hanging(
    cluster: Cluster,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    longest_ms: int,
    failed: Failed,
) -> list[Hanging]:
    """Those of a partition, a topic, or a broker. `failed` is told what could not be found out."""
    if topic is not None and partition is not None:
        places = [(topic, partition)]
    else:
        places = _places(cluster, topic, broker_id, failed)
    candidates: list[Hanging] = []
    now_ms = int(time.time() * 1000)
    for start in range(0, len(places), _AT_ONCE_MAX):
        some = places[start : start + _AT_ONCE_MAX]
        try:
            producers = transactions.describe_producers(cluster, some, broker_id)
        except Exception as error:
            broker = "Optional.empty" if broker_id is None else f"Optional[{broker_id}]"
            failed(f"Failed to describe producers for {len(some)} partitions on broker {broker}", error)
        candidates += [
            (place, one)
            for place in some
            for one in producers[place]
            if one.start_offset >= 0 and now_ms - one.last_timestamp_ms > longest_ms
        ]
    return _without_owner(cluster, candidates, failed) if candidates else []


def _places(
    cluster: Cluster, topic: str | None, broker_id: int | None, failed: Failed
) -> list[TopicPartition]:
    names = None if topic is None else [topic]
    answer: Any = cluster.metadata(names, "describeTopics")
    for one in answer.topics:
        if one.error_code:
            error = KafkaError(known_code(one.error_code), "")
            failed(f"Failed to describe {len(answer.topics)} topics", error)
    return [
        (one.name, part.partition_index)
        for one in answer.topics
        for part in one.partitions
        if broker_id is None or broker_id in part.replica_nodes
    ]


def _without_owner(cluster: Cluster, candidates: list[Hanging], failed: Failed) -> list[Hanging]:
    """Those whose coordinator will not end them."""
    producer_ids = sorted({producer.producer_id for _, producer in candidates})
    try:
        listed = transactions.list_transactions(cluster, producer_ids=producer_ids)
    except Exception as error:
        failed(f"Failed to list transactions for {len(producer_ids)} producers", error)
    known: dict[int, transactions.Transaction | None] = {}
    for listing in listed:
        try:
            known[listing.producer_id] = transactions.describe_transaction(cluster, listing.transactional_id)
        except Exception as error:
            if isinstance(error, KafkaError) and error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                continue
            failed(f"Failed to describe {len(listed)} transactions", error)
    found = []
    for place, producer in candidates:
        owner = known.get(producer.producer_id)
        if owner is None or place not in owner.partitions:
            found.append((place, producer))
    return found
