"""Members of a group: the leader, the selected protocol, and the waiting requests. `rebalance.py` decides
when these change.
"""

from collections import Counter
from dataclasses import dataclass

from kafka_compat.coordinator_runtime.machine import Waiter
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry, TimelineValue
from kafka_compat.groups.classic.records import GroupSnapshot, MemberSnapshot
from kafka_compat.groups.requests import JoinedMember, Protocols


@dataclass(slots=True, kw_only=True)
class Member:
    """One member of a group. `is_new` is true until its first rebalance has completed. `StoredGeneration`
    contains its assignment, if `has_assignment` is true: not for a new member, nor after a rebalance that was
    interrupted before the assignment was known.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    is_new: bool = False
    has_assignment: bool = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


class Roster:
    """The members of one group.

    `members` is in order of arrival: if the leader leaves, the member that joined first becomes leader.
    `pending` contains IDs that were assigned but not used yet (KIP-394); they count only when a rebalance
    waits for all members. `unsynced` contains the members whose SyncGroup for this generation has not arrived
    yet.
    """

    __slots__ = (
        "_supporters",
        "awaiting_join",
        "awaiting_sync",
        "leader_id",
        "members",
        "pending",
        "static_ids",
        "unsynced",
    )

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}
        self.pending: set[str] = set()
        self.awaiting_join: dict[str, Waiter] = {}
        self.awaiting_sync: dict[str, Waiter] = {}
        self.unsynced: set[str] = set()
        self.leader_id: str | None = None
        self._supporters: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self.members

    def add(self, member: Member) -> None:
        self.members[member.member_id] = member
        self.pending.discard(member.member_id)
        if member.group_instance_id is not None:
            self.static_ids[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._supporters.update({name for name, _ in member.protocols})

    def clear(self) -> None:
        """Remove all members and pending members. The caller must have completed their requests."""
        self.members.clear()
        self.static_ids.clear()
        self.pending.clear()
        self.unsynced.clear()
        self.leader_id = None
        self._supporters.clear()

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member, whose waiting request the caller must have completed."""
        self.pending.discard(member_id)
        self.unsynced.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.subtract({name for name, _ in member.protocols})
            if member.group_instance_id is not None:
                del self.static_ids[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def update_protocols(self, member: Member, protocols: Protocols) -> None:
        self._supporters.subtract({name for name, _ in member.protocols})
        member.protocols = protocols
        self._supporters.update({name for name, _ in protocols})

    def rename(self, old_id: str, new_id: str) -> Member:
        """Change the ID of a static member. It keeps its position in the order, and a leader stays leader."""
        member = self.members[old_id]
        member.member_id = new_id
        self.members = {one.member_id: one for one in self.members.values()}
        if member.group_instance_id is not None:
            self.static_ids[member.group_instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        if old_id in self.unsynced:
            self.unsynced.remove(old_id)
            self.unsynced.add(new_id)
        return member

    @property
    def all_joined(self) -> bool:
        return len(self.awaiting_join) == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """If the leader has not joined, elect a member that has. Return False if no member has joined."""
        if self.leader_id is None:
            return False
        if self.leader_id not in self.awaiting_join:
            joined = next((member_id for member_id in self.members if member_id in self.awaiting_join), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    def shares_protocol(self, names: set[str]) -> bool:
        """Return whether any of these protocols is supported by every member."""
        return any(self._supporters[name] == len(self.members) for name in names)

    def select_protocol(self) -> str:
        """Return the protocol with the most votes. Each member votes for its first protocol common to all."""
        candidates = {name for name, count in self._supporters.items() if count == len(self.members)}
        votes = Counter(
            next(name for name, _ in member.protocols if name in candidates)
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def joined_members(self, protocol: str | None) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(protocol))
            for member in self.members.values()
        )

    def snapshots(self, protocol: str | None, assignments: dict[str, bytes]) -> tuple[MemberSnapshot, ...]:
        """Return snapshots of all members, each with its assignment."""
        return tuple(
            MemberSnapshot(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.metadata(protocol),
                assignments[member.member_id],
            )
            for member in self.members.values()
        )


class StoredGeneration:
    """The group's generation in the log. `snapshot` is None if the log contains no generation."""

    __slots__ = ("_assignments", "_snapshot")

    def __init__(self, snapshots: SnapshotRegistry) -> None:
        self._snapshot: TimelineValue[GroupSnapshot | None] = TimelineValue(snapshots, None)
        self._assignments: dict[tuple[str | None, str], bytes] = {}

    @property
    def snapshot(self) -> GroupSnapshot | None:
        return self._snapshot.current

    @property
    def committed(self) -> GroupSnapshot | None:
        return self._snapshot.committed

    def replay(self, snapshot: GroupSnapshot | None) -> None:
        """Apply a membership record of the group."""
        self._snapshot.set(snapshot)
        members = () if snapshot is None else snapshot.members
        self._assignments = {
            _key(member.member_id, member.group_instance_id): member.assignment for member in members
        }

    def assignment(self, member: Member) -> bytes:
        """Return the assignment of a member. A static member's replacement inherits it (KIP-345)."""
        return self._assignments.get(_key(member.member_id, member.group_instance_id), b"")


def _key(member_id: str, group_instance_id: str | None) -> tuple[str | None, str]:
    return (None, member_id) if group_instance_id is None else (group_instance_id, "")
