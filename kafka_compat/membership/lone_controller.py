"""The controller of a broker that is alone: it answers what clients ask a controller, with nothing to do.

Every partition has one replica, here. It leads, unless its disk failed; no other broker could take over.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol

from kafka_compat.coordination.controller.events import (
    ElectionRequested,
    Event,
    ReassignmentRequested,
    ReassignmentsListed,
)
from kafka_compat.coordination.controller.outcomes import (
    ControllerError,
    ElectionType,
    Outcome,
    TopicPartition,
)
from kafka_compat.coordination.controller.refusals import election_failed, refused_target
from kafka_compat.coordination.controller.replies import (
    ElectionReply,
    ReassignmentReply,
    ReassignmentsReply,
    ReplyValue,
)
from kafka_compat.long_work import LongWork, Steps
from kafka_compat.metadata.cache import MetadataCache

_UNKNOWN = Outcome(ControllerError.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


class Controller(Protocol):
    """What handlers ask."""

    async def ask(self, make: Callable[[Hashable], Event]) -> ReplyValue | None:
        """The reply to the event that `make` makes of a request id; None from who is not the controller."""


class LoneController:
    """See above."""

    def __init__(self, metadata: MetadataCache, long_work: LongWork) -> None:
        self._metadata = metadata
        self._long_work = long_work

    async def ask(self, make: Callable[[Hashable], Event]) -> ReplyValue | None:
        match make(None):
            case ElectionRequested(_, election, partitions):
                elected = await self._long_work.finish(self._elect(election, partitions))
                return ElectionReply(ControllerError.NONE, elected)
            case ReassignmentRequested(_, targets):
                moved = await self._long_work.finish(self._reassign_all(targets))
                return ReassignmentReply(ControllerError.NONE, moved)
            case ReassignmentsListed():
                return ReassignmentsReply(ControllerError.NONE)
        return None

    def _elect(
        self, election: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> Steps[dict[TopicPartition, Outcome]]:
        """As Kafka's controller: of all partitions, those that need no election are left out."""
        everything = (
            TopicPartition(topic.name, each.partition)
            for topic in self._metadata.topics.values()
            for each in topic.partitions
        )
        outcomes: dict[TopicPartition, Outcome] = {}
        for partition in list(everything) if partitions is None else partitions:
            yield None
            if partition in outcomes:
                continue
            known = self._metadata.partition(*partition)
            if known is None:
                outcomes[partition] = _UNKNOWN
            elif known.leader < 0:
                outcomes[partition] = election_failed(election, partition)
            elif partitions is not None:
                not_needed = ControllerError.ELECTION_NOT_NEEDED
                outcomes[partition] = Outcome(not_needed, "Leader election not needed for topic partition.")
        return outcomes

    def _reassign_all(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Steps[dict[TopicPartition, Outcome]]:
        outcomes: dict[TopicPartition, Outcome] = {}
        for partition, target in targets.items():
            outcomes[partition] = self._reassign(partition, target)
            yield None
        return outcomes

    def _reassign(self, partition: TopicPartition, target: tuple[int, ...] | None) -> Outcome:
        """A move to where the replica is: done. There is nowhere else."""
        if target is None:
            nothing = ControllerError.NO_REASSIGNMENT_IN_PROGRESS
            return Outcome(nothing, "No partition reassignment is in progress.")
        here = {self._metadata.local_id}
        refused = refused_target(target, here if self._metadata.partition(*partition) else (), here)
        if refused is not None:
            return refused
        return Outcome(ControllerError.NONE) if self._metadata.partition(*partition) else _UNKNOWN
