"""One Fetch request from its first look at the logs to its answer.

Rules
1. Partitions are read in the order of the session; the first that has records gives at least one batch,
   however large; the others only what still fits into the answer.
2. The answer goes out at once when min_bytes are there, when max_wait_ms is 0, when nothing is asked for, or
   when a partition has an error or has diverged: the client must hear of those soon.
3. Else the request listens to its partitions, and looks again when they committed as many bytes as were
   missing; a follower's, when as many were appended.
4. A follower (replica id from 0 on) reads to the end of the log, and with its fetch offset tells how far it
   has come; only the first look counts for that. A consumer reads what is committed, from version 11 on also
   from a follower, and is sent to a nearer one where replica.selector.class says so (KIP-392).
5. What a follower's session holds and needs no answer, because it has all of the partition and heard of all
   else, is passed over quickly: a broker follows hundreds of partitions of which a few get records.
6. A follower that is throttled and not in sync gets no records while the leader's quota is exceeded.
"""

from __future__ import annotations

from asyncio import TimerHandle
from typing import TYPE_CHECKING
from uuid import UUID

from kafka_compat.dispatch import PENDING
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafka_compat.replication.nearest_replica import LEADER, nearest_replica
from storage.errors import OffsetOutOfRange, StorageError
from storage.legacy import down_convert

if TYPE_CHECKING:
    from kafka_compat.dispatch import RequestContext, _Pending
    from kafka_compat.replication.fetch_session import FetchPlan, FetchTarget
    from kafka_compat.replication.partition import Partition

READ_COMMITTED = 1
CONSUMER = -1
"""The replica id of consumers; below it are tools that look at the whole log."""
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_FIRST_VERSION_FROM_FOLLOWERS = 11
_FIRST_VERSION_WITH_REPLICA_STATE = 15
_FIRST_VERSION_WITH_FORMAT_2 = 4
_EMPTY = b""


class DelayedFetch:
    """See the rules above. `start` returns the response or PENDING."""

    __slots__ = (
        "_committed_only",
        "_ctx",
        "_done",
        "_leader_only",
        "_listening",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_missing_bytes",
        "_partitions",
        "_plan",
        "_rack",
        "_replica_id",
        "_seen_sizes",
        "_timer",
    )

    def __init__(self, ctx: RequestContext, request: FetchRequest, plan: FetchPlan) -> None:
        self._ctx = ctx
        self._plan = plan
        self._committed_only = request.isolation_level == READ_COMMITTED
        self._max_wait_ms = request.max_wait_ms
        version = ctx.api_version
        self._replica_id = (
            request.replica_state.replica_id
            if version >= _FIRST_VERSION_WITH_REPLICA_STATE
            else request.replica_id
        )
        self._leader_only = self._replica_id >= 0 or version < _FIRST_VERSION_FROM_FOLLOWERS
        self._rack = request.rack_id
        self._max_bytes = min(request.max_bytes, ctx.broker.fetch_max_bytes)
        if self._replica_id >= 0:
            self._max_bytes = request.max_bytes
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._missing_bytes = 0
        self._partitions: list[Partition] = []
        self._listening: list[Partition] = []
        self._seen_sizes: dict[Partition, int] = {}
        self._timer: TimerHandle | None = None
        self._done = False

    def start(self) -> FetchResponse | _Pending:
        found, total_bytes, urgent = self._read(first_look=True)
        if urgent or total_bytes >= self._min_bytes or self._max_wait_ms <= 0 or not self._plan.targets:
            return self._response(found)
        self._park(total_bytes)
        self._timer = self._ctx.broker.loop.call_later(self._max_wait_ms / 1000, self._time_out)
        return PENDING

    # --- waiting

    def on_committed(self, partition: Partition) -> None:
        """A partition has more to show, or is led elsewhere."""
        if self._done:
            return
        seen_sizes = self._seen_sizes
        if seen_sizes and partition.is_leader and (self._replica_id >= 0 or not partition.in_sync.followers):
            # All that was appended is there to be read.
            size = partition.log.size_bytes
            self._missing_bytes -= max(size - seen_sizes[partition], 0)
            seen_sizes[partition] = size
            if self._missing_bytes > 0:
                return
        found, total_bytes, urgent = self._read()
        if urgent or total_bytes >= self._min_bytes:
            self._finish(found)
        else:
            self._missing_bytes = self._min_bytes - total_bytes

    def _park(self, total_bytes: int) -> None:
        self._missing_bytes = self._min_bytes - total_bytes
        self._listening = self._partitions
        is_follower = self._replica_id >= 0
        for partition in self._listening:
            (partition.append_listeners if is_follower else partition.listeners).add(self)
        if self._missing_bytes > 1:
            # Else any record will do.
            self._seen_sizes = {partition: partition.log.size_bytes for partition in self._listening}

    def _time_out(self) -> None:
        if not self._done:
            found, _, _ = self._read()
            self._finish(found)

    def _finish(self, found: list[tuple[FetchTarget, PartitionData, int]]) -> None:
        self._done = True
        if self._timer is not None:
            self._timer.cancel()
        is_follower = self._replica_id >= 0
        for partition in self._listening:
            (partition.append_listeners if is_follower else partition.listeners).discard(self)
        if not self._ctx.connection.closed:
            self._ctx.respond(self._response(found))

    # --- reading

    def _read(
        self, first_look: bool = False
    ) -> tuple[list[tuple[FetchTarget, PartitionData, int]], int, bool]:
        """(what each partition has, bytes in all, whether the client must hear of it now)."""
        broker = self._ctx.broker
        replicas = broker.replicas
        found: list[tuple[FetchTarget, PartitionData, int]] = []
        total_bytes = 0
        urgent = False
        self._partitions = []
        now_ms = broker.clock.now_ms() if first_look else None
        passes_over = self._replica_id >= 0 and self._plan.incremental
        for target in self._plan.targets:
            partition = target.held
            if partition is None or not partition.is_leader:
                topic = target.topic
                if isinstance(topic, UUID):
                    name = broker.metadata.topic_name(topic)
                    if name is None:
                        found.append((target, _error(target.partition, ErrorCode.UNKNOWN_TOPIC_ID), 0))
                        urgent = True
                        continue
                    topic = name
                partition = replicas.get(topic, target.partition)
                if partition is None:
                    code = replicas.missing(topic, target.partition)
                    found.append((target, _error(target.partition, code), 0))
                    urgent = True
                    continue
            elif passes_over and target.agrees and self._needs_nothing(target, partition, now_ms):
                self._partitions.append(partition)
                continue
            self._partitions.append(partition)
            data, size_bytes, notable = self._read_partition(
                partition, target, self._max_bytes - total_bytes, total_bytes == 0, first_look
            )
            total_bytes += size_bytes
            urgent = urgent or notable
            found.append((target, data, size_bytes))
        return found, total_bytes, urgent

    def _needs_nothing(self, target: FetchTarget, partition: Partition, now_ms: int | None) -> bool:
        """See rule 5. `now_ms` is None but for the first look."""
        log = partition.log
        end_offset = log.log_end_offset
        if (
            target.current_leader_epoch != partition.leader_epoch
            or target.fetch_offset != end_offset
            or target.told_high_watermark != partition.high_watermark
            or target.told_log_start_offset != log.log_start_offset
        ):
            return False
        in_sync = partition.in_sync
        follower = in_sync.followers.get(self._replica_id)
        if follower is None or self._replica_id not in in_sync.committed:
            return False
        if now_ms is not None:
            if follower.log_end_offset != end_offset or follower.log_start_offset != target.log_start_offset:
                return False
            follower.fetched(end_offset, target.log_start_offset, end_offset, now_ms)
        return True

    def _read_partition(
        self, partition: Partition, target: FetchTarget, bytes_left: int, first: bool, first_look: bool
    ) -> tuple[PartitionData, int, bool]:
        """(the answer, its bytes of records, whether it is urgent)."""
        code = partition.check_leader_epoch(target.current_leader_epoch, leader_only=self._leader_only)
        replica_id = self._replica_id
        if code == ErrorCode.NONE and replica_id >= 0 and not partition.has_follower(replica_id):
            code = (
                ErrorCode.UNKNOWN_LEADER_EPOCH
                if target.current_leader_epoch >= 0
                else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        if code != ErrorCode.NONE:
            return _failed_read(target.partition, code), 0, True
        log = partition.log
        high_watermark = partition.high_watermark
        stable_end = log.last_stable_offset(high_watermark)
        data = PartitionData(
            partition_index=target.partition,
            high_watermark=high_watermark,
            last_stable_offset=stable_end,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=_EMPTY,
        )
        if self._rack and first_look and partition.is_leader and replica_id == CONSUMER:
            data.preferred_read_replica = self._nearest(partition, target.fetch_offset)
            if data.preferred_read_replica != LEADER:
                return data, 0, True
        if target.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(target.last_fetched_epoch)
            if end_offset < 0 or target.fetch_offset < log.log_start_offset:
                # An epoch that this log has not come to, or no longer has.
                return _failed_read(target.partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True
            if epoch < target.last_fetched_epoch or end_offset < target.fetch_offset:
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
                return data, 0, True
        if replica_id != CONSUMER:
            upper_bound = log.log_end_offset
        else:
            upper_bound = stable_end if self._committed_only else high_watermark
        max_bytes = min(target.max_bytes, bytes_left)
        try:
            found = log.read(
                target.fetch_offset, max(max_bytes, 0), upper_bound=upper_bound, min_one_batch=first
            )
        except OffsetOutOfRange:
            return _failed_read(target.partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True
        except StorageError as error:
            return _failed_read(target.partition, code_of(error)), 0, True
        if first_look and replica_id >= 0:
            partition.follower_fetched(
                replica_id,
                target.fetch_offset,
                target.log_start_offset,
                log.log_end_offset,
                self._ctx.broker.clock.now_ms(),
            )
            target.held = partition
            target.agrees = True
        if self._committed_only:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in (
                    log.aborted_transactions(target.fetch_offset, upper_bound) if found is not None else ()
                )
            ]
        if found is None or (replica_id >= 0 and self._is_held_back(partition)):
            return data, 0, False
        version = self._ctx.api_version
        if version < _FIRST_VERSION_WITH_FORMAT_2:
            try:
                data.records = down_convert(found.read(), 0 if version < 2 else 1)
            except StorageError as error:
                return _error(target.partition, code_of(error)), 0, True
        else:
            data.records = found
        return data, found.size_bytes, False

    def _is_held_back(self, partition: Partition) -> bool:
        broker = self._ctx.broker
        quota = broker.replicas.quotas.leader
        return (
            quota.is_throttled(partition.topic, partition.partition)
            and self._replica_id not in partition.isr
            and quota.is_exceeded(broker.clock.now_ms())
        )

    def _count_throttled(self, found: list[tuple[FetchTarget, PartitionData, int]]) -> None:
        broker = self._ctx.broker
        quota = broker.replicas.quotas.leader
        for target, data, size_bytes in found:
            topic = target.topic
            name = broker.metadata.topic_name(topic) if isinstance(topic, UUID) else topic
            if name is not None and size_bytes and quota.is_throttled(name, data.partition_index):
                quota.record(size_bytes, broker.clock.now_ms())

    def _nearest(self, partition: Partition, fetch_offset: int) -> int:
        broker = self._ctx.broker
        if broker.config.str("replica.selector.class") != RACK_AWARE_SELECTOR:
            return LEADER
        racks = {broker_id: known.rack for broker_id, known in broker.metadata.brokers.items()}
        return nearest_replica(partition, self._rack, racks, fetch_offset)

    def _response(self, found: list[tuple[FetchTarget, PartitionData, int]]) -> FetchResponse:
        if self._replica_id >= 0 and self._ctx.broker.replicas.quotas.leader.has_replicas:
            self._count_throttled(found)
        plan = self._plan
        topics: dict[str | UUID, list[PartitionData]] = {}
        for target, data, size_bytes in found:
            notable = (
                size_bytes > 0
                or data.error_code != 0
                or data.diverging_epoch.end_offset >= 0
                or data.preferred_read_replica != LEADER
            )
            if plan.must_answer(target, data.high_watermark, data.log_start_offset, notable):
                topics.setdefault(target.topic, []).append(data)
            if data.diverging_epoch.end_offset >= 0:
                # A follower that truncates does not take over the high watermark: it must hear of it again.
                target.told_high_watermark = -1
        return FetchResponse(
            session_id=plan.session_id,
            responses=[
                FetchableTopicResponse(topic_id=topic, partitions=partitions)
                if isinstance(topic, UUID)
                else FetchableTopicResponse(topic=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )


def _failed_read(partition: int, code: ErrorCode) -> PartitionData:
    """As `_error`, for a partition that is here: its list of aborted transactions is null."""
    data = _error(partition, code)
    data.aborted_transactions = None
    return data


def _error(partition: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        records=_EMPTY,
    )
