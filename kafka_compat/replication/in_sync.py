"""In-sync replicas of a partition, as tracked by its leader: follower progress, ISR, and committed offset. No
I/O.

Rules (KIP-497 and Apache Kafka 3.9)
1. A follower has all records below its fetch offset.
2. A follower is caught up if it has the whole log, or had the whole log within the last
   replica.lag.time.max.ms. Other followers are proposed for removal from the ISR.
3. A follower that has all records below the high watermark, and has reached the start of the leader's epoch,
   is proposed for the ISR. Without the second condition, the follower could become leader without records
   that an earlier leader committed but this leader has not committed yet.
4. At most one proposal is pending. Until the controller responds, either the committed or the proposed ISR
   may be effective, so the high watermark waits for the members of both (the maximal ISR).
5. The high watermark also waits for followers that are caught up but not in the ISR; otherwise, these
   followers might never reach it. It does not advance while the ISR is smaller than min.insync.replicas.
6. All times are monotonic, so that a change of the system time never removes a follower from the ISR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kafka_compat.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafka_compat.storage.log.log import Log

UNKNOWN_OFFSET: Final = -1
_NEVER_MS: Final = -(2**62)

_REJECTED: Final = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
"""Error codes for proposals that the controller rejected although the local state is up to date."""
_OUT_OF_DATE: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""Error codes due to an outdated local state. Until LeaderAndIsr arrives, either ISR may be effective."""
_FINAL: Final = (ErrorCode.NONE, *_OUT_OF_DATE, *_REJECTED)


class IsrAnswer(NamedTuple):
    """The controller's response to one proposal: the resulting partition state, or an error."""

    error: ErrorCode = ErrorCode.NONE
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1

    @property
    def is_out_of_date(self) -> bool:
        """Whether the leader's state was outdated. The leader must then wait for LeaderAndIsr."""
        return self.error in _OUT_OF_DATE

    @property
    def is_for_now(self) -> bool:
        """Whether the error is transient, so that the same ISR is proposed again."""
        return self.error not in _FINAL


class Proposal(NamedTuple):
    """An ISR that the leader proposed to the controller."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class LedPartition(Protocol):
    """The properties of a partition that a proposer uses."""

    topic: str
    partition: int
    log: Log


class IsrProposer(Protocol):
    """Interface for proposing an ISR to the controller, and for the liveness of other brokers."""

    def propose(
        self,
        partition: LedPartition,
        new_isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        """Propose `new_isr` (AlterPartition), and call `callback` once, after this method has returned.

        After an error that a retry may resolve (a lost connection, a different controller, an error of the
        whole request), the proposer retries as long as this broker runs. The callback receives the response
        for the partition. After a transient error of the partition, the caller must propose the ISR again.
        """

    def is_alive(self, broker_id: int) -> bool:
        """Return whether the broker is registered, according to the local metadata."""


class NoPeers:
    """The proposer of a standalone broker, which has no followers."""

    def propose(
        self,
        partition: LedPartition,
        new_isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        raise AssertionError(
            f"{partition.topic}-{partition.partition} has followers, but this broker has no peers"
        )

    def is_alive(self, broker_id: int) -> bool:
        return False


NO_PEERS: Final = NoPeers()


class FollowerState:
    """The progress of one follower, as tracked by the leader."""

    __slots__ = (
        "_last_fetch_leader_end_offset",
        "_last_fetch_ms",
        "last_caught_up_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self) -> None:
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_caught_up_ms = _NEVER_MS
        self._last_fetch_ms = _NEVER_MS
        self._last_fetch_leader_end_offset = UNKNOWN_OFFSET

    def reset(self, now_ms: int, leader_end_offset: int, *, is_new_leader: bool, in_sync: bool) -> None:
        """Start a leader epoch. In-sync followers must fetch within replica.lag.time.max.ms. Other followers
        are not caught up until they have fetched.
        """
        self.last_caught_up_ms = now_ms if in_sync else _NEVER_MS
        if is_new_leader:
            self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
            self._last_fetch_leader_end_offset = UNKNOWN_OFFSET
            self._last_fetch_ms = _NEVER_MS
        else:
            self._last_fetch_leader_end_offset = leader_end_offset
            self._last_fetch_ms = now_ms if in_sync else _NEVER_MS

    def fetched(self, fetch_offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Record a fetch from `fetch_offset` when the leader's log ended at `leader_end_offset`.

        While records are appended continuously, a follower never fetches from the log end. Therefore, if it
        fetches from the log end of its previous fetch or later, it was caught up at the previous fetch.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self._last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self._last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self._last_fetch_leader_end_offset = max(leader_end_offset, self._last_fetch_leader_end_offset)
        self._last_fetch_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return whether the follower is caught up (rule 2)."""
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_time_max_ms


_NOBODY: Final[Mapping[int, FollowerState]] = {}


class InSyncReplicas:
    __slots__ = (
        "_lag_time_max_ms",
        "_proposer",
        "committed",
        "followers",
        "local_id",
        "min_insync_replicas",
        "pending",
        "replicas",
    )

    def __init__(self, local_id: int, lag_time_max_ms: int, proposer: IsrProposer) -> None:
        self.local_id = local_id
        self.min_insync_replicas = 1
        """The topic's min.insync.replicas. `least` is the effective value."""
        self.committed: tuple[int, ...] = ()
        self.pending: Proposal | None = None
        self.replicas: tuple[int, ...] = ()
        self.followers: Mapping[int, FollowerState] = _NOBODY
        self._lag_time_max_ms = lag_time_max_ms
        self._proposer = proposer

    @property
    def maximal(self) -> tuple[int, ...]:
        """The maximal ISR (rule 4)."""
        if self.pending is None:
            return self.committed
        return tuple(dict.fromkeys((*self.committed, *self.pending.isr)))

    @property
    def least(self) -> int:
        """The number of in-sync replicas that acks=all requires, at most the number of replicas."""
        return min(self.min_insync_replicas, max(len(self.replicas), 1))

    def too_few(self, partition: str) -> KafkaError:
        """Return the error for acks=all requests when there are too few in-sync replicas."""
        isr = ", ".join(map(str, self.committed))
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"The size of the current ISR Set({isr}) is insufficient to satisfy the min.isr requirement of "
            f"{self.least} for partition {partition}",
        )

    def lead(self, replicas: tuple[int, ...], isr: tuple[int, ...]) -> None:
        """Apply the replicas and the ISR from the controller, and discard a pending proposal."""
        if len(replicas) > 1 or self.local_id not in replicas:
            others = [replica for replica in replicas if replica != self.local_id]
            self.followers = {replica: self.followers.get(replica) or FollowerState() for replica in others}
        else:
            self.followers = _NOBODY
        self.replicas = replicas
        self.committed = isr
        self.pending = None

    def apply_response(self, proposal: Proposal, answer: IsrAnswer) -> bool:
        """Apply the controller's response to the pending `proposal`, and return whether it was accepted. A
        successful response is ignored if it is for a different leader epoch or older than the proposal.
        """
        if answer.error in _REJECTED:
            self.pending = None
            return False
        if answer.leader_epoch != proposal.leader_epoch or answer.partition_epoch < proposal.partition_epoch:
            return False
        self.committed = answer.isr
        self.pending = None
        return True

    def begin_epoch(self, now_ms: int, leader_end_offset: int, *, is_new_leader: bool) -> None:
        """Start a leader epoch at `leader_end_offset`."""
        for replica, state in self.followers.items():
            state.reset(
                now_ms, leader_end_offset, is_new_leader=is_new_leader, in_sync=replica in self.committed
            )

    def follow(self, replicas: tuple[int, ...]) -> None:
        """Reset the state, because another broker is leader and tracks the in-sync replicas."""
        self.followers = _NOBODY
        self.replicas = replicas
        self.committed = ()
        self.pending = None

    def committed_end(self, local_end: int, log_end: int, now_ms: int) -> int:
        """Return the offset below which the leader and the followers in rules 4 and 5 have all records. The
        leader has the records below `local_end`.
        """
        end = local_end
        maximal = self.maximal
        for replica, state in self.followers.items():
            if state.log_end_offset < end and (
                replica in maximal
                or (
                    state.is_caught_up(log_end, now_ms, self._lag_time_max_ms)
                    and self._proposer.is_alive(replica)
                )
            ):
                end = state.log_end_offset
        return end

    def deleted_end(self, local_log_start: int) -> int:
        """Return the offset below which the leader and all live followers have deleted all records."""
        starts = [
            state.log_start_offset
            for replica, state in self.followers.items()
            if self._proposer.is_alive(replica)
        ]
        return min([local_log_start, *starts])

    def expanded(
        self, follower_id: int, high_watermark: int, epoch_start_offset: int
    ) -> tuple[int, ...] | None:
        """Return the ISR to propose after a follower's fetch (rule 3), or None if it stays unchanged."""
        if (
            self.pending is not None
            or follower_id in self.committed
            or not self._proposer.is_alive(follower_id)
        ):
            return None
        end = self.followers[follower_id].log_end_offset
        if end < high_watermark or end < epoch_start_offset:
            return None
        return (*self.committed, follower_id)

    def shrunk(self, log_end: int, now_ms: int) -> tuple[int, ...] | None:
        """Return the ISR without lagging followers (rule 2), or None if no follower is lagging."""
        if self.pending is not None:
            return None
        kept = tuple(self._kept(log_end, now_ms))
        return kept if len(kept) < len(self.committed) else None

    def _kept(self, log_end: int, now_ms: int) -> Iterable[int]:
        for replica in self.committed:
            state = self.followers.get(replica)
            if replica == self.local_id or (
                state is not None and state.is_caught_up(log_end, now_ms, self._lag_time_max_ms)
            ):
                yield replica
