"""Send requests to the leaders of partitions, one request per broker, and list offsets of partitions."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafka_compat.client.cluster import Cluster, TimedOut
from kafka_compat.client.partitions import PASSING, TopicPartition, by_topic, check, each_partition
from kafka_compat.errors import KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey

Result = tuple[TopicPartition, int, Any]
"""A partition, its error code, and its value from the response."""

_BACKOFF_S: Final = 0.1


def ask_leaders(
    cluster: Cluster,
    key: ApiKey,
    call: str,
    partitions: Collection[TopicPartition],
    request: Callable[[dict[str, list[int]]], dict[str, Any]],
    results: Callable[[Any], Iterable[Result]],
) -> dict[TopicPartition, Any]:
    """Send a request to the leaders of partitions. Return, for each partition, the value from its leader's
    response, or a KafkaError or TimedOut if the partition failed. `request` builds the request's fields from
    the partitions of each topic. `results` parses a response. Raises the same errors as `Cluster.ask`.
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
    """Return the values from `ask_leaders`. If any of them is an exception, raise the first exception."""
    for answer in found.values():
        if isinstance(answer, Exception):
            raise answer
    return found


def _by_leader(
    cluster: Cluster, partitions: list[TopicPartition], call: str, found: dict[TopicPartition, Any]
) -> Iterator[tuple[int | None, list[TopicPartition]]]:
    """Yield each leader's ID with its partitions, and None with the partitions without a leader. Errors for
    unauthorized and invalid topics are added to `found`.
    """
    answer = cluster.metadata(sorted({topic for topic, _ in partitions}), call)
    topics = {each.name: each for each in answer.topics}
    brokers: dict[int | None, list[TopicPartition]] = {}
    for topic, partition in partitions:
        known = topics[topic]
        if known.error_code and known.error_code not in PASSING:
            found[topic, partition] = KafkaError(known_code(known.error_code))
            continue
        leaders = {each.partition_index: each.leader_id for each in known.partitions}
        leader = leaders.get(partition, -1)
        brokers.setdefault(leader if leader in cluster.nodes else None, []).append((topic, partition))
    yield from brokers.items()


LATEST: Final = -1
EARLIEST: Final = -2


class Found(NamedTuple):
    """An offset, with the timestamp and leader epoch of its record (-1: unknown)."""

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int = -1


def partitions_of(cluster: Cluster, topics: Iterable[str], call: str) -> dict[str, list[int]]:
    """Return the topics' partitions. Raises KafkaError if one is unknown, and the errors of `Cluster.ask`."""
    names = list(topics)
    if not names:
        return {}
    found: dict[str, list[int]] = {}
    for topic in cluster.metadata(names, call).topics:
        check(topic.error_code)
        found[topic.name] = sorted(one.partition_index for one in topic.partitions)
    return found


def leaders_of(cluster: Cluster, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the ID of each partition's leader (-1: none). Raises the same errors as `partitions_of`."""
    names = sorted(topics)
    topics = cluster.metadata(names, "describeTopics").topics if names else ()
    for topic in topics:
        check(topic.error_code)
    return {place: one.leader_id for place, one in each_partition(topics)}


def by_leader(
    leaders: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
) -> dict[int, dict[str, list[int]]]:
    """Group partitions by leader and topic."""
    found: dict[int, list[TopicPartition]] = {}
    for place in sorted(partitions):
        found.setdefault(leaders[place], []).append(place)
    return {leader: by_topic(places) for leader, places in found.items()}


def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, Found]:
    """Return one offset for each partition: EARLIEST, LATEST, or the offset of the first record at or after a
    time in milliseconds. Retry while a partition has no leader. Raises KafkaError for permanent errors, and
    the same errors as `Cluster.ask`.
    """
    return without_errors(try_offsets(cluster, wanted, read_committed=read_committed))


def try_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, Any]:
    """Return offsets like `list_offsets`, but return the KafkaError or TimedOut for each partition that
    failed. Raises the same errors as `Cluster.ask`.
    """

    def request(topics: dict[str, list[int]]) -> dict[str, Any]:
        return offsets_request(topics, wanted.__getitem__, read_committed=read_committed)

    return ask_leaders(cluster, ApiKey.LIST_OFFSETS, "listOffsets", wanted, request, listed_offsets)


def offsets_request(
    topics: Mapping[str, Iterable[int]], at: Callable[[TopicPartition], int], *, read_committed: bool = False
) -> dict[str, Any]:
    """Build the fields of a ListOffsets request. `at` returns the time for a partition."""
    from kafka_compat.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

    asked = [
        ListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsPartition(partition_index=number, timestamp=at((topic, number)))
                for number in partitions
            ],
        )
        for topic, partitions in topics.items()
    ]
    return {"replica_id": -1, "isolation_level": int(read_committed), "topics": asked}


def listed_offsets(answer: Any) -> Iterator[tuple[TopicPartition, int, Found]]:
    """Yield each partition of a ListOffsets response, with its error code and offset."""
    for place, one in each_partition(answer.topics):
        offset = one.old_style_offsets[0] if one.old_style_offsets else one.offset
        yield place, one.error_code, Found(offset, one.timestamp, one.leader_epoch)
