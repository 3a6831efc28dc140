"""A member of a group of consumers, as its coordinator sees it; pure. See KIP-62, KIP-394.

    unjoined --join--> joined --sync--> stable --heartbeat says so--> unjoined --join--> …

A member that the coordinator no longer knows begins anew without its id. The leader of a generation is told
who the others are, and assigns.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kafka_compat.errors import ErrorCode

_AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)


class Standing(Enum):
    """Where a member is."""

    UNJOINED = "unjoined"
    STABLE = "stable"


class Refused(Exception):
    """The coordinator does not want this member; `code` says why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Membership:
    """Times are seconds of one clock."""

    def __init__(self, heartbeat_interval_s: float) -> None:
        self.standing = Standing.UNJOINED
        self.member_id = ""
        self.generation_id = -1
        self._heartbeat_interval_s = heartbeat_interval_s
        self._heard_s = 0.0

    def joined(self, code: int, member_id: str, generation_id: int) -> bool:
        """After JoinGroup: whether to go on with SyncGroup, rather than to join again. Raises Refused."""
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
            return False
        if code:
            self._put_back(code)
            return False
        self.member_id, self.generation_id = member_id, generation_id
        return True

    def synced(self, code: int, now_s: float) -> bool:
        """After SyncGroup: whether there is an assignment. Raises Refused."""
        if code:
            self._put_back(code)
            return False
        self.standing, self._heard_s = Standing.STABLE, now_s
        return True

    def is_heartbeat_due(self, now_s: float) -> bool:
        """Of a stable member."""
        return now_s - self._heard_s >= self._heartbeat_interval_s

    def wait_s(self, now_s: float) -> float:
        """Until then."""
        return max(self._heard_s + self._heartbeat_interval_s - now_s, 0.0)

    def heard(self, code: int, now_s: float) -> bool:
        """After a heartbeat: whether the member is still what it was. Raises Refused."""
        self._heard_s = now_s
        if code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            return True
        self._put_back(code)
        return False

    def _put_back(self, code: int) -> None:
        self.standing = Standing.UNJOINED
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation_id = "", -1
        elif code == ErrorCode.ILLEGAL_GENERATION:
            self.generation_id = -1
        elif code not in _AGAIN:
            raise Refused(code)
