"""Plays transcripts of one share group: the input is commands, and the output is everything that the state
machine does, as readable text.

A transcript consists of blocks separated by empty lines. Each block contains commands, `----`, and their
outcome. `#` starts a comment.

    group interval=0 max=3         topic t 3          forget t
    beat A [topics=t,u] [epoch=N] [rack=R]             leave A
    alter t-0=5 u-1=7              delete-offsets t u  delete          describe
    done [ERROR]                   commit t-0=5        join A          consumer A
    advance 3000      hold      release [ERROR]       refuse ERROR     restart

Names (A, B) are members. A member without an epoch joins. `>` are calls of the share coordinator, which
`done` completes, one at a time. `join` (JoinGroup), `consumer` (ConsumerGroupHeartbeat) and `commit` are
requests of other types of groups. `forget` deletes a topic. `hold` delays the commit of writes until
`release`, and `refuse` lets the next append fail. `restart` encodes the records and replays them into a new
machine, which loses the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.group import Group
from kafka_compat.groups.records import OffsetRecord, Record
from kafka_compat.groups.requests import Commit, Join, JoinResult, OffsetAndMetadata
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.groups.share import records as r
from kafka_compat.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatResult
from kafka_compat.groups.share.members import InitializeStates
from kafka_compat.groups.share.offset_changes import (
    AlteredTopic,
    AlterStates,
    DeleteStates,
    NewOffsets,
    OffsetsResult,
)
from kafka_compat.groups.share.partition_states import Partitions
from kafka_compat.metadata.cache import MetadataCache
from tests.groups.consumer.topics import consumer_groups, topic, topic_id
from tests.groups.player import GroupPlayer
from tests.groups.share.memory import share_groups_of
from tests.support.steps import result_of

Call = InitializeStates | AlterStates | DeleteStates
NAMES = {topic_id(name): name for name in "tuvw"}


class Player(GroupPlayer):
    """A share group, and its members."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs: dict[str, int] = {}
        self.metadata = MetadataCache("cluster", 1)
        self.calls: list[Call] = []
        self._limits = (0, 1_000)
        self._begin()

    def _begin(self) -> None:
        self.snapshots = SnapshotRegistry()
        self.calls.clear()
        interval_ms, size_max = self._limits
        self.group = Group(
            "g",
            self.snapshots,
            GroupSettings(group_initial_rebalance_delay_ms=0),
            lambda prefix: f"{prefix}-1",
            consumer_groups(),
            share_groups_of(self.metadata, assignment_interval_ms=interval_ms, size_max=size_max),
            GroupCounts(),
            self._now(),
        )

    # Commands

    def _group(self, interval: str = "0", max: str = "1000") -> None:
        self._limits = (int(interval), int(max))
        self.epochs.clear()
        self.log.clear()
        self._begin()

    def _topic(self, name: str, partitions: str) -> None:
        self.metadata.put_topic(topic(name, int(partitions)))
        self.group.topics_changed(frozenset([name]))

    def _forget(self, name: str) -> None:
        change = self.metadata.change()
        change.remove_topic(name)
        change.publish()
        self.group.topics_changed(frozenset([name]))
        self._run(self.group.topics_deleted([topic_id(name)], self._now()))

    def _beat(
        self, name: str, topics: str | None = None, epoch: str | None = None, rack: str | None = None
    ) -> None:
        request = ShareHeartbeat(
            name,
            self.epochs.get(name, 0) if epoch is None else int(epoch),
            name,
            "/127.0.0.1",
            rack,
            None if topics is None else tuple(topics.split(",")),
        )
        self._run(result_of(self.group.share_heartbeat(request, name, self._now())))

    def _leave(self, name: str) -> None:
        self._beat(name, epoch="-1")

    def _alter(self, *offsets: str) -> None:
        topics: dict[str, list[tuple[int, int]]] = {}
        for text in offsets:
            partition, _, offset = text.partition("=")
            name, _, number = partition.partition("-")
            topics.setdefault(name, []).append((int(number), int(offset)))
        wanted = [NewOffsets(name, each) for name, each in topics.items()]
        self._run(result_of(self.group.alter_share_offsets(wanted, "admin", self._now())))

    def _delete_offsets(self, *names: str) -> None:
        self._run(result_of(self.group.delete_share_offsets(names, "admin", self._now())))

    def _delete(self) -> None:
        self._run(result_of(self.group.delete("admin", self._now())))

    def _done(self, error: str = "NONE") -> None:
        """Let the share coordinator respond to the first call, with this error for its first partition."""
        call = self.calls.pop(0)
        partitions = _partitions_of(call)
        errors = dict.fromkeys(partitions, ErrorCode.NONE)
        if partitions:
            errors[partitions[0]] = ErrorCode[error]
        if isinstance(call, DeleteStates):
            self._run(self.group.states_deleted(call, errors, self._now()))
        else:
            self._run(self.group.states_initialized(call, errors, self._now()))

    def _join(self, name: str) -> None:
        request = Join(
            member_id="",
            group_instance_id=None,
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(("range", b""),),
            reason="none",
            requires_known_member_id=False,
            supports_skipping_assignment=True,
        )
        self._run(result_of(self.group.join(request, name, self._now())))

    def _consumer(self, name: str) -> None:
        request = Heartbeat(name, 0, name, "/h", rebalance_timeout_ms=1_000, topic_names=("t",), owned={})
        self._run(result_of(self.group.consumer_heartbeat(request, name, self._now())))

    def _commit(self, text: str) -> None:
        partition, _, offset = text.partition("=")
        name, _, number = partition.partition("-")
        offsets = {(name, int(number)): OffsetAndMetadata(int(offset), -1, "", self.now_ms, -1)}
        self._run(self.group.commit_offsets(Commit(-1, "", None, offsets), "client", self._now()))

    def _describe(self) -> None:
        if self.group.is_dead:
            self._say("no group")
            return
        view = self.group.share.state.committed
        if view is None:
            self._say(f"{self.group.view.type} group: {self.group.view.state}")
            return
        self._say(f"{view.state} epoch={view.epoch} assignment={view.target_epoch}")
        for name, member in view.members.items():
            self._say(f"  {name} epoch={member.epoch} has {_told(member.assigned)}")
        self._say(f"  states: {_told_states(view.partition_states)}")

    # Output of the machine

    def _effect(self, effect: Call) -> None:
        self.calls.append(effect)
        self._say(f"> {_told_call(effect)}")

    def _answer(self, waiter: str, result: Any) -> None:
        self._say(f"{waiter} <- {self._told_result(waiter, result)}")

    def _told_result(self, waiter: str, result: Any) -> str:
        if isinstance(result, ShareHeartbeatResult):
            if result.error:
                return result.error.name
            self.epochs[waiter] = max(result.member_epoch, 0)
            assigned = "" if result.assignment is None else f": {_told(result.assignment)}"
            return f"epoch {result.member_epoch}{assigned}"
        if isinstance(result, OffsetsResult):
            if result.error:
                return result.error.name
            return ", ".join(_told_topic(each) for each in result.topics) or "nothing"
        if isinstance(result, JoinResult | HeartbeatResult):
            return result.error.name
        if isinstance(result, ErrorCode):
            return result.name
        return ", ".join(f"{name}-{number} {error.name}" for (name, number), error in result.items())

    def _record(self, record: Record) -> str:
        match record:
            case r.ShareGroupRecord(value=group):
                return "group: deleted" if group is None else f"group: epoch {group.epoch}"
            case r.ShareMemberRecord(member_id=name, value=member):
                return f"member {name}: {'deleted' if member is None else ','.join(member.topic_names)}"
            case r.ShareTargetMetadataRecord(value=target):
                return "target: deleted" if target is None else f"target: epoch {target.epoch}"
            case r.ShareTargetRecord(member_id=name, value=assignment):
                return f"target {name}: {'deleted' if assignment is None else _told(assignment)}"
            case r.ShareCurrentRecord(member_id=name, value=current):
                if current is None:
                    return f"current {name}: deleted"
                return f"current {name}: epoch {current.epoch}, {_told(current.assigned)}"
            case r.PartitionStatesRecord(value=states):
                return f"states: {'deleted' if states is None else _told_states(states)}"
            case OffsetRecord(topic=name, partition=number, value=offset):
                return f"offset {name}-{number}: {'deleted' if offset is None else offset.offset}"
            case _:
                return str(record)


def _partitions_of(call: Call) -> list[tuple[UUID, int]]:
    match call:
        case DeleteStates():
            return list(call.partitions)
        case AlterStates():
            return list(call.states.start_offsets)
        case _:
            return list(call.start_offsets)


def _told_call(call: Call) -> str:
    if isinstance(call, DeleteStates):
        return "delete " + " ".join(f"{NAMES[key]}-{number}" for key, number in call.partitions)
    states = call.states if isinstance(call, AlterStates) else call
    offsets = " ".join(
        f"{NAMES[key]}-{number}={offset}" for (key, number), offset in states.start_offsets.items()
    )
    return f"initialize in epoch {states.state_epoch}: {offsets}"


def _told_topic(topic: Any) -> str:
    if isinstance(topic, AlteredTopic):
        return ", ".join(f"{topic.name}-{number} {error.name}" for number, error in topic.partitions)
    return f"{topic.name} {topic.error.name}"


def _told(partitions: Mapping[Any, Any]) -> str:
    told = [f"{NAMES[key]}:{','.join(map(str, sorted(each)))}" for key, each in partitions.items()]
    return " ".join(sorted(told)) or "nothing"


def _told_states(states: Any) -> str:
    def told(partitions: Partitions) -> str:
        return _told({key: each.partitions for key, each in partitions.items()})

    parts = [f"initialized {told(states.initialized)}"]
    if states.initializing:
        parts.append(f"initializing {told(states.initializing)}")
    if states.deleting:
        parts.append(f"deleting {' '.join(sorted(states.deleting.values()))}")
    return ", ".join(parts)
