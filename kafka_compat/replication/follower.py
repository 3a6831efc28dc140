"""State machine that replicates partitions from one leader: it builds the follower's requests and applies the
responses. No I/O, except on logs.

States of a partition, and their transitions

    fetching    a response with records → append them; fetching
                a response with a diverging epoch → truncate to where the logs match; fetching
                OFFSET_OUT_OF_RANGE → end
    end         the leader's log ends before the local log → truncate to that end; fetching. Otherwise → start
    start       the leader's log starts after the local log → remove all records and start there; fetching
    any         another error, or a lost connection → the same state after replica.fetch.backoff.ms
    any         an error of a leader that does not know its role yet → the same state after 20 ms, 40 ms, …
    any         FENCED_LEADER_EPOCH, or a local disk failure → removed, until the controller adds it again

Rules
1. A request contains the log end offset and the epoch of the last record, so that the leader can detect
   divergence (KIP-595). Therefore no separate request is needed before the first fetch. A log without leader
   epochs is first truncated to its high watermark.
2. A partition is not fetched while its records wait for a flush by flush.messages, because the fetch offset
   confirms all earlier records. A partition is also not fetched until its truncation is on disk, because
   nothing can be appended before then.
3. A response applies only to partitions whose state has not changed since the request. If a partition's part
   of the response is ignored, a new session begins, so that the leader sends the high watermark again.
4. While all partitions are in the state fetching, only the partitions of the last response are examined for
   the next request, because a broker follows hundreds of partitions and only a few of them receive records.
   All partitions are examined every replica.fetch.wait.max.ms, and after any event other than an append.
5. A throttled replica that is not in sync is omitted from requests while the quota is exceeded.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafka_compat.errors import ErrorCode, KafkaError, error_name
from kafka_compat.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from kafka_compat.protocol.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.replication.fetch_session import PartitionKey, partition_key
from kafka_compat.replication.followed_partition import FollowedPartition, State
from kafka_compat.replication.follower_requests import (
    FETCH_VERSION,
    FETCH_VERSION_WITH_NAMES,
    LIST_OFFSETS_VERSION,
    SentFetch,
    SentLookup,
    lookup_request,
    topics_forgotten,
    topics_named,
)
from kafka_compat.replication.follower_session import FollowerSession, Wanted
from kafka_compat.replication.partition import Partition
from kafka_compat.replication.replication_quota import ReplicationQuota
from kafka_compat.storage.errors import LogDirFailure, StorageError

_NONE: Final = ErrorCode.NONE
"""A copy of ErrorCode.NONE, because access through the enumeration takes two lookups by name."""
log = logging.getLogger(__name__)

QUOTA_WAIT_MS: Final = 100
"""The interval in ms between quota checks for throttled replicas."""
UNDEFINED: Final = -1


@dataclass(frozen=True, slots=True)
class FollowerSettings:
    """The replica.fetch.* settings of the broker, and the versions of its requests."""

    fetch_max_bytes: int = 1024 * 1024
    response_max_bytes: int = 10 * 1024 * 1024
    min_bytes: int = 1
    wait_max_ms: int = 500
    backoff_ms: int = 1000
    fetch_version: int = FETCH_VERSION
    list_offsets_version: int = LIST_OFFSETS_VERSION


_EARLY: Final = (
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)
"""Errors of a leader that does not know its role yet. They are retried quickly: the controller may notify a
follower before the leader, which would delay acks=all by replica.fetch.backoff.ms.
"""


class Follower:
    """The partitions that follow one leader. `wake` is called when a new request becomes possible."""

    def __init__(
        self,
        local_id: int,
        settings: FollowerSettings,
        wake: Callable[[], None],
        quota: ReplicationQuota | None = None,
    ) -> None:
        """`quota` is shared with the `Follower` objects of other leaders. None means no throttling."""
        self._local_id = local_id
        self._settings = settings
        self._wake = wake
        self._quota = quota if quota is not None else ReplicationQuota()
        self._followed: dict[tuple[str, int], FollowedPartition] = {}
        self._session = FollowerSession()
        self._version = settings.fetch_version
        self._replica_state = ReplicaState(replica_id=local_id)
        self._asked: dict[PartitionKey, tuple[FollowedPartition, int]] = {}
        self._changed: list[FollowedPartition] = []
        """The partitions of the last response (rule 4)."""
        self.fetched_bytes = 0
        """Total size of the appended records, in bytes."""
        self._look_at_all_ms = 0
        """The time at which the next request examines all partitions (rule 4)."""

    def __len__(self) -> int:
        return len(self._followed)

    def __iter__(self) -> Iterator[Partition]:
        return iter([item.partition for item in self._followed.values()])

    def __contains__(self, partition: Partition) -> bool:
        found = self._followed.get((partition.topic, partition.partition))
        return found is not None and found.partition is partition

    def add(self, partition: Partition, topic_id: UUID) -> None:
        """Follow `partition` in its current leader epoch, instead of any earlier epoch."""
        item = FollowedPartition(partition, topic_id)
        self._followed[partition.topic, partition.partition] = item
        self._look_at_all_ms = 0
        if partition.log.leader_epochs.latest_epoch < 0:
            self._guarded(item, 0, lambda: partition.truncate_to(partition.high_watermark))
        self._await_disk(item)
        self._wake()

    def remove(self, partition: Partition) -> None:
        """Stop following the partition, if it is followed. Later responses do not change its log."""
        self._followed.pop((partition.topic, partition.partition), None)
        self._look_at_all_ms = 0

    def remove_all(self) -> list[tuple[Partition, UUID]]:
        """Stop following all partitions, and return them for a different `Follower`."""
        items = [(item.partition, item.topic_id) for item in self._followed.values()]
        self._followed.clear()
        self._look_at_all_ms = 0
        return items

    def wait_ms(self, now_ms: int) -> int | None:
        """Return the time in ms until the next request may be sent, or None if no request is planned. A call
        to `wake` ends the wait early.
        """
        delayed = [
            item.delayed_until_ms for item in self._followed.values() if item.delayed_until_ms > now_ms
        ]
        return min(delayed) - now_ms if delayed else None

    # --- fetching

    def next_fetch(self, now_ms: int) -> SentFetch | None:
        """Return the next Fetch request, or None if no partition is ready. At most one may be pending."""
        named = self._named_of_changed() if now_ms < self._look_at_all_ms and self._session.is_open else None
        forgotten: list[PartitionKey] = []
        session_id, epoch = self._session.session_id, self._session.epoch
        if named is None:
            found = self._look_at_all(now_ms)
            if found is None:
                return None
            named, forgotten = found
            session_id, epoch = self._session.session_id, self._session.epoch
        settings = self._settings
        request = FetchRequest(
            replica_id=self._local_id,
            replica_state=self._replica_state,
            max_wait_ms=settings.wait_max_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            session_id=session_id,
            session_epoch=epoch,
            topics=topics_named(named, settings.fetch_max_bytes),
            forgotten_topics_data=topics_forgotten(forgotten),
        )
        return SentFetch(request, self._version, self._asked.copy())

    def _named_of_changed(self) -> dict[PartitionKey, Wanted] | None:
        """Return the changed entries of the last response's partitions, or None if all must be examined."""
        by_id = self._version > FETCH_VERSION_WITH_NAMES
        changed: dict[PartitionKey, Wanted] = {}
        for item in self._changed:
            own = item.partition.log
            if item.partition.durable_end_offset != own.log_end_offset:
                return None
            key = item.key_by_id if by_id else item.key_by_name
            self._asked[key] = (item, own.log_end_offset)
            changed[key] = item.wanted()
        self._changed.clear()
        return self._session.changes_among(changed)

    def _look_at_all(self, now_ms: int) -> tuple[dict[PartitionKey, Wanted], list[PartitionKey]] | None:
        """Return (partitions to fetch, partitions to forget), or None if no partition is ready."""
        self._changed.clear()
        ready = [
            item
            for item in self._followed.values()
            if item.state is State.FETCHING
            and item.delayed_until_ms <= now_ms
            and item.partition.durable_end_offset == item.partition.log.log_end_offset
            and not item.partition.log.is_settling
            and not self._is_held_back(item, now_ms)
        ]
        if not ready:
            return None
        is_regular = len(ready) == len(self._followed) and not self._quota.has_replicas
        self._look_at_all_ms = now_ms + self._settings.wait_max_ms if is_regular else 0
        version = self._settings.fetch_version
        if version > FETCH_VERSION_WITH_NAMES and any(item.topic_id == ZERO_UUID for item in ready):
            version = FETCH_VERSION_WITH_NAMES
        by_id = version > FETCH_VERSION_WITH_NAMES
        if version != self._version:
            self._version = version
            self._session.lost()
        self._asked = {}
        wanted: dict[PartitionKey, Wanted] = {}
        for item in ready:
            key = item.key_by_id if by_id else item.key_by_name
            self._asked[key] = (item, item.partition.log.log_end_offset)
            wanted[key] = item.wanted()
        return self._session.changes(wanted)

    def _is_held_back(self, item: FollowedPartition, now_ms: int) -> bool:
        if item.is_in_sync or not self._is_throttled(item) or not self._quota.is_exceeded(now_ms):
            return False
        item.delayed_until_ms = now_ms + QUOTA_WAIT_MS
        return True

    def _is_throttled(self, item: FollowedPartition) -> bool:
        return self._quota.is_throttled(item.partition.topic, item.partition.partition)

    def fetched(self, sent: SentFetch, response: FetchResponse, now_ms: int) -> None:
        """Apply the leader's response to a Fetch request."""
        if response.error_code != _NONE:
            self._session.lost(unknown=response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if response.error_code not in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
            ):
                log.warning("A fetch from the leader failed (%s); retrying", error_name(response.error_code))
                self._delay([item for item, _ in sent.asked.values()], now_ms)
            return
        self._session.responded(response.session_id)
        by_id = sent.version > FETCH_VERSION_WITH_NAMES
        for topic in response.responses:
            for data in topic.partitions:
                asked = sent.asked.get(
                    partition_key(topic.topic_id if by_id else topic.topic, data.partition_index)
                )
                if asked is None:
                    continue
                item, fetch_offset = asked
                own = item.partition.log
                if self._is_current(item) and own.log_end_offset == fetch_offset:
                    self._guarded(item, now_ms, lambda: self._take(item, data, now_ms))  # noqa: B023
                else:
                    self._session.lost()

    def _take(self, item: FollowedPartition, data: PartitionData, now_ms: int) -> None:
        partition = item.partition
        if data.error_code != _NONE:
            self._refused(item, data.error_code, now_ms)
            return
        if data.diverging_epoch.end_offset >= 0:
            offset = truncation_offset(partition, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            log.info("Truncated %s to offset %d: its log had diverged from the leader's", partition, offset)
            partition.truncate_to(offset)
            self._look_at_all_ms = 0
            self._await_disk(item)
            return
        records = data.records
        assert records is None or isinstance(records, (bytes, memoryview))
        partition.append_as_follower(memoryview(records or b""), data.high_watermark, data.log_start_offset)
        self._changed.append(item)
        item.is_in_sync = partition.log.log_end_offset >= data.high_watermark
        if records:
            self.fetched_bytes += len(records)
            if self._is_throttled(item):
                self._quota.record(len(records), now_ms)
        self._await_disk(item)

    def _await_disk(self, item: FollowedPartition) -> None:
        own = item.partition.log
        if own.is_settling:
            self._look_at_all_ms = 0
            own.truncations.when_none(self._wake)
        end = item.partition.log.log_end_offset
        if item.partition.durable_end_offset != end:
            item.partition.when_durable(end, lambda code: self._flushed(item, code))

    def _flushed(self, item: FollowedPartition, code: ErrorCode) -> None:
        if code == _NONE:
            self._wake()
        else:
            self._drop(item)

    def lost(self, now_ms: int) -> None:
        """Handle a failed or lost connection to the leader."""
        self._session.lost()
        self._delay(list(self._followed.values()), now_ms)

    # --- lookups of the leader's log end and start

    def next_lookup(self, now_ms: int) -> SentLookup | None:
        """Return the next ListOffsets request, or None if no partition needs one."""
        asked = {
            key: item
            for key, item in self._followed.items()
            if item.state is not State.FETCHING and item.delayed_until_ms <= now_ms
        }
        return SentLookup(lookup_request(self._local_id, asked.values()), asked) if asked else None

    def looked_up(self, sent: SentLookup, response: ListOffsetsResponse, now_ms: int) -> None:
        """Apply the log end offsets and log start offsets in the leader's ListOffsets response."""
        for topic in response.topics:
            for answer in topic.partitions:
                item = sent.asked.get((topic.name, answer.partition_index))
                if item is not None and self._is_current(item):
                    self._guarded(item, now_ms, lambda: self._place(item, answer, now_ms))  # noqa: B023

    def _place(self, item: FollowedPartition, answer: ListOffsetsPartitionResponse, now_ms: int) -> None:
        partition = item.partition
        if answer.error_code != _NONE:
            self._refused(item, answer.error_code, now_ms)
        elif item.state is State.END:
            if answer.offset < partition.log.log_end_offset:
                log.warning(
                    "Truncated %s from offset %d to offset %d, the log end offset of its leader: an unclean "
                    "leader election lost records",
                    partition,
                    partition.log.log_end_offset,
                    answer.offset,
                )
                partition.truncate_to(answer.offset)
                item.state = State.FETCHING
            else:
                item.state = State.START
        else:
            if answer.offset > partition.log.log_end_offset:
                log.warning(
                    "Deleted all local records of %s (log end offset %d): its leader's log starts at "
                    "offset %d, so replication continues there",
                    partition,
                    partition.log.log_end_offset,
                    answer.offset,
                )
                partition.truncate_fully_and_start_at(answer.offset)
            item.state = State.FETCHING
        self._await_disk(item)

    # --- failures

    def _is_current(self, item: FollowedPartition) -> bool:
        return self._followed.get((item.partition.topic, item.partition.partition)) is item

    def _refused(self, item: FollowedPartition, code: int, now_ms: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            item.state = State.END
            self._look_at_all_ms = 0
        elif code == ErrorCode.FENCED_LEADER_EPOCH:
            log.info("Stopped fetching %s: leader epoch %d is outdated", item.partition, item.leader_epoch)
            self._drop(item)
        elif code in _EARLY:
            log.info("The leader of %s is not ready (%s)", item.partition, error_name(code))
            self._delay([item], now_ms, item.early_backoff_ms)
            item.early_backoff_ms *= 2
        else:
            log.info("The leader of %s returned an error: %s", item.partition, error_name(code))
            self._delay([item], now_ms)

    def _guarded(self, item: FollowedPartition, now_ms: int, step: Callable[[], None]) -> None:
        """Call `step`, and handle its failure so that it does not affect other partitions."""
        try:
            step()
        except (LogDirFailure, KafkaError) as error:
            log.error("Stopped following the leader of %s: %s", item.partition, error)
            self._drop(item)
        except StorageError as full:
            log.error("Could not append records from the leader of %s: %s; retrying", item.partition, full)
            self._session.lost()
            self._delay([item], now_ms)

    def _drop(self, item: FollowedPartition) -> None:
        if self._is_current(item):
            self.remove(item.partition)

    def _delay(self, items: list[FollowedPartition], now_ms: int, backoff_ms: int | None = None) -> None:
        self._look_at_all_ms = 0
        most_ms = self._settings.backoff_ms
        for item in items:
            item.delayed_until_ms = now_ms + (most_ms if backoff_ms is None else min(backoff_ms, most_ms))


def truncation_offset(partition: Partition, epoch: int, end_offset: int) -> int:
    """Return the offset at which to truncate a follower's log. `epoch` is the leader's largest epoch up to
    the follower's last epoch, and `end_offset` is the end of that epoch. Both are -1 if the leader has no
    such epoch.

    If the follower also has this epoch, the logs match up to the smaller of the two end offsets. Otherwise
    they match at most up to the end of the follower's last earlier epoch, and the leader's next response may
    require another truncation. This happens after two quick leader changes (KIP-279).
    """
    log = partition.log
    if end_offset == UNDEFINED:
        return min(partition.high_watermark, log.log_end_offset)
    if epoch == UNDEFINED:
        return min(end_offset, log.log_end_offset)
    own_epoch, own_end = log.end_offset_for_epoch(epoch)
    if own_end == UNDEFINED:
        return min(end_offset, log.log_end_offset)
    if own_epoch != epoch:
        return min(own_end, log.log_end_offset)
    return min(own_end, end_offset, log.log_end_offset)
