"""LeaderAndIsr and StopReplica: the controller's word on the partitions that this broker holds.

Rules (Kafka 3.9 with ZooKeeper)
1. A request of a controller that another has followed is refused: STALE_CONTROLLER_EPOCH.
2. A partition's leader epoch must rise; a state that is known already, or older, gets STALE_CONTROLLER_EPOCH,
   and an older StopReplica FENCED_LEADER_EPOCH (-1 and -2 pass: unknown, and a topic that is deleted).
3. A folder of another topic of the same name is not this one's: INCONSISTENT_TOPIC_ID while it is held.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol
from uuid import UUID

from kafka_compat.coordination.controller.outcomes import EPOCH_DURING_DELETE, NO_EPOCH
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import Steps, Turn
from kafka_compat.metadata import topic_log
from kafka_compat.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from kafka_compat.protocol.messages.stop_replica import StopReplicaRequest
from kafka_compat.replication.partition import Partition
from kafka_compat.replication.replica_manager import ReplicaManager

log = logging.getLogger(__name__)

Key = tuple[str, int]


class Leaderships(Protocol):
    """Who wants to know what this broker leads."""

    def leading(self, topic: str, partition: int) -> None:
        """It has begun to lead a partition."""

    def stopping(self, topic: str, partition: int) -> None:
        """It leads a partition no more, or holds it no more."""


class StopState(NamedTuple):
    """One partition of a StopReplica, whatever its version."""

    topic: str
    partition: int
    leader_epoch: int
    delete: bool


class ReplicaStates:
    """See the rules above. Fencing by broker and controller epochs is the caller's."""

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

    def apply(self, request: LeaderAndIsrRequest) -> Steps[dict[Key, ErrorCode]]:
        """Lead and follow what the request says; the outcome of each partition."""
        outcomes: dict[Key, ErrorCode] = {}
        begun: list[Key] = []
        ended: list[Key] = []
        for topic, topic_id, state in states_of(request):
            key = (topic, state.partition_index)
            try:
                outcomes[key] = self._apply(topic, topic_id, state, begun, ended)
            except Exception:
                log.exception("LeaderAndIsr of %s-%d failed", *key)
                outcomes[key] = ErrorCode.UNKNOWN_SERVER_ERROR
            yield None
        topic_log.leads_from_now_on(self._local_id, begun)
        topic_log.leads_no_more(self._local_id, ended)
        return outcomes

    def _apply(
        self,
        topic: str,
        topic_id: UUID,
        state: LeaderAndIsrPartitionState,
        begun: list[Key],
        ended: list[Key],
    ) -> ErrorCode:
        index = state.partition_index
        held = self._replicas.get(topic, index)
        if held is not None:
            if topic_id.int and held.log.topic_id not in (None, topic_id):
                return ErrorCode.INCONSISTENT_TOPIC_ID
            if state.leader_epoch <= held.leader_epoch:
                return ErrorCode.STALE_CONTROLLER_EPOCH
        if self._local_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        was_leader = held is not None and held.is_leader
        held = (
            self._lead(topic, topic_id, state)
            if state.leader == self._local_id
            else self._follow(topic, topic_id, state)
        )
        if held is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if state.adding_replicas or state.removing_replicas:
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

    def _lead(self, topic: str, topic_id: UUID, state: LeaderAndIsrPartitionState) -> Partition | None:
        return self._replicas.lead(
            topic,
            state.partition_index,
            topic_id,
            state.leader_epoch,
            tuple(state.isr),
            is_new=state.is_new,
            replicas=tuple(state.replicas),
            partition_epoch=state.partition_epoch,
            # As in Kafka, no more than the partition has.
            min_insync_replicas=min(self._min_insync_replicas(topic), len(state.replicas)),
        )

    def _follow(self, topic: str, topic_id: UUID, state: LeaderAndIsrPartitionState) -> Partition | None:
        return self._replicas.follow(
            topic,
            state.partition_index,
            topic_id,
            state.leader,
            state.leader_epoch,
            is_new=state.is_new,
            replicas=tuple(state.replicas),
            partition_epoch=state.partition_epoch,
        )

    async def prepare(self, request: LeaderAndIsrRequest) -> None:
        """Wait until the disk has done what was decided before about these partitions; then `apply`."""
        await self._replicas.prepare(
            (topic, state.partition_index, topic_id)
            for topic, topic_id, state in states_of(request)
            if self._local_id in state.replicas
        )

    async def stop(self, request: StopReplicaRequest, turn: Turn | None = None) -> dict[Key, ErrorCode]:
        """Hold these partitions no more; the outcome of each, once those that are deleted cannot come back.

        `turn` is the caller's on the event loop; None for one that may take all the time it needs.
        """
        outcomes: dict[Key, ErrorCode] = {}
        deleted: list[Key] = []
        ended: list[Key] = []
        for topic, index, leader_epoch, delete in stops_of(request):
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
                log.exception("StopReplica of %s-%d failed", topic, index)
                outcomes[key] = ErrorCode.KAFKA_STORAGE_ERROR
        topic_log.leads_no_more(self._local_id, ended)
        for key, error in (await self._replicas.delete_all(deleted, turn)).items():
            log.error("StopReplica of %s-%d: %s", *key, error)
            outcomes[key] = ErrorCode.KAFKA_STORAGE_ERROR
        return outcomes


def states_of(request: LeaderAndIsrRequest) -> Iterable[tuple[str, UUID, LeaderAndIsrPartitionState]]:
    """The partitions of a LeaderAndIsr with their topics, also of the versions before 2."""
    for state in request.ungrouped_partition_states:
        yield state.topic_name, UUID(int=0), state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, topic.topic_id, state


def stops_of(request: StopReplicaRequest) -> Iterable[StopState]:
    """The partitions of a StopReplica, also of the versions before 3."""
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
