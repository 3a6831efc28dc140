"""A single-threaded consumer of assigned partitions. It tracks positions, and fetches from the leaders."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.connection_settings import whole_number
from kafka_compat.client.consumed import Consumed, consumed
from kafka_compat.client.leaders import EARLIEST, LATEST, by_leader, list_offsets
from kafka_compat.client.partitions import PASSING, TopicPartition, check, each_partition
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey

_CALL: Final = "fetch"
_BACKOFF_S: Final = 0.1
_PASSING: Final = PASSING | {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}


class NoOffset(Exception):
    """Raised if a partition has no position, and auto.offset.reset is none."""


class FetchSettings(NamedTuple):
    """The Java consumer's settings that this consumer supports."""

    read_committed: bool = False
    reset: int | None = LATEST
    """Position that auto.offset.reset selects, or None for `none`."""
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    rack_id: str = ""
    allow_auto_create: bool = True
    metadata_max_age_s: float = 300.0


def fetch_settings(given: Mapping[str, str]) -> FetchSettings:
    """Convert a Java consumer's settings. Raises ValueError, naming the setting, if a value is invalid."""
    number = partial(whole_number, given)
    reset = given.get("auto.offset.reset", "latest").lower()
    resets = {"latest": LATEST, "earliest": EARLIEST, "none": None}
    if reset not in resets:
        raise ValueError(
            f"Invalid value {reset} for configuration auto.offset.reset: String must be one of: latest, "
            "earliest, none"
        )
    isolation = given.get("isolation.level", "read_uncommitted")
    if isolation not in ("read_committed", "read_uncommitted"):
        raise ValueError(
            f"Invalid value {isolation} for configuration isolation.level: String must be one of: "
            "read_committed, read_uncommitted"
        )
    return FetchSettings(
        read_committed=isolation == "read_committed",
        reset=resets[reset],
        max_wait_ms=number("fetch.max.wait.ms", 500),
        min_bytes=number("fetch.min.bytes", 1),
        max_bytes=number("fetch.max.bytes", 50 * 1024 * 1024),
        partition_max_bytes=number("max.partition.fetch.bytes", 1024 * 1024),
        rack_id=given.get("client.rack", ""),
        allow_auto_create=given.get("allow.auto.create.topics", "true").lower() == "true",
        metadata_max_age_s=number("metadata.max.age.ms", 300_000) / 1000,
    )


class Fetcher:
    """A consumer that fetches and buffers the records of assigned partitions."""

    def __init__(self, cluster: Cluster, settings: FetchSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._positions: dict[TopicPartition, int] = {}
        self._unknown: dict[TopicPartition, int | None] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, Any] = {}
        self._records: deque[Consumed] = deque()
        self._learned_s = float("-inf")

    def assign(self, positions: Mapping[TopicPartition, int | None]) -> None:
        """Assign only these partitions, each from an offset, EARLIEST, LATEST or None (auto.offset.reset)."""
        self._positions = {}
        self._unknown = {}
        self._records.clear()
        for place, position in positions.items():
            if position is not None and position >= 0:
                self._positions[place] = position
            else:
                self._unknown[place] = position
        self._learned_s = float("-inf")

    @property
    def assigned(self) -> set[TopicPartition]:
        return self._positions.keys() | self._unknown.keys()

    def consumed_to(self) -> dict[TopicPartition, int]:
        """Return, for each partition, the offset of the next record that `take` will return."""
        found = dict(self._positions)
        for record in reversed(self._records):
            found[record.topic, record.partition] = record.offset
        return found

    def take(self) -> Consumed | None:
        """Return the next record from the buffer, or None if the buffer is empty."""
        return self._records.popleft() if self._records else None

    def poll(self, wait_s: float) -> None:
        """Fetch from the leaders unless records are buffered. Raises KafkaError if a broker reports an error,
        NoOffset, StorageError if records are corrupt, and the same errors as `Cluster.ask`.
        """
        if self._records:
            return
        if not self.assigned:
            time.sleep(min(wait_s, _BACKOFF_S))
            return
        if time.monotonic() - self._learned_s > self._settings.metadata_max_age_s:
            self._learn()
        if self._unknown:
            self._find_positions()
        leaders = by_leader(self._leaders, self._positions.keys() & self._leaders.keys())
        if not leaders:
            time.sleep(min(wait_s, _BACKOFF_S))
            self._learn()
        share_ms = int(min(self._settings.max_wait_ms, wait_s * 1000) / max(len(leaders), 1))
        for node_id, topics in leaders.items():
            # If records are buffered, do not wait: brokers without data would delay these records.
            self._fetch(node_id, topics, 0 if self._records else share_ms)

    def _learn(self) -> None:
        topics = sorted({topic for topic, _ in self.assigned})
        answer = self._cluster.metadata(topics, may_create=self._settings.allow_auto_create)
        self._leaders = {}
        for topic in answer.topics:
            if topic.error_code not in _PASSING:
                check(topic.error_code)
            self._topic_ids[topic.name] = topic.topic_id
            for one in topic.partitions:
                if one.leader_id in self._cluster.nodes:
                    self._leaders[topic.name, one.partition_index] = one.leader_id
        self._learned_s = time.monotonic()

    def _find_positions(self) -> None:
        wanted = {}
        for place, position in self._unknown.items():
            if position is None and self._settings.reset is None:
                topic, number = place
                raise NoOffset(f"No committed offset and no reset policy for partitions: [{topic}-{number}]")
            if place in self._leaders:
                wanted[place] = self._settings.reset if position is None else position
        resolved = {place: when for place, when in wanted.items() if when is not None}
        found = list_offsets(self._cluster, resolved, read_committed=self._settings.read_committed)
        for place, one in found.items():
            self._positions[place] = one.offset
            del self._unknown[place]

    def _fetch(self, node_id: int, topics: Mapping[str, Iterable[int]], wait_ms: int) -> None:
        from kafka_compat.protocol.messages.fetch import FetchPartition, FetchTopic

        settings = self._settings
        asked = [
            FetchTopic(
                topic=topic,
                topic_id=self._topic_ids[topic],
                partitions=[
                    FetchPartition(
                        partition=number,
                        fetch_offset=self._positions[topic, number],
                        partition_max_bytes=settings.partition_max_bytes,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in topics.items()
        ]
        answer = self._cluster.ask_broker(
            node_id,
            ApiKey.FETCH,
            _CALL,
            max_wait_ms=wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            isolation_level=int(settings.read_committed),
            topics=asked,
            rack_id=settings.rack_id,
        )
        check(answer.error_code)
        names = {topic_id: name for name, topic_id in self._topic_ids.items()}
        has_moved = False
        for topic in answer.responses:
            for one in topic.partitions:
                has_moved |= self._take_partition(topic.topic or names[topic.topic_id], one)
        if has_moved:
            time.sleep(_BACKOFF_S)
            self._learn()

    def _take_partition(self, topic: str, answer: Any) -> bool:
        place = (topic, answer.partition_index)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._settings.reset is None:
                where = f"partition {topic}-{place[1]}"
                raise NoOffset(f"Fetch position {self._positions[place]} is out of range for {where}")
            del self._positions[place]
            self._unknown[place] = None
            return False
        if answer.error_code in _PASSING:
            return True
        check(answer.error_code)
        aborted = None
        if self._settings.read_committed:
            aborted = [(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()]
        position = self._positions[place]
        for next_offset, records in consumed(topic, place[1], answer.records or b"", position, aborted):
            self._records.extend(records)
            self._positions[place] = next_offset
        return False


_ABSENT_S: Final = 0.1


class TopicConsumer:
    """Consumer of all topics that `topics()` returns, without a group. It calls `topics()` periodically."""

    def __init__(
        self,
        cluster: Cluster,
        fetcher: Fetcher,
        topics: Callable[[], Iterable[str]],
        metadata_max_age_s: float,
    ) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._topics = topics
        self._max_age_s = metadata_max_age_s
        self._looked_s = float("-inf")

    def poll(self, wait_s: float) -> None:
        """Look for new topics if due, and fetch records. Raises the same errors as `Fetcher.poll`."""
        max_age_s = self._max_age_s if self._fetcher.assigned else _ABSENT_S
        if time.monotonic() - self._looked_s >= max_age_s:
            self._look()
        self._fetcher.poll(wait_s)

    def _look(self) -> None:
        names = list(self._topics())
        answer = self._cluster.metadata(names, "metadata") if names else None
        found = {place for place, _ in each_partition(answer.topics if answer else ())}
        if found - self._fetcher.assigned:
            known = self._fetcher.consumed_to()
            self._fetcher.assign({place: known.get(place) for place in found})
        self._looked_s = time.monotonic()

    def close(self) -> None:
        """Do nothing, because the consumer holds no resources."""
