"""Requests that go to the leaders of partitions, each broker asked for its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

from kafka_compat.client.cluster import Cluster, TimedOut
from kafka_compat.client.partitions import PASSING, TopicPartition, by_topic
from kafka_compat.errors import KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey

Result = tuple[TopicPartition, int, Any]
"""A partition, its error code, and what the answer says of it."""

_BACKOFF_S: Final = 0.1


def ask_leaders(
    cluster: Cluster,
    key: ApiKey,
    call: str,
    partitions: Collection[TopicPartition],
    request: Callable[[dict[str, list[int]]], dict[str, Any]],
    results: Callable[[Any], Iterable[Result]],
) -> dict[TopicPartition, Any]:
    """What the leader of each partition says of it; a KafkaError or TimedOut where it says none.
    `request` makes the fields of a request of partitions by topic, `results` reads the answer. Raises as
    Cluster.ask.
    """
    deadline = time.monotonic() + cluster.timeout_s
    left = list(dict.fromkeys(partitions))
    found: dict[TopicPartition, Any] = {}
    tries = 0
    while left:
        tries += 1
        again: list[TopicPartition] = []
        for node_id, mine in _by_leader(cluster, left, call, found):
            if node_id is None:
                again += mine
                continue
            answer = cluster.ask_broker(node_id, key, call, **request(by_topic(mine)))
            for partition, code, value in results(answer):
                if code in PASSING:
                    again.append(partition)
                else:
                    found[partition] = KafkaError(known_code(code)) if code else value
        left = again
        if left and time.monotonic() + _BACKOFF_S > deadline:
            now_ms = int(time.time() * 1000)
            times = f"deadlineMs={now_ms}, tries={tries}, nextAllowedTryMs={now_ms + 100}"
            text = f"Call(callName={call}, {times}) timed out at {now_ms} after {tries} attempt(s)"
            return found | dict.fromkeys(left, TimedOut(text))
        if left:
            time.sleep(_BACKOFF_S)
    return found


def without_errors(found: dict[TopicPartition, Any]) -> dict[TopicPartition, Any]:
    """What `ask_leaders` found. Raises the first error in it."""
    for answer in found.values():
        if isinstance(answer, Exception):
            raise answer
    return found


def _by_leader(
    cluster: Cluster, partitions: list[TopicPartition], call: str, found: dict[TopicPartition, Any]
) -> Iterator[tuple[int | None, list[TopicPartition]]]:
    """The partitions by the broker to ask; None for those that have none now. Those of topics that this
    client must not see, or that cannot be, are put into `found`.
    """
    answer = cluster.metadata(sorted({topic for topic, _ in partitions}), call)
    topics = {each.name: each for each in answer.topics}
    brokers: dict[int | None, list[TopicPartition]] = {}
    for topic, partition in partitions:
        told = topics[topic]
        if told.error_code and told.error_code not in PASSING:
            found[topic, partition] = KafkaError(known_code(told.error_code))
            continue
        leaders = {each.partition_index: each.leader_id for each in told.partitions}
        leader = leaders.get(partition, -1)
        brokers.setdefault(leader if leader in cluster.nodes else None, []).append((topic, partition))
    yield from brokers.items()
