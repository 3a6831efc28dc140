"""One machine, driven by hand: node 1 of the voters 1, 2 and 3 (or fewer, or more)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.effects import Effect
from kafka_compat.coordination.raft.events import Event, RaftError
from kafka_compat.coordination.raft.log_state import LogState
from kafka_compat.coordination.raft.machine import RaftMachine
from kafka_compat.coordination.raft.values import (
    NO_NODE,
    Batch,
    ElectionState,
    OffsetAndEpoch,
    RaftSettings,
    ReplicaKey,
    Voter,
    VoterSet,
)
from kafka_compat.coordination.raft.voter_set import voter_set

E = TypeVar("E", bound=Effect)
NO_POSITION = OffsetAndEpoch(0, 0)


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, UUID(int=node_id))


def voters(*node_ids: int) -> VoterSet:
    return voter_set(Voter(key(node_id), {"C": ("h", node_id)}) for node_id in node_ids)


def log_of(*batches: tuple[int, int], snapshot: OffsetAndEpoch | None = None) -> LogState:
    """A flushed log: pairs of the epoch and the number of records."""
    log = LogState(snapshot=snapshot)
    for epoch, count in batches:
        log.append(Batch(log.end_offset, log.end_offset + count - 1, epoch))
    log.begin_flush()
    log.end_flush()
    return log


class Bench:
    """A machine that has started. `effects` are those of the last event."""

    def __init__(
        self,
        nodes: Iterable[int] = (1, 2, 3),
        *,
        local: int = 1,
        election: ElectionState = ElectionState(),  # noqa: B008
        log: LogState | None = None,
        dynamic: bool = False,
    ) -> None:
        self.now_ms = 0
        self.log = log or LogState()
        if dynamic:
            self.log.voter_sets.append((-1, voters(*nodes)))
        static = {} if dynamic else voters(*nodes)
        self.machine = RaftMachine(key(local), static, RaftSettings(), election, self.log, random.Random(1))
        self.effects: list[Effect] = []
        self.send(events.Started())

    def send(self, event: Event) -> list[Effect]:
        self.effects = self.machine.handle(event, self.now_ms)
        return self.effects

    def all(self, kind: type[E]) -> list[E]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def one(self, kind: type[E]) -> E:
        found = self.all(kind)
        assert len(found) == 1, self.effects
        return found[0]

    def pass_time(self, duration_ms: int) -> list[Effect]:
        """Let time pass, with an event at each deadline. `effects` are those of all of them."""
        end, happened = self.now_ms + duration_ms, []
        while (deadline := self.machine.deadline_ms) is not None and deadline <= end:
            self.now_ms = max(deadline, self.now_ms)
            happened += self.send(events.TimePassed())
            if self.machine.deadline_ms is not None and self.machine.deadline_ms <= self.now_ms:
                self.now_ms += 1
        self.now_ms = end
        self.effects = happened
        return happened

    def until(self, kind: type[E], within_ms: int = 5000) -> list[E]:
        """Let time pass until an effect of this kind is made, and return all of its event."""
        end = self.now_ms + within_ms
        while self.now_ms < end:
            deadline = self.machine.deadline_ms
            assert deadline is not None
            self.now_ms = max(self.now_ms + 1, deadline)
            self.send(events.TimePassed())
            if self.all(kind):
                return self.all(kind)
        raise AssertionError(f"no {kind.__name__}")

    def flush(self) -> list[Effect]:
        return self.send(events.Flushed(self.log.end_offset))

    # --- roles

    def follow(self, leader: int = 2, epoch: int = 1) -> Bench:
        """Become a follower, and return with its first fetch in `effects`."""
        self.send(events.BeginQuorumEpochRequested(0, epoch, leader, key(1)))
        return self

    def lead(self) -> Bench:
        """Become the leader of the next epoch, with the vote of node 2."""
        votes = self.until(effects.SendVote)
        while votes:
            vote = next(item for item in votes if item.node_id == 2)
            self.send(
                events.VoteAnswered(
                    vote.correlation_id, 2, RaftError.NONE, vote.epoch, NO_NODE, True, vote.pre_vote
                )
            )
            votes = [item for item in self.all(effects.SendVote) if item.node_id == 2]
        return self

    # --- messages

    def vote(
        self, epoch: int, candidate: int, last: OffsetAndEpoch = NO_POSITION, *, pre: bool = False
    ) -> bool:
        self.send(events.VoteRequested(0, epoch, key(candidate), key(1), last, pre))
        return self.one(effects.AnswerVote).granted

    def fetch(
        self, node: int, offset: int, last_epoch: int, *, epoch: int = -1, high_watermark: int = -1
    ) -> None:
        """Let another node fetch from this one."""
        epoch = self.machine.epoch if epoch < 0 else epoch
        self.send(events.FetchRequested(node, key(node), epoch, offset, last_epoch, high_watermark, 500))

    def answer_fetch(
        self,
        fetch: effects.SendFetch,
        *batches: Batch,
        error: RaftError = RaftError.NONE,
        epoch: int = 1,
        leader: int = 2,
        high_watermark: int = -1,
        diverging: OffsetAndEpoch | None = None,
        snapshot: OffsetAndEpoch | None = None,
    ) -> list[Effect]:
        return self.send(
            events.FetchAnswered(
                fetch.correlation_id,
                fetch.node_id,
                error,
                epoch,
                leader,
                high_watermark,
                0,
                diverging,
                snapshot,
                batches,
                b"",
            )
        )
