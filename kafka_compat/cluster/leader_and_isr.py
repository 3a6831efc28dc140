"""Apply LeaderAndIsr and StopReplica requests to this broker's partitions. The requests come from
another broker or from the controller in this process.

Rules (Kafka 3.9 with ZooKeeper)
1. A request from a controller that has been replaced is rejected with STALE_CONTROLLER_EPOCH.
2. The leader epoch of a partition must increase: a LeaderAndIsr state with a known or older epoch gets
   STALE_CONTROLLER_EPOCH, and a StopReplica with an older epoch gets FENCED_LEADER_EPOCH. The StopReplica
   epochs -1 (unknown) and -2 (the topic is being deleted) are accepted.
3. If this broker has a log of a different topic with the same name, the state gets INCONSISTENT_TOPIC_ID.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from kafka_compat.coordination.controller.outcomes import EPOCH_DURING_DELETE, NO_EPOCH
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import Steps, Turn, batched
from kafka_compat.metadata import topic_log
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.replication.partition import Partition
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.errors import OutOfResources

if TYPE_CHECKING:
    from kafka_compat.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
    from kafka_compat.protocol.messages.stop_replica import StopReplicaRequest

log = logging.getLogger(__name__)

Key = tuple[str, int]


class Leaderships(Protocol):
    """Interface for notifications of leadership changes."""

    def leading(self, topic: str, partition: int) -> None:
        """Notify the listeners that this broker became leader of a partition."""

    def stopping(self, topic: str, partition: int) -> None:
        """Notify the listeners that this broker loses leadership of a partition or drops its replica."""


class LeaderState(NamedTuple):
    """The state of one partition in a LeaderAndIsr request."""

    topic: str
    topic_id: UUID
    """The topic ID, or 0 if it is unknown."""
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int
    is_new: bool
    is_reassigned: bool
    """Whether replicas are being added or removed."""


class StopState(NamedTuple):
    """One partition in a StopReplica request of any version."""

    topic: str
    partition: int
    leader_epoch: int
    delete: bool


class ReplicaStates:
    """The states of this broker's replicas. The caller checks broker and controller epochs."""

    def __init__(
        self,
        local_id: int,
        replicas: ReplicaManager,
        leaderships: Leaderships,
        min_insync_replicas: Callable[[str], int],
    ) -> None:
        self._local_id = local_id
        self._replicas = replicas
        self._leaderships = leaderships
        self._min_insync_replicas = min_insync_replicas

    def apply(self, states: Iterable[LeaderState]) -> Steps[dict[Key, ErrorCode]]:
        """Become leader or follower of the partitions, and return an error code for each partition."""
        outcomes: dict[Key, ErrorCode] = {}
        begun: list[Key] = []
        ended: list[Key] = []
        for state in states:
            key = (state.topic, state.partition)
            try:
                outcomes[key] = self._apply(state, begun, ended)
            except Exception:
                log.exception("Could not apply a LeaderAndIsr request to %s-%d", *key)
                outcomes[key] = ErrorCode.UNKNOWN_SERVER_ERROR
            yield None
        topic_log.became_leader(self._local_id, begun)
        topic_log.lost_leadership(self._local_id, ended)
        return outcomes

    def _apply(self, state: LeaderState, begun: list[Key], ended: list[Key]) -> ErrorCode:
        topic, topic_id, index = state.topic, state.topic_id, state.partition
        held = self._replicas.get(topic, index)
        if held is not None:
            if topic_id.int and held.log.topic_id not in (None, topic_id):
                return ErrorCode.INCONSISTENT_TOPIC_ID
            if state.leader_epoch <= held.leader_epoch:
                return ErrorCode.STALE_CONTROLLER_EPOCH
        if self._local_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        was_leader = held is not None and held.is_leader
        held = self._lead(state) if state.leader == self._local_id else self._follow(state)
        if held is None:
            if isinstance(self._replicas.refusal(topic, index), OutOfResources) and len(state.replicas) == 1:
                # Avoid KAFKA_STORAGE_ERROR: it would take the only replica offline, but its log is usable.
                return ErrorCode.UNKNOWN_SERVER_ERROR
            return ErrorCode.KAFKA_STORAGE_ERROR
        if state.is_reassigned:
            self._replicas.reassigning.add((topic, index))
        else:
            self._replicas.reassigning.discard((topic, index))
        if held.is_leader and not was_leader:
            self._leaderships.leading(topic, index)
            begun.append((topic, index))
        elif was_leader and not held.is_leader:
            self._leaderships.stopping(topic, index)
            ended.append((topic, index))
        return ErrorCode.NONE

    def _lead(self, state: LeaderState) -> Partition | None:
        return self._replicas.lead(
            state.topic,
            state.partition,
            state.topic_id,
            state.leader_epoch,
            state.isr,
            is_new=state.is_new,
            replicas=state.replicas,
            partition_epoch=state.partition_epoch,
            # As in Kafka, do not require more in-sync replicas than the partition has replicas.
            min_insync_replicas=min(self._min_insync_replicas(state.topic), len(state.replicas)),
        )

    def _follow(self, state: LeaderState) -> Partition | None:
        return self._replicas.follow(
            state.topic,
            state.partition,
            state.topic_id,
            state.leader,
            state.leader_epoch,
            is_new=state.is_new,
            replicas=state.replicas,
            partition_epoch=state.partition_epoch,
        )

    async def prepare(self, states: Iterable[LeaderState], turn: Turn | None = None) -> None:
        """Wait until earlier disk operations on these partitions are complete. Call this before `apply`.

        If `turn` is given, the call yields to the event loop between partitions.
        """
        wanted = (
            (state.topic, state.partition, state.topic_id)
            for state in states
            if self._local_id in state.replicas
        )
        await self._replicas.prepare(wanted, turn)

    async def stop(self, stops: Iterable[StopState], turn: Turn | None = None) -> dict[Key, ErrorCode]:
        """Drop these replicas. When all deletions are durable, return an error code for each replica.

        If `turn` is given, the call yields to the event loop between partitions.
        """
        outcomes: dict[Key, ErrorCode] = {}
        deleted: list[Key] = []
        ended: list[Key] = []
        for topic, index, leader_epoch, delete in stops:
            if turn is not None:
                await turn.pause_if_due()
            key = (topic, index)
            held = self._replicas.get(topic, index)
            if held is not None and NO_EPOCH < leader_epoch < held.leader_epoch:
                outcomes[key] = ErrorCode.FENCED_LEADER_EPOCH
                continue
            if held is not None and held.is_leader:
                self._leaderships.stopping(topic, index)
                if leader_epoch != EPOCH_DURING_DELETE:
                    ended.append(key)
            try:
                if delete:
                    deleted.append(key)
                else:
                    self._replicas.stop(topic, index)
                outcomes[key] = ErrorCode.NONE
            except Exception:
                log.exception("Could not apply a StopReplica request to %s-%d", topic, index)
                outcomes[key] = ErrorCode.KAFKA_STORAGE_ERROR
        topic_log.lost_leadership(self._local_id, ended)
        for key, error in (await self._replicas.delete_all(deleted, turn)).items():
            log.error("Could not apply a StopReplica request to %s-%d: %s", *key, error)
            outcomes[key] = ErrorCode.KAFKA_STORAGE_ERROR
        return outcomes


def states_of(request: LeaderAndIsrRequest) -> Steps[list[LeaderState]]:
    """Return the states of the partitions in a LeaderAndIsr request of any version."""
    found = [_state_of(state.topic_name, ZERO_UUID, state) for state in request.ungrouped_partition_states]
    for topic in request.topic_states:
        for some in batched(topic.partition_states):
            found += [_state_of(topic.topic_name, topic.topic_id, state) for state in some]
            yield None
    return found


def _state_of(topic: str, topic_id: UUID, state: LeaderAndIsrPartitionState) -> LeaderState:
    return LeaderState(
        topic,
        topic_id,
        state.partition_index,
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        tuple(state.replicas),
        state.partition_epoch,
        state.is_new,
        bool(state.adding_replicas or state.removing_replicas),
    )


def stops_of(request: StopReplicaRequest) -> Iterable[StopState]:
    """Yield the partitions in a StopReplica request of any version."""
    for old in request.ungrouped_partitions:
        yield StopState(old.topic_name, old.partition_index, NO_EPOCH, request.delete_partitions)
    for older in request.topics:
        for index in older.partition_indexes:
            yield StopState(older.name, index, NO_EPOCH, request.delete_partitions)
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield StopState(
                topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition
            )
