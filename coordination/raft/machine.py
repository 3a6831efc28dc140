"""The Raft machine of one node: it takes events and the time, and returns effects."""

import random

from kafka_compat.coordination.raft.effects import Effect
from kafka_compat.coordination.raft.events import Event
from kafka_compat.coordination.raft.log_state import LogState
from kafka_compat.coordination.raft.values import (
    ElectionState,
    QuorumDescription,
    RaftSettings,
    ReplicaKey,
    Role,
    VoterSet,
)


class RaftMachine:
    """The Raft machine of one node.

    `voters` are the static voters (kraft.version 0; directory IDs are ignored), or empty: then the voters are
    those in the log and its snapshot (KIP-853). `election` and `log` come from disk; the machine owns `log`,
    and changes it as its effects change the log. Times are in milliseconds of a clock that never goes back.
    """

    def __init__(
        self,
        local: ReplicaKey,
        voters: VoterSet,
        settings: RaftSettings,
        election: ElectionState,
        log: LogState,
        random: random.Random,
    ) -> None:
        raise NotImplementedError

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle an event, and return the effects in order. The first event must be Started."""
        raise NotImplementedError

    @property
    def deadline_ms(self) -> int | None:
        """The time at which TimePassed must be sent, unless another event changes it."""
        raise NotImplementedError

    @property
    def role(self) -> Role:
        raise NotImplementedError

    @property
    def epoch(self) -> int:
        raise NotImplementedError

    @property
    def leader_id(self) -> int:
        """The ID of the known leader; -1 if it is unknown."""
        raise NotImplementedError

    @property
    def high_watermark(self) -> int:
        """The offset below which records are known to be committed; -1 if unknown."""
        raise NotImplementedError

    @property
    def voters(self) -> VoterSet:
        raise NotImplementedError

    @property
    def is_voter(self) -> bool:
        raise NotImplementedError

    def describe(self, now_ms: int) -> QuorumDescription | None:
        """Describe the quorum for DescribeQuorum; None unless this node leads.

        Times of replicas are in the same clock as `now_ms`.
        """
        raise NotImplementedError
