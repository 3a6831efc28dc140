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
7. Many partitions are read in steps, between which others are served; each is read as it is then. A wake-up
   while they are read has them read once more.
8. Versions 0 to 3 get old formats: another thread converts what is sent, from the offset that was fetched
   on, and no more than CONVERTED_BYTES_MAX of the log, however much the client asks for.
9. What the client may not read is told with the rest, and does not hurry it, unless it is all.
10. A request ends with its connection.
11. A consumer that is over a quota gets an empty response that says how long to wait (KIP-219); its session
   is as before, and no new one opens. No consumer is given more at once than its quota ever allows.
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka_compat.deferred import Deferred
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafka_compat.replication.fetch_answer import (
    FIRST_VERSION_WITH_FORMAT_2,
    NO_RECORDS,
    PARTITIONS_AT_ONCE,
    Look,
    failed_read,
    response_in_steps,
    response_of,
    unread,
)
from kafka_compat.replication.fetch_quota import within_quota
from kafka_compat.replication.nearest_replica import LEADER, nearest_replica
from kafka_compat.storage.errors import OffsetOutOfRange, StorageError

if TYPE_CHECKING:
    from kafka_compat.long_work import Steps
    from kafka_compat.replication.fetch_context import FetchContext
    from kafka_compat.replication.fetch_session import FetchPlan, FetchTarget
    from kafka_compat.replication.partition import Partition

_NONE: Final = ErrorCode.NONE
"""At hand: a member of an enumeration takes two look-ups by name."""
READ_COMMITTED: Final = 1
CONSUMER: Final = -1
"""The replica id of consumers; below it are tools that look at the whole log."""
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_FIRST_VERSION_FROM_FOLLOWERS: Final = 11
_FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
CONVERTED_BYTES_MAX: Final = 1 << 20


class DelayedFetch:
    """See the rules above. `start` returns the response or a Deferred, or steps that do."""

    __slots__ = (
        "_committed_only",
        "_ctx",
        "_deferred",
        "_done",
        "_expired",
        "_leader_only",
        "_listening",
        "_look_again",
        "_looking",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_missing_bytes",
        "_partitions",
        "_plan",
        "_quotas",
        "_rack",
        "_replica_id",
        "_seen",
        "_timer",
    )

    def __init__(self, ctx: FetchContext, request: FetchRequest, plan: FetchPlan) -> None:
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
        self._max_bytes = min(request.max_bytes, ctx.services.config.int("fetch.max.bytes"))
        self._quotas = ctx.services.quotas
        if self._replica_id >= 0:
            self._max_bytes = request.max_bytes
            self._quotas = None
        elif self._quotas is not None:
            self._max_bytes = min(self._max_bytes, self._quotas.fetch_max_bytes(ctx))
        if version < FIRST_VERSION_WITH_FORMAT_2:
            self._max_bytes = min(self._max_bytes, CONVERTED_BYTES_MAX)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._missing_bytes = 0
        self._partitions: list[Partition] = []
        self._listening: list[Partition] = []
        self._seen: dict[Partition, tuple[int, int]] = {}
        """Size and high watermark of each partition when it was last looked at."""
        self._deferred: Deferred | None = None
        """Once it waits."""
        self._timer: TimerHandle | None = None
        self._done = False
        self._expired = False
        self._looking = False
        self._look_again = False

    @property
    def is_follower(self) -> bool:
        """Whether a broker asks, for its own replicas."""
        return self._replica_id >= 0

    def start(self) -> FetchResponse | Deferred | Steps[FetchResponse | Deferred]:
        targets = self._plan.targets
        if (
            len(targets) > PARTITIONS_AT_ONCE
            or self._ctx.api_version < FIRST_VERSION_WITH_FORMAT_2
            or self._plan.denied
        ):
            return self._start_in_steps()
        look = Look()
        self._read(look, targets, first_look=True)
        if look.total_bytes >= self._min_bytes or self._must_answer(look):
            return self._answer(look)
        return self._park(look)

    def _start_in_steps(self) -> Steps[FetchResponse | Deferred]:
        look = yield from self._read_in_steps(first_look=True)
        if self._must_answer(look):
            return (yield from self._answer_in_steps(look))
        return self._park(look)

    def _answer(self, look: Look) -> FetchResponse:
        quotas, plan = self._quotas, self._plan
        if plan.is_outdated:
            return self._outdated()
        if quotas is None:
            response = response_of(self._ctx, plan, look, self._replica_id)
        else:
            before = plan.sent_state()
            response = response_of(self._ctx, plan, look, self._replica_id)
            response = within_quota(self._ctx, quotas, plan, look, response, before)
        if plan.wants_session and not response.throttle_time_ms:
            self._open_session(response)
        return response

    def _answer_in_steps(self, look: Look) -> Steps[FetchResponse]:
        quotas, plan = self._quotas, self._plan
        if plan.is_outdated:
            return self._outdated()
        before = [] if quotas is None else plan.sent_state()
        response = yield from response_in_steps(self._ctx, plan, look, self._replica_id)
        if quotas is not None:
            response = within_quota(self._ctx, quotas, plan, look, response, before)
        if plan.wants_session and not response.throttle_time_ms:
            self._open_session(response)
        return response

    def _outdated(self) -> FetchResponse:
        return FetchResponse(
            error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self._plan.session_id
        )

    def _open_session(self, response: FetchResponse) -> None:
        broker = self._ctx.services
        response.session_id = broker.fetch_sessions.open(
            self._plan, broker.clock.monotonic_ms(), is_follower=self._replica_id >= 0
        )

    @property
    def _goes_in_steps(self) -> bool:
        return (
            len(self._plan.targets) > PARTITIONS_AT_ONCE
            or self._ctx.api_version < FIRST_VERSION_WITH_FORMAT_2
            or len(self._plan.denied) > 0
        )

    def _must_answer(self, look: Look) -> bool:
        """See rule 2."""
        return (
            look.urgent
            or look.total_bytes >= self._min_bytes
            or self._max_wait_ms <= 0
            or not self._plan.targets
        )

    # --- waiting

    def on_committed(self, partition: Partition) -> None:
        """A partition has more to show, or is led elsewhere."""
        if self._done:
            return
        if self._seen and partition.is_leader and self._lacks_more(partition):
            return
        self._look()

    def _lacks_more(self, partition: Partition) -> bool:
        """Whether too little came, by what this partition got since it was looked at."""
        log = partition.log
        size, high_watermark = self._seen[partition]
        if self._replica_id >= 0 or not partition.in_sync.followers:
            # All that was appended is there to be read.
            self._missing_bytes -= max(log.size_bytes - size, 0)
        else:
            try:
                new = log.read(
                    high_watermark,
                    self._missing_bytes,
                    upper_bound=partition.high_watermark,
                    min_one_batch=True,
                )
            except StorageError:
                return False
            self._missing_bytes -= new.size_bytes if new is not None else 0
        self._seen[partition] = (log.size_bytes, partition.high_watermark)
        return self._missing_bytes > 0

    def _look(self) -> None:
        """Answer when there is enough, or the time is over."""
        if self._goes_in_steps:
            self._look_again = True
            if not self._looking:
                self._looking = True
                self._ctx.long_work.start(self._look_in_steps(), self._looked)
            return
        look = Look()
        self._partitions = []
        self._read(look, self._plan.targets)
        if look.urgent or look.total_bytes >= self._min_bytes or self._expired:
            deferred = self._end()
            response = self._answer(look)
            if deferred is not None:
                deferred.complete(response)
        else:
            self._missing_bytes = self._min_bytes - look.total_bytes

    def _look_in_steps(self) -> Steps[tuple[Deferred, FetchResponse] | None]:
        while self._look_again and not self._done:
            self._look_again = False
            look = yield from self._read_in_steps()
            if self._done:
                break
            if look.urgent or look.total_bytes >= self._min_bytes or self._expired:
                deferred = self._end()
                response = yield from self._answer_in_steps(look)
                return None if deferred is None else (deferred, response)
            self._missing_bytes = self._min_bytes - look.total_bytes
        return None

    def _looked(self, found: tuple[Deferred, FetchResponse] | None) -> None:
        self._looking = False
        if found is not None:
            deferred, response = found
            deferred.complete(response)

    def _park(self, look: Look) -> Deferred:
        self._deferred = deferred = Deferred(self)
        if self._ctx.has_left:
            return deferred
        self._missing_bytes = self._min_bytes - look.total_bytes
        self._listening = self._partitions
        is_follower = self._replica_id >= 0
        for partition in self._listening:
            (partition.append_listeners if is_follower else partition.listeners).add(self)
        if self._missing_bytes > 1:
            # Else any record will do.
            self._seen = {
                partition: (partition.log.size_bytes, partition.high_watermark)
                for partition in self._listening
            }
        self._ctx.services.replicas.delayed_fetches += 1
        self._timer = asyncio.get_running_loop().call_later(self._max_wait_ms / 1000, self._time_out)
        return deferred

    def _time_out(self) -> None:
        if not self._done:
            self._expired = True
            self._look()

    def cancel(self) -> None:
        """The caller has left."""
        self._end()

    def _end(self) -> Deferred | None:
        """Wait no more; what is to be completed, if it still waited."""
        self._done = True
        deferred = self._deferred
        if deferred is None:
            return None
        self._deferred = None
        if self._timer is not None:
            self._timer.cancel()
            self._ctx.services.replicas.delayed_fetches -= 1
        is_follower = self._replica_id >= 0
        for partition in self._listening:
            (partition.append_listeners if is_follower else partition.listeners).discard(self)
        return deferred

    # --- reading

    def _read_in_steps(self, *, first_look: bool = False) -> Steps[Look]:
        look = Look()
        self._partitions = []
        targets = self._plan.targets
        for first in range(0, len(targets), PARTITIONS_AT_ONCE):
            if self._ctx.has_left:
                break
            self._read(look, targets[first : first + PARTITIONS_AT_ONCE], first_look)
            yield None
        return look

    def _read(self, look: Look, targets: Sequence[FetchTarget], first_look: bool = False) -> None:
        """Look at some of the partitions, after others."""
        broker = self._ctx.services
        replicas = broker.replicas
        found = look.found
        now_ms = broker.clock.monotonic_ms() if first_look else None
        passes_over = self._replica_id >= 0 and self._plan.session is not None
        for target in targets:
            partition = target.replica
            if partition is None or not partition.is_leader:
                topic = target.topic
                if isinstance(topic, UUID):
                    name = broker.metadata.topic_name(topic)
                    if name is None:
                        found.append((target, unread(target.partition, ErrorCode.UNKNOWN_TOPIC_ID), 0))
                        look.urgent = True
                        continue
                    topic = name
                partition = replicas.get(topic, target.partition)
                if partition is None:
                    code = replicas.missing(topic, target.partition)
                    found.append((target, unread(target.partition, code), 0))
                    look.urgent = True
                    continue
            elif passes_over and target.agrees and self._needs_nothing(target, partition, now_ms):
                self._partitions.append(partition)
                continue
            self._partitions.append(partition)
            data, size_bytes, notable = self._read_partition(
                partition, target, self._max_bytes - look.total_bytes, look.total_bytes == 0, first_look
            )
            look.total_bytes += size_bytes
            look.urgent = look.urgent or notable
            found.append((target, data, size_bytes))

    def _needs_nothing(self, target: FetchTarget, partition: Partition, now_ms: int | None) -> bool:
        """See rule 5. `now_ms` is None but for the first look."""
        log = partition.log
        end_offset = log.log_end_offset
        if (
            target.current_leader_epoch != partition.leader_epoch
            or target.fetch_offset != end_offset
            or target.sent_high_watermark != partition.high_watermark
            or target.sent_log_start_offset != log.log_start_offset
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
        if code == _NONE and replica_id >= 0 and not partition.has_follower(replica_id):
            code = (
                ErrorCode.UNKNOWN_LEADER_EPOCH
                if target.current_leader_epoch >= 0
                else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        if code != _NONE:
            return failed_read(target.partition, code), 0, True
        log = partition.log
        high_watermark = partition.high_watermark
        stable_end = log.last_stable_offset(high_watermark)
        data = PartitionData(
            partition_index=target.partition,
            high_watermark=high_watermark,
            last_stable_offset=stable_end,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=NO_RECORDS,
        )
        if self._rack and first_look and partition.is_leader and replica_id == CONSUMER:
            data.preferred_read_replica = self._nearest(partition, target.fetch_offset)
            if data.preferred_read_replica != LEADER:
                return data, 0, True
        if target.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(target.last_fetched_epoch)
            if end_offset < 0 or target.fetch_offset < log.log_start_offset:
                # An epoch that this log has not come to, or no longer has.
                return failed_read(target.partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True
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
            return failed_read(target.partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True
        except StorageError as error:
            return failed_read(target.partition, code_of(error)), 0, True
        if first_look and replica_id >= 0:
            partition.follower_fetched(
                replica_id,
                target.fetch_offset,
                target.log_start_offset,
                log.log_end_offset,
                self._ctx.services.clock.monotonic_ms(),
            )
            target.replica = partition
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
        data.records = found
        return data, found.size_bytes, False

    def _is_held_back(self, partition: Partition) -> bool:
        broker = self._ctx.services
        quota = broker.replicas.quotas.leader
        return (
            quota.is_throttled(partition.topic, partition.partition)
            and self._replica_id not in partition.isr
            and quota.is_exceeded(broker.clock.monotonic_ms())
        )

    def _nearest(self, partition: Partition, fetch_offset: int) -> int:
        broker = self._ctx.services
        if broker.config.str("replica.selector.class") != RACK_AWARE_SELECTOR:
            return LEADER
        racks = {broker_id: known.rack for broker_id, known in broker.metadata.brokers.items()}
        return nearest_replica(partition, self._rack, racks, fetch_offset)
