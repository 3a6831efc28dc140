"""Read the partitions in a Fetch request, within the request's size limits.

Rules
1. Partitions are read in the order of the session. The first partition with records returns at least one
   batch, however large. The other partitions return only batches that still fit into the response.
2. A follower (replica ID 0 or higher) reads to the end of the log, and the fetch offset of its first read is
   its replication progress. A consumer reads committed records. With version 11 and later of the request, a
   consumer may also read from a follower, and it is redirected to a nearer replica if replica.selector.class
   is set (KIP-392).
3. In a follower's session, partitions without new records are skipped quickly, because a broker follows
   hundreds of partitions and only a few of them receive records.
4. A throttled follower that is not in sync gets no records while the leader's quota is exceeded.
5. In a response, unknown partitions come last. For consumers, unknown topic IDs precede other errors.
6. A consumer is not notified at once of partitions that were unknown when its request arrived, because it
   would repeat the request at once. A follower is, because its leader may not know its role yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from kafka_compat.storage.errors import OffsetOutOfRange, StorageError

if TYPE_CHECKING:
    from kafka_compat.replication.fetch_context import FetchServices
    from kafka_compat.replication.fetch_session import FetchPlan, FetchTarget
    from kafka_compat.replication.partition import Partition

_NONE: Final = ErrorCode.NONE
"""A copy of ErrorCode.NONE, because access through the enumeration takes two lookups by name."""
NO_RECORDS: Final = b""
CONSUMER: Final = -1
"""The replica ID of consumers. Tools that read uncommitted records use lower IDs."""
LEADER: Final = -1
"""The preferred read replica in a response that does not redirect the consumer."""
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

Found = tuple["FetchTarget", PartitionData, int, "Partition | None"]
"""A fetched partition, its response data, the size of its records, and its local replica or None."""


class ReadResult:
    """The data read from the partitions of a Fetch request."""

    __slots__ = ("found", "is_urgent", "replicas", "total_bytes", "unknown")

    def __init__(self, unknown: Sequence[Found] = ()) -> None:
        """`unknown` contains the partitions that were unknown in the first read."""
        self.found: list[Found] = []
        self.unknown: list[Found] = [*unknown]
        """The partitions that are not in the metadata of this broker."""
        self.replicas: list[Partition] = []
        """The partitions that were read or skipped."""
        self.total_bytes = 0
        """Total size of the records, in bytes."""
        self.is_urgent = False
        """Whether the response must be sent now, because a partition has an error or has diverged."""

    def add_unknown(self, *, is_follower: bool) -> None:
        """Append the partitions in `unknown` to `found`, in the order of rule 5."""
        if not is_follower:
            self.unknown.sort(key=lambda part: part[1].error_code != ErrorCode.UNKNOWN_TOPIC_ID)
        self.found += self.unknown


class FetchReader:
    """A reader of the partitions in one Fetch request, according to the rules of this module."""

    __slots__ = ("_committed_only", "_leader_only", "_plan", "_rack", "_services", "max_bytes", "replica_id")

    def __init__(
        self,
        services: FetchServices,
        plan: FetchPlan,
        replica_id: int,
        max_bytes: int,
        rack: str,
        committed_only: bool,
        leader_only: bool,
    ) -> None:
        self._services = services
        self._plan = plan
        self.replica_id = replica_id
        """The ID of the fetching follower, or CONSUMER."""
        self.max_bytes = max_bytes
        self._rack = rack
        self._committed_only = committed_only
        self._leader_only = leader_only

    def read_into(self, result: ReadResult, targets: Sequence[FetchTarget], is_first: bool = False) -> None:
        """Read `targets` into `result`. With `is_first`, record a follower's fetch offsets as progress."""
        broker = self._services
        replicas = broker.replicas
        found, unknown, replicas_read = result.found, result.unknown, result.replicas
        passes_over = self.replica_id >= 0 and self._plan.session is not None
        now_ms = broker.clock.monotonic_ms() if is_first and passes_over else None
        is_unknown_urgent = self.replica_id >= 0 or not is_first
        for target in targets:
            partition = target.replica
            if partition is None or not partition.is_leader:
                topic = target.topic
                if isinstance(topic, UUID):
                    name = broker.metadata.topic_name(topic)
                    if name is not None:
                        target.name = name
                    elif target.name is None:
                        data = unread(target.partition, ErrorCode.UNKNOWN_TOPIC_ID)
                        unknown.append((target, data, 0, None))
                        result.is_urgent = result.is_urgent or is_unknown_urgent
                        continue
                    else:
                        name = target.name
                        if replicas.get(name, target.partition) is not None:
                            data = failed_read(target.partition, ErrorCode.INCONSISTENT_TOPIC_ID)
                            found.append((target, data, 0, None))
                            result.is_urgent = True
                            continue
                    topic = name
                partition = replicas.get(topic, target.partition)
                if partition is None:
                    code = replicas.missing(topic, target.partition)
                    data = unread(target.partition, code)
                    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        unknown.append((target, data, 0, None))
                        result.is_urgent = result.is_urgent or is_unknown_urgent
                    else:
                        found.append((target, data, 0, None))
                        result.is_urgent = True
                    continue
            elif passes_over and target.agrees and self._needs_nothing(target, partition, now_ms):
                replicas_read.append(partition)
                continue
            replicas_read.append(partition)
            data, size_bytes, is_urgent = self._read_partition(
                partition, target, self.max_bytes - result.total_bytes, result.total_bytes == 0, is_first
            )
            result.total_bytes += size_bytes
            result.is_urgent = result.is_urgent or is_urgent
            found.append((target, data, size_bytes, partition))

    def _needs_nothing(self, target: FetchTarget, partition: Partition, now_ms: int | None) -> bool:
        """Return whether rule 3 allows skipping the partition. `now_ms` is None except in the first read."""
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
        follower = in_sync.followers.get(self.replica_id)
        if follower is None or self.replica_id not in in_sync.committed:
            return False
        if now_ms is not None:
            if follower.log_end_offset != end_offset or follower.log_start_offset != target.log_start_offset:
                return False
            follower.fetched(end_offset, target.log_start_offset, end_offset, now_ms)
        return True

    def _read_partition(
        self, partition: Partition, target: FetchTarget, bytes_left: int, may_exceed: bool, is_first: bool
    ) -> tuple[PartitionData, int, bool]:
        """Return the partition's response data, the size of its records, and whether to respond at once."""
        replica_id = self.replica_id
        code = _NONE
        if target.current_leader_epoch >= 0 or not partition.is_leader:
            code = partition.check_leader_epoch(target.current_leader_epoch, self._leader_only)
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
        data = PartitionData()
        data.partition_index = target.partition
        data.high_watermark = high_watermark
        data.last_stable_offset = stable_end
        data.log_start_offset = log.log_start_offset
        data.aborted_transactions = None
        data.records = NO_RECORDS
        if self._rack and is_first and partition.is_leader and replica_id == CONSUMER:
            data.preferred_read_replica = self._nearest(partition, target.fetch_offset)
            if data.preferred_read_replica != LEADER:
                return data, 0, True
        if target.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(target.last_fetched_epoch)
            if end_offset < 0 or target.fetch_offset < log.log_start_offset:
                # Return an error: the log does not contain this epoch, or the offset is before the log start.
                return failed_read(target.partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True
            if epoch < target.last_fetched_epoch or end_offset < target.fetch_offset:
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
                return data, 0, True
        if replica_id != CONSUMER:
            upper_bound = log.log_end_offset
        else:
            upper_bound = stable_end if self._committed_only else high_watermark
        max_bytes = target.max_bytes if target.max_bytes < bytes_left else bytes_left
        if max_bytes < 0:
            max_bytes = 0
        try:
            found = log.read(target.fetch_offset, max_bytes, upper_bound, may_exceed)
        except OffsetOutOfRange:
            return failed_read(target.partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True
        except StorageError as error:
            return failed_read(target.partition, code_of(error)), 0, True
        if is_first and replica_id >= 0:
            partition.follower_fetched(
                replica_id,
                target.fetch_offset,
                target.log_start_offset,
                log.log_end_offset,
                self._services.clock.monotonic_ms(),
            )
            target.replica = partition
            target.agrees = True
        if self._committed_only:
            data.aborted_transactions = []
            if found is not None:
                try:
                    aborted = log.aborted_transactions(target.fetch_offset, upper_bound)
                except StorageError as error:
                    return failed_read(target.partition, code_of(error)), 0, True
                data.aborted_transactions = [
                    AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                    for each in aborted
                ]
        if found is None or (replica_id >= 0 and self._is_held_back(partition)):
            return data, 0, False
        data.records = found
        return data, found.size_bytes, False

    def _is_held_back(self, partition: Partition) -> bool:
        broker = self._services
        quota = broker.replicas.quotas.leader
        return (
            quota.is_throttled(partition.topic, partition.partition)
            and self.replica_id not in partition.isr
            and quota.is_exceeded(broker.clock.monotonic_ms())
        )

    def _nearest(self, partition: Partition, fetch_offset: int) -> int:
        broker = self._services
        if broker.config.str("replica.selector.class") != RACK_AWARE_SELECTOR:
            return LEADER
        racks = {broker_id: known.rack for broker_id, known in broker.metadata.brokers.items()}
        return nearest_replica(partition, self._rack, racks, fetch_offset)


def unread(partition: int, code: ErrorCode) -> PartitionData:
    """Return the response data for a partition that was not read because of an error."""
    return PartitionData(
        partition_index=partition,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        records=NO_RECORDS,
    )


def failed_read(partition: int, code: ErrorCode) -> PartitionData:
    """Return the response data for a failed read. Its aborted transactions are null."""
    data = unread(partition, code)
    data.aborted_transactions = None
    return data


def nearest_replica(
    partition: Partition, rack: str, racks: Mapping[int, str | None], fetch_offset: int
) -> int:
    """Return the most advanced in-sync follower in `rack` whose log contains `fetch_offset`. Return LEADER if
    the leader is in `rack` or no follower qualifies. `racks` contains the racks of the live brokers.
    """
    if racks.get(partition.local_id) == rack:
        return LEADER
    candidates = [
        (state.log_end_offset, state.last_caught_up_ms, -broker_id)
        for broker_id, state in partition.in_sync.followers.items()
        if racks.get(broker_id) == rack
        and broker_id in partition.isr
        and 0 <= state.log_start_offset <= fetch_offset <= state.log_end_offset
    ]
    return -max(candidates)[2] if candidates else LEADER
