"""Plays transcripts of one consumer group: the input is commands, and the output is everything that the state
machine does, as readable text.

A transcript consists of blocks separated by empty lines. Each block contains commands, `----`, and their
outcome. `#` starts a comment.

    group interval=0 max=3 policy=upgrade              topic t 6          forget t
    beat A [topics=t,u] [regex=t.*] [owned=t:0,1] [epoch=N] [instance=I] [assignor=range] [rebalance=60000]
    ack A                           leave A            pause A
    commit A t-0=5 [epoch=N]        resolve            advance 3000       describe
    hold      release [ERROR]       refuse ERROR       restart

    join A [topics=t,u] [owned=t:0,1] [id=ID] [instance=I] [protocols=range,sticky] [session=10000]
           [rebalance=60000] [type=consumer]
    sync A [assign=A:t:0,1;B:t:2] [gen=N]              alive A [gen=N]    quit A B

Names (A, B) are clients, which are also their member IDs. A client without an epoch joins. `ack` is a
heartbeat that lists the partitions of the last response as owned. `resolve` resolves the regular expressions
that the group asked for. `hold` delays the commit of writes until `release`. `restart` encodes the records
and replays them into a new machine. `join`, `sync`, `alive` (Heartbeat) and `quit` (LeaveGroup) are requests
of the classic protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.groups.classic.records import GroupRecord
from kafka_compat.groups.consumer import records as r
from kafka_compat.groups.consumer.cluster_topics import ClusterTopics
from kafka_compat.groups.consumer.embedded_protocol import encode_assignment, read_assignment
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.consumer.member import MemberState, PartitionEpochs
from kafka_compat.groups.consumer.regular_expressions import ResolveRegexes, resolved
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.group import Group
from kafka_compat.groups.records import OffsetRecord, Record
from kafka_compat.groups.requests import (
    Commit,
    Join,
    JoinResult,
    LeaveResult,
    Leaving,
    OffsetAndMetadata,
    Sync,
    SyncResult,
)
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.protocol.codec import encode_versioned
from kafka_compat.protocol.messages.consumer_protocol import ConsumerProtocolSubscription, TopicPartition
from tests.groups.consumer.topics import groups_of, topic, topic_id
from tests.groups.player import GroupPlayer
from tests.groups.share.memory import no_share_groups
from tests.support.steps import result_of


class Client:
    """What a client knows of its membership."""

    def __init__(self) -> None:
        self.epoch = 0
        self.assigned: PartitionEpochs = {}
        self.member_id = ""
        """The member ID, if the client uses the classic protocol."""
        self.instance_id: str | None = None


class Player(GroupPlayer):
    """A consumer group, and its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[str, Client] = {}
        self.metadata = MetadataCache("cluster", 1)
        self.requests: list[ResolveRegexes] = []
        self._limits: tuple[int, int, str] = (1_000, 1_000, "bidirectional")
        self._created_ids: Counter[str] = Counter()
        self._joining = ""
        """The client that sends a JoinGroup request."""
        self._begin()

    def _begin(self) -> None:
        self.snapshots = SnapshotRegistry()
        common = groups_of(self.metadata, *self._limits)
        assert isinstance(common.topics, ClusterTopics)
        self.metadata.feed.subscribe(common.topics.on_metadata)
        settings = GroupSettings(group_initial_rebalance_delay_ms=0)
        counts = GroupCounts()
        self.group = Group(
            "g",
            self.snapshots,
            settings,
            self._new_member_id,
            common,
            no_share_groups(),
            counts,
            self._now(),
        )

    def _new_member_id(self, prefix: str | None) -> str:
        prefix = prefix or self._joining
        self._created_ids[prefix] += 1
        number = self._created_ids[prefix]
        return prefix if number == 1 else f"{prefix}-{number}"

    # Commands

    def _group(self, interval: str = "1000", max: str = "1000", policy: str = "bidirectional") -> None:
        self._limits = (int(interval), int(max), policy)
        self._begin()

    def _topic(self, name: str, partitions: str) -> None:
        self.metadata.put_topic(topic(name, int(partitions)))
        self.group.consumer.members.topics_changed()

    def _forget(self, name: str) -> None:
        change = self.metadata.change()
        change.remove_topic(name)
        change.publish()
        self.group.consumer.members.topics_changed()

    def _beat(
        self,
        name: str,
        topics: str | None = None,
        regex: str | None = None,
        owned: str | None = None,
        epoch: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rebalance: str = "60000",
    ) -> None:
        client = self.clients.setdefault(name, Client())
        joins = client.epoch <= 0 if epoch is None else epoch == "0"
        request = Heartbeat(
            member_id=name,
            member_epoch=int(epoch) if epoch is not None else max(client.epoch, 0),
            client_id=name,
            client_host="/127.0.0.1",
            instance_id=instance,
            rebalance_timeout_ms=int(rebalance) if joins else -1,
            topic_names=None if topics is None else tuple(topics.split(",")),
            topic_regex=regex,
            server_assignor=assignor,
            owned={} if joins else None if owned is None else _owned(owned),
        )
        self._run(result_of(self.group.consumer_heartbeat(request, name, self._now())))

    def _ack(self, name: str, instance: str | None = None) -> None:
        client = self.clients[name]
        owned = {key: list(value) for key, value in client.assigned.items()}
        request = Heartbeat(name, client.epoch, name, "/127.0.0.1", instance_id=instance, owned=owned)
        self._run(result_of(self.group.consumer_heartbeat(request, name, self._now())))

    def _leave(self, name: str, instance: str | None = None) -> None:
        request = Heartbeat(name, -1, name, "/127.0.0.1", instance_id=instance)
        self._run(result_of(self.group.consumer_heartbeat(request, name, self._now())))

    def _pause(self, name: str, instance: str) -> None:
        request = Heartbeat(name, -2, name, "/127.0.0.1", instance_id=instance)
        self._run(result_of(self.group.consumer_heartbeat(request, name, self._now())))

    def _join(
        self,
        name: str,
        topics: str = "t",
        owned: str = "-",
        id: str | None = None,
        instance: str | None = None,
        protocols: str = "range",
        session: str = "10000",
        rebalance: str = "60000",
        type: str = "consumer",
    ) -> None:
        client = self.clients.setdefault(name, Client())
        client.instance_id = instance
        metadata = ConsumerProtocolSubscription(
            topics=topics.split(","),
            owned_partitions=[
                TopicPartition(topic=topic_name, partitions=numbers)
                for topic_name, numbers in _named(owned).items()
            ],
        )
        request = Join(
            member_id=client.member_id if id is None else id,
            group_instance_id=instance,
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=int(session),
            rebalance_timeout_ms=int(rebalance),
            protocol_type=type,
            protocols=tuple((each, encode_versioned(metadata, 1)) for each in protocols.split(",")),
            reason="none",
            requires_known_member_id=False,
            supports_skipping_assignment=True,
        )
        self._joining = name
        self._run(result_of(self.group.join(request, name, self._now())))
        self._advance("0")

    def _sync(self, name: str, assign: str = "", gen: str | None = None) -> None:
        client = self.clients[name]
        parts = [part.split(":", 1) for part in filter(None, assign.split(";"))]
        request = Sync(
            generation_id=client.epoch if gen is None else int(gen),
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer",
            protocol_name=None,
            assignments={
                self.clients[who].member_id: encode_assignment(_named(what), b"\0\1") for who, what in parts
            },
        )
        self._run(self.group.sync(request, name, self._now()))

    def _alive(self, name: str, gen: str | None = None) -> None:
        client = self.clients[name]
        generation_id = client.epoch if gen is None else int(gen)
        error = self.group.heartbeat(generation_id, client.member_id, client.instance_id, self._now())
        self._say(f"{name} <- {error.name}")

    def _quit(self, *names: str) -> None:
        leaving = [
            Leaving(self.clients.get(name, Client()).member_id or name, None, "none") for name in names
        ]
        self._run(self.group.leave(leaving, " ".join(names), self._now()))

    def _commit(self, name: str, *offsets: str, epoch: str | None = None) -> None:
        values: dict[tuple[str, int], OffsetAndMetadata] = {}
        for text in offsets:
            partition, _, offset = text.partition("=")
            topic_name, _, number = partition.rpartition("-")
            values[topic_name, int(number)] = OffsetAndMetadata(int(offset), -1, "", self.now_ms, -1)
        known = self.clients.get(name, Client()).epoch
        request = Commit(known if epoch is None else int(epoch), name, None, values)
        self._run(self.group.commit_offsets(request, name, self._now()))

    def _resolve(self) -> None:
        request = self.requests.pop(0)
        work = resolved(request, list(self.metadata.topics))
        while True:
            try:
                next(work)
            except StopIteration as stop:
                found = stop.value
                break
        found_in = self.metadata.feed.version
        self._run(result_of(self.group.regexes_resolved(found, found_in, self._now())))

    def _describe(self) -> None:
        view = self.group.consumer.state.committed
        if view is None:
            group = self.group.classic.describe()
            members = " ".join(member.member_id for member in group.members)
            self._say(f"classic group: {group.state}, {group.protocol_name or '-'}, members {members}")
            return
        self._say(f"{view.state} epoch={view.epoch} assignment={view.target_epoch}")
        for name, member in view.members.items():
            state = "" if member.state is MemberState.STABLE else f" {member.state.name.lower()}"
            target = self._told({key: list(value) for key, value in view.targets.get(name, {}).items()})
            classic = "" if member.classic is None else " (classic)"
            held = self._told(member.assigned)
            self._say(f"  {name}{classic} epoch={member.epoch}{state} has {held}, target {target}")
            if member.pending_revocation:
                self._say(f"    revokes {self._told(member.pending_revocation)}")

    # Output of the machine

    def _effect(self, effect: Any) -> None:
        if isinstance(effect, ResolveRegexes):
            self.requests.append(effect)

    def _answer(self, name: str, result: Any) -> None:
        if isinstance(result, JoinResult | SyncResult | LeaveResult):
            self._say(f"{name} <- {self._told_classic(name, result)}")
            return
        if not isinstance(result, HeartbeatResult):
            errors = ", ".join(f"{place[0]}-{place[1]} {error.name}" for place, error in result.items())
            self._say(f"{name} <- {errors}")
            return
        if result.error:
            self._say(f"{name} <- {result.error.name}")
            return
        client = self.clients[name]
        client.epoch = result.member_epoch
        assignment = ""
        if result.assignment is not None:
            client.assigned = result.assignment
            assignment = f": {self._told(result.assignment)}"
        self._say(f"{name} <- epoch {result.member_epoch}{assignment}")

    def _told_classic(self, name: str, result: JoinResult | SyncResult | LeaveResult) -> str:
        if result.error:
            return result.error.name
        if isinstance(result, LeaveResult):
            return ", ".join(f"{one.member_id} {error.name}" for one, error in result.members)
        client = self.clients[name]
        if isinstance(result, SyncResult):
            named = read_assignment(result.assignment).partitions
            return self._told({topic_id(topic_name): each for topic_name, each in named.items()})
        client.member_id, client.epoch = result.member_id, result.generation_id
        leader = f", leader {result.leader_id}" if result.leader_id else ""
        return f"joined as {result.member_id}: generation {result.generation_id}{leader}"

    def _told(self, partitions: Mapping[Any, Any]) -> str:
        names = {topic_id(name): name for name in "tuvw"}
        told = [f"{names[key]}:{','.join(map(str, numbers))}" for key, numbers in partitions.items()]
        return " ".join(sorted(told)) or "nothing"

    def _record(self, record: Record) -> str:
        match record:
            case r.GroupMetadataRecord(value=group):
                return "group: deleted" if group is None else f"group: epoch {group.epoch}"
            case r.MemberMetadataRecord(member_id=name, value=member):
                if member is None:
                    return f"member {name}: deleted"
                regex = member.topic_regex and f" /{member.topic_regex}/"
                return f"member {name}: {','.join(member.topic_names)}{regex}"
            case r.TargetMetadataRecord(value=target):
                return "target: deleted" if target is None else f"target: epoch {target.epoch}"
            case r.TargetAssignmentRecord(member_id=name, value=assignment):
                return f"target {name}: {'deleted' if assignment is None else self._told(assignment)}"
            case r.CurrentAssignmentRecord(member_id=name, value=current):
                if current is None:
                    return f"current {name}: deleted"
                state = "" if current.state is MemberState.STABLE else f" {current.state.name.lower()}"
                revokes = (
                    f", revokes {self._told(current.pending_revocation)}"
                    if current.pending_revocation
                    else ""
                )
                return (
                    f"current {name}: epoch {current.epoch}{state}, {self._told(current.assigned)}{revokes}"
                )
            case r.RegexRecord(regex=regex, value=found):
                topics = "deleted" if found is None else ",".join(sorted(found.topics)) or "-"
                return f"regex /{regex}/: {topics}"
            case OffsetRecord(topic=name, partition=partition, value=offset):
                return f"offset {name}-{partition}: {'deleted' if offset is None else offset.offset}"
            case GroupRecord(value=generation):
                if generation is None:
                    return "classic group: deleted"
                members = " ".join(each.member_id for each in generation.members)
                return f"classic group: generation {generation.generation_id}, members {members or '-'}"
            case r.PartitionMetadataRecord():
                return "topics: deleted"
            case _:
                return str(record)


def _named(text: str) -> dict[str, list[int]]:
    parts = [part.partition(":") for part in text.split() if part != "-"]
    return {name: [int(each) for each in numbers.split(",")] for name, _, numbers in parts}


def _owned(text: str) -> dict[Any, list[int]]:
    return {topic_id(name): numbers for name, numbers in _named(text).items()}
