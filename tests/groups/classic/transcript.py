"""Plays transcripts of one group: the input is commands, and the output is everything that the state machine
does, as readable text.

A transcript consists of blocks separated by empty lines. Each block contains commands, `----`, and their
outcome. `#` starts a comment.

    group delay=0 max=3 session=6000..1800000 metadata=4096 retention=60000
    join A [id=ID] [instance=I] [protocols=range:topic1,sticky:topic1] [session=10000] [rebalance=60000]
           [v=9] [reason=…]
    sync A [gen=N] [id=ID] [instance=I] [type=T] [protocol=P] [assign=A:a,B:b]
    heartbeat A [gen=N] [id=ID] [instance=I]
    leave A B [reason=…]                  leave instance=I
    commit A topic-0=5 [gen=N] [expire=T]  commit - topic-0=5
    fetch topic-0 …      delete-offsets topic-0 …      forget topic-0 …
    delete      expire      describe      advance 3000
    hold      release [ERROR]      restart      unload

Names (A, B) are clients. The machine assigns member ids A-1, A-2, …, and a client continues with its last id
and the generation that it last joined. Timers that are due immediately fire after each command. `hold` delays
the commit of writes until `release`. `restart` encodes the records and replays them into a new machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.records import GroupRecord
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
    Result,
    Sync,
    SyncResult,
    TopicPartition,
)
from kafka_compat.groups.settings import GroupSettings
from tests.groups.consumer.topics import consumer_groups
from tests.groups.player import GroupPlayer
from tests.groups.share.memory import no_share_groups
from tests.support.steps import result_of


def subscription(topics: Iterable[str]) -> bytes:
    """Return a consumer's metadata as clients send it (version 0, no user data)."""
    names = [topic.encode() for topic in topics]
    body = b"".join(len(name).to_bytes(2, "big") + name for name in names)
    return b"\0\0" + len(names).to_bytes(4, "big") + body + b"\xff\xff\xff\xff"


@dataclass
class _Client:
    member_id: str = ""
    generation_id: int = -1


class Player(GroupPlayer):
    """A group with the classic protocol, and its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = GroupSettings()
        self.clients: dict[str, _Client] = {}
        self._ids = count(1)
        self._begin()

    def _begin(self) -> None:
        self.snapshots = SnapshotRegistry()
        self.group = Group(
            "g",
            self.snapshots,
            self.settings,
            lambda prefix: f"{prefix}-{next(self._ids)}",
            consumer_groups(),
            no_share_groups(),
            GroupCounts(),
            self._now(),
        )

    def _command(self, words: list[str]) -> None:
        before = self.group.classic.rebalance.state
        super()._command(words)
        self._fire_timers(0, shows_time=False)
        after = self.group.classic.rebalance.state
        if after is not before:
            self._say(f"{before} -> {after}")

    # Commands

    def _group(
        self,
        delay: str = "0",
        max: str = "2147483647",
        session: str = "6000..1800000",
        metadata: str = "4096",
        retention: str = "604800000",
    ) -> None:
        low, high = session.split("..")
        self.settings = GroupSettings(
            group_min_session_timeout_ms=int(low),
            group_max_session_timeout_ms=int(high),
            group_max_size=int(max),
            group_initial_rebalance_delay_ms=int(delay),
            offset_metadata_max_bytes=int(metadata),
            offsets_retention_ms=int(retention),
        )
        self._begin()

    def _join(
        self,
        name: str,
        id: str | None = None,
        instance: str | None = None,
        protocols: str = "range:t",
        session: str = "10000",
        rebalance: str = "60000",
        v: str = "3",
        type: str = "consumer",
        reason: str = "none",
    ) -> None:
        version = int(v)
        request = Join(
            member_id=self._client(name).member_id if id is None else id,
            group_instance_id=instance,
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=int(session),
            rebalance_timeout_ms=int(rebalance),
            protocol_type=type,
            protocols=tuple(
                (
                    protocol.partition(":")[0],
                    subscription(filter(None, protocol.partition(":")[2].split("+"))),
                )
                for protocol in filter(None, protocols.split(","))
            ),
            reason=reason,
            requires_known_member_id=version >= 4 and instance is None,
            supports_skipping_assignment=version >= 9,
        )
        self._run(result_of(self.group.join(request, name, self._now())))

    def _sync(
        self,
        name: str,
        gen: str | None = None,
        id: str | None = None,
        instance: str | None = None,
        type: str | None = None,
        protocol: str | None = None,
        assign: str = "",
    ) -> None:
        request = Sync(
            generation_id=self._generation(name, gen),
            member_id=self._client(name).member_id if id is None else id,
            group_instance_id=instance,
            protocol_type=type,
            protocol_name=protocol,
            assignments={
                self._client(who).member_id: what.encode()
                for who, what in (part.split(":") for part in filter(None, assign.split(",")))
            },
        )
        self._run(self.group.sync(request, name, self._now()))

    def _heartbeat(
        self, name: str, gen: str | None = None, id: str | None = None, instance: str | None = None
    ) -> None:
        member_id = self._client(name).member_id if id is None else id
        error = self.group.heartbeat(self._generation(name, gen), member_id, instance, self._now())
        self._say(f"{name} <- {error.name}")

    def _leave(self, *names: str, instance: str | None = None, id: str = "", reason: str = "none") -> None:
        leaving = [
            Leaving(member_id=self._client(name).member_id, group_instance_id=None, reason=reason)
            for name in names
        ]
        if instance is not None:
            leaving = [Leaving(member_id=id, group_instance_id=instance, reason=reason)]
        for name in names:
            self._client(name).member_id = ""
        self._run(self.group.leave(leaving, "leave", self._now()))

    def _commit(
        self,
        name: str,
        *offsets: str,
        gen: str | None = None,
        id: str | None = None,
        expire: str = "-1",
        metadata: str = "",
    ) -> None:
        values = dict(offset.split("=") for offset in offsets)
        request = Commit(
            generation_id=-1 if name == "-" else self._generation(name, gen),
            member_id="" if name == "-" else self._client(name).member_id if id is None else id,
            group_instance_id=None,
            offsets={
                _partition(partition): OffsetAndMetadata(int(offset), -1, metadata, self.now_ms, int(expire))
                for partition, offset in values.items()
            },
        )
        self._run(self.group.commit_offsets(request, name, self._now()))

    def _fetch(self, *partitions: str) -> None:
        for partition in partitions:
            value = self.group.offsets.get(_partition(partition))
            unstable = " (unstable)" if self.group.offsets.is_unstable(_partition(partition)) else ""
            self._say(f"{partition}: {'none' if value is None else value.offset}{unstable}")

    def _delete_offsets(self, *partitions: str) -> None:
        wanted = [_partition(each) for each in partitions]
        self._run(result_of(self.group.delete_offsets(wanted, "admin")))

    def _forget(self, *partitions: str) -> None:
        self._run(self.group.forget_partitions([_partition(partition) for partition in partitions]))

    def _delete(self) -> None:
        self._run(result_of(self.group.delete("admin", self._now())))

    def _expire(self) -> None:
        self._run(self.group.delete_expired(self.group.expired_offsets(self._now())))

    def _describe(self) -> None:
        group = self.group.classic.describe()
        self._say(f"{group.state} type={group.protocol_type or '-'} protocol={group.protocol_name or '-'}")
        for member in group.members:
            static = f" instance={member.group_instance_id}" if member.group_instance_id else ""
            self._say(f"  {member.member_id}{static} assignment={member.assignment.decode() or '-'}")

    def _unload(self) -> None:
        self._run(self.group.unload())

    # Output of the machine

    def _answer(self, waiter: str, result: Result) -> None:
        self._say(f"{waiter} <- {self._tell(waiter, result)}")

    def _tell(self, name: str, result: Result) -> str:
        if isinstance(result, JoinResult):
            client = self._client(name)
            if result.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                client.member_id = result.member_id
            if result.error is ErrorCode.UNKNOWN_MEMBER_ID:
                client.member_id = ""
            if result.error:
                return f"{result.error.name}{f' id={result.member_id}' if result.member_id else ''}"
            client.generation_id = result.generation_id
            text = f"joined as {result.member_id}: generation {result.generation_id}, {result.protocol_name}"
            text += f", leader {result.leader_id}"
            if result.members:
                text += ", members " + " ".join(member.member_id for member in result.members)
            return text + (", skip assignment" if result.skip_assignment else "")
        if isinstance(result, SyncResult):
            return result.error.name if result.error else f"assigned {result.assignment.decode() or '-'}"
        if isinstance(result, LeaveResult):
            return ", ".join(
                f"{leaving.member_id or leaving.group_instance_id} {error.name}"
                for leaving, error in result.members
            )
        if isinstance(result, ErrorCode):
            return result.name
        return ", ".join(f"{topic}-{partition} {error.name}" for (topic, partition), error in result.items())

    def _record(self, record: Record) -> str:
        if isinstance(record, GroupRecord):
            if record.value is None:
                return "group: deleted"
            members = " ".join(
                f"{member.member_id}={member.assignment.decode() or '-'}" for member in record.value.members
            )
            return f"group: generation {record.value.generation_id}, members {members or 'none'}"
        if not isinstance(record, OffsetRecord):
            return str(record)
        value = record.value
        return f"offset {record.topic}-{record.partition}: {'deleted' if value is None else value.offset}"

    def _client(self, name: str) -> _Client:
        return self.clients.setdefault(name, _Client())

    def _generation(self, name: str, given: str | None) -> int:
        return self._client(name).generation_id if given is None else int(given)


def _partition(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return topic, int(partition)
