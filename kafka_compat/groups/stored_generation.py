"""What the log holds of a group's members: the last generation that was stored, as all of them know it."""

from __future__ import annotations

from kafka_compat.groups.group_states import GroupSnapshot, Member


class StoredMembership:
    """`snapshot` changes in `replay` alone; None before anything was stored, or when it was deleted."""

    __slots__ = ("_assignments", "snapshot")

    def __init__(self) -> None:
        self.snapshot: GroupSnapshot | None = None
        self._assignments: dict[tuple[str | None, str], bytes] = {}

    def replay(self, snapshot: GroupSnapshot | None) -> None:
        """A group's record is committed."""
        self.snapshot = snapshot
        members = () if snapshot is None else snapshot.members
        self._assignments = {
            _key(member.member_id, member.group_instance_id): member.assignment for member in members
        }

    def assignment(self, member: Member) -> bytes:
        """What the member is assigned. A static member's goes over to whoever takes its place (KIP-345)."""
        return self._assignments.get(_key(member.member_id, member.group_instance_id), b"")


def _key(member_id: str, group_instance_id: str | None) -> tuple[str | None, str]:
    return (None, member_id) if group_instance_id is None else (group_instance_id, "")
