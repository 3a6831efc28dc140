"""The share-partitions and share sessions of one broker (KIP-932).

A share-partition is created by the first fetch of a group from a partition that this broker leads, and reads
its state from the share coordinator. It is forgotten when this broker is no longer leader, when the topic is
deleted, when the share coordinator rejects its state epoch or leader epoch, and when a connection closes and
no member of the group has a session. The next fetch creates it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from kafka_compat.config.auto_offset_reset import EARLIEST, LATEST
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import AT_ONCE
from kafka_compat.metadata.features import SHARE_VERSION
from kafka_compat.share_coordinator.persister import SharePartitionKey
from kafka_compat.share_partitions.changes import Acknowledgement, Limits
from kafka_compat.share_partitions.counts import ShareCounts
from kafka_compat.share_partitions.delayed_share_fetch import (
    DelayedShareFetch,
    FetchedPartition,
    Results,
    ShareFetchParams,
)
from kafka_compat.share_partitions.led_share_partition import DeadLetterQueue, Done, LedSharePartition
from kafka_compat.share_partitions.share_session import SessionKey, ShareSession, ShareSessions
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.config.group import ShareGroupConfig
    from kafka_compat.coordinator_runtime.scheduler import Scheduler
    from kafka_compat.long_work import LongWork, Steps
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.replication.partition import Partition
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.share_coordinator.persister import Persister
    from kafka_compat.share_partitions.share_session import TopicIdPartition

_DEAD_LETTERS_LEVEL: Final = 2
"""First level of share.version with dead letter queues."""

Kind = TypeVar("Kind", str, tuple[str, int])


class SharePartitionManager:
    """All share-partitions that this broker leads, and the share sessions of its clients."""

    def __init__(
        self,
        *,
        persister: Persister,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        scheduler: Scheduler,
        long_work: LongWork,
        settings: Callable[[str], ShareGroupConfig],
        now_ms: Callable[[], int],
        dead_letters: DeadLetterQueue | None = None,
        counts: ShareCounts | None = None,
    ) -> None:
        """`now_ms` is the wall clock, for `by_duration`."""
        self.counts = ShareCounts() if counts is None else counts
        self.persister = persister
        self.scheduler = scheduler
        self.dead_letters = dead_letters
        self.sessions = ShareSessions()
        self.settings = settings
        self._replicas = replicas
        self._metadata = metadata
        self._long_work = long_work
        self._now_ms = now_ms
        self._led: dict[SharePartitionKey, LedSharePartition] = {}
        self._of_group: dict[str, dict[SharePartitionKey, LedSharePartition]] = {}
        self._of_partition: dict[tuple[str, int], dict[SharePartitionKey, LedSharePartition]] = {}
        self._jobs: deque[Callable[[], Steps[None] | None]] = deque()
        self._is_working = False

    def __iter__(self) -> Iterator[LedSharePartition]:
        return iter(self._led.values())

    def limits(self, group_id: str) -> Limits:
        settings = self.settings(group_id)
        return Limits(
            settings.record_lock_duration_ms,
            settings.delivery_count_limit,
            settings.partition_max_record_locks,
            settings.is_renew_enabled,
            self.dead_letters is not None
            and settings.dead_letter_topic is not None
            and self._metadata.feature_level(SHARE_VERSION) >= _DEAD_LETTERS_LEVEL,
        )

    # --- share-partitions

    def get(self, group_id: str, topic_id: UUID, partition: int) -> LedSharePartition | None:
        """Return a share-partition that a fetch has created, or None."""
        led = self._led.get(SharePartitionKey(group_id, topic_id, partition))
        if led is not None and not self._is_led(led):
            self.forget(led)
            return None
        return led

    def _is_led(self, led: LedSharePartition) -> bool:
        replica = led.replica
        return replica.is_leader and self._replicas.get(replica.topic, replica.partition) is replica

    def get_or_load(self, group_id: str, topic_id: UUID, partition: int) -> LedSharePartition | ErrorCode:
        """Return a share-partition, and begin to load it if it is new, or an error."""
        led = self.get(group_id, topic_id, partition)
        if led is not None:
            return led
        topic = self._metadata.topic_name(topic_id)
        if topic is None:
            # The session contains a deleted topic, and a topic with the same name exists. Its state cannot be
            # read.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        replica = self._replicas.get(topic, partition)
        if replica is None:
            return self._replicas.missing(topic, partition)
        if not replica.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        key = SharePartitionKey(group_id, topic_id, partition)
        led = self._led[key] = LedSharePartition(self, key, replica)
        self._of_partition.setdefault((topic, partition), {})[key] = led
        self._of_group.setdefault(group_id, {})[key] = led
        led.load()
        return led

    def forget(self, led: LedSharePartition) -> None:
        """Forget a share-partition. Fetches that wait for it get no records of it."""
        if self._led.get(led.key) is not led:
            return
        del self._led[led.key]
        _remove(self._of_partition, (led.replica.topic, led.replica.partition), led.key)
        _remove(self._of_group, led.key.group_id, led.key)
        led.close()

    def stopping(self, topic: str, partition: int) -> None:
        """Forget the share-partitions of a partition, because this broker is no longer its leader."""
        for led in list(self._of_partition.get((topic, partition), {}).values()):
            self.forget(led)

    def close(self) -> None:
        """Forget everything, because the broker stops."""
        if self.dead_letters is not None:
            self.dead_letters.close()
        for led in list(self._led.values()):
            self.forget(led)

    def resolve_start(
        self, group_id: str, replica: Partition, done: Callable[[int | ErrorCode], None]
    ) -> None:
        reset = self.settings(group_id).auto_offset_reset
        if reset.strategy == LATEST:
            done(replica.high_watermark)
        elif reset.strategy == EARLIEST:
            done(replica.log.log_start_offset)
        else:
            self._long_work.start(_offset_at(replica, self._now_ms() - reset.duration_ms), done)

    # --- members

    def fetch(
        self,
        params: ShareFetchParams,
        partitions: Sequence[TopicIdPartition],
        errors: Results,
        done: Callable[[Results], None],
    ) -> Steps[DelayedShareFetch]:
        """Acquire records of these partitions. `errors` are results of other partitions."""
        targets = []
        if params.max_records <= 0 or params.max_bytes <= 0:
            partitions = ()
        for each in partitions:
            led = self.get_or_load(params.group_id, each.topic_id, each.partition)
            if isinstance(led, LedSharePartition):
                targets.append((each, led))
            else:
                errors[each] = FetchedPartition(led)
            yield None
        counts = self.counts.group(params.group_id)
        fetch = DelayedShareFetch(
            params, targets, errors, self._long_work, self.scheduler.monotonic_ms, done, counts
        )
        fetch.start()
        return fetch

    def acknowledge(
        self, key: SessionKey, partition: TopicIdPartition, batches: Sequence[Acknowledgement], done: Done
    ) -> Steps[None]:
        """Acknowledge records of a member, in steps. `done` is called when the result is stored."""
        led = self.get(key.group_id, partition.topic_id, partition.partition)
        if led is None:
            done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            yield from led.acknowledge(key.member_id, batches, partial(self._acknowledged, batches, done))

    def _acknowledged(self, batches: Sequence[Acknowledgement], done: Done, code: ErrorCode) -> None:
        if code == ErrorCode.NONE:
            acknowledged = self.counts.acknowledged
            for first, last, types in batches:
                if len(types) == 1:
                    acknowledged[types[0]] += last - first + 1
                else:
                    acknowledged.update(types)
        done(code)

    def open_session(self, key: SessionKey, connection: object, sessions_max: int) -> ShareSession:
        """Open a session, as `ShareSessions.open` does. Records acquired by a replaced one stay acquired."""
        replaced = self.sessions.end(key)
        if replaced is not None:
            self.in_turn(partial(_freeing, replaced))
        return self.sessions.open(key, connection, sessions_max)

    def connection_closed(self, connection: object, group_id: str) -> None:
        """End the sessions of a closed connection. `group_id` is the group of the session opened last."""
        keys = self.sessions.of_connection(connection)
        for key in keys:
            self.end_session(key)
        for each in {group_id, *(key.group_id for key in keys)}:
            self.in_turn(partial(self._forget_unused, each))

    def _forget_unused(self, group_id: str) -> None:
        """Forget the share-partitions of a group without sessions. Their states are stored."""
        if self.sessions.has_members(group_id):
            return
        for led in list(self._of_group.get(group_id, {}).values()):
            self.in_turn(partial(self._forget_if_unused, led))

    def _forget_if_unused(self, led: LedSharePartition) -> None:
        """Forget a share-partition, but not before its changes are stored and its dead letters written."""
        if self.sessions.has_members(led.key.group_id):
            return
        if led.is_settled:
            self.forget(led)
        else:
            led.when_settled = partial(self.in_turn, partial(self._forget_if_unused, led))

    def end_session(self, key: SessionKey) -> None:
        """End the session of a member, and release its records."""
        session = self.sessions.end(key)
        if session is not None:
            self.release(session)

    def release(self, session: ShareSession) -> None:
        """Release all records that the member of an ended session has acquired."""
        self.in_turn(partial(self._releasing, session))

    def _releasing(self, session: ShareSession) -> Steps[None]:
        key = session.key
        partitions = list(reversed(session.partitions))
        while partitions:
            # Freeing very many partitions at once would take long.
            each = partitions.pop()
            session.forget(each.topic_id, (each.partition,))
            led = self._led.get(SharePartitionKey(key.group_id, each.topic_id, each.partition))
            if led is not None:
                led.release(key.member_id)
            yield None

    # --- work of many share-partitions

    def in_turn(self, job: Callable[[], Steps[None] | None]) -> None:
        self._jobs.append(job)
        if not self._is_working:
            self._is_working = True
            self._long_work.start(self._work(), lambda _: None)

    def _work(self) -> Steps[None]:
        try:
            while self._jobs:
                steps = self._jobs.popleft()()
                if steps is not None:
                    yield from steps
                yield None
        finally:
            self._is_working = False


def _freeing(session: ShareSession) -> Steps[None]:
    """Free a session. Freeing very many partitions at once would take long."""
    partitions = list(session.partitions)
    del session
    while partitions:
        del partitions[-AT_ONCE:]
        yield None


def _remove(
    groups: dict[Kind, dict[SharePartitionKey, LedSharePartition]], kind: Kind, key: SharePartitionKey
) -> None:
    """Remove a share-partition from one of its groups, and the group if it is empty."""
    of_kind = groups[kind]
    del of_kind[key]
    if not of_kind:
        del groups[kind]


def _offset_at(replica: Partition, timestamp_ms: int) -> Steps[int | ErrorCode]:
    """Return the offset of the first committed record with this timestamp or a later one. If there is none,
    return OFFSET_NOT_AVAILABLE, as Kafka does.
    """
    try:
        found = yield from replica.log.offset_for_timestamp(timestamp_ms)
    except StorageError as error:
        return code_of(error)
    if found is None or found.offset >= replica.high_watermark:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return found.offset
