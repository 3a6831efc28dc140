"""Timeouts of the sessions, as the leader of the quorum measures them. No I/O, no clock.

Rules:
- A session lives as long as its process fetches from the leader, or is the leader's process.
- A new leader starts all timeouts from the beginning.
- A fetch keeps alive only the sessions of the latest incarnation of its node, because it does not name its
  incarnation. Sessions of an earlier process with another directory therefore expire.
- Time during which this process did not run is not counted, because it could not hear the other nodes.
- The sessions of a process that was killed end before their timeout. A node that has not fetched for GRACE_S
  is probed: the leader tries to connect to its controller listener. A node that closed the connection of its
  last fetch, or has not fetched from a new leader, is probed after RECONNECTION_S. The process has ended if
  - nothing listens at the address: the kernel accepts connections even of a paused process, or
  - the node closed the connection of its last fetch GRACE_S ago, and cannot be reached or has no address.
"""

from collections.abc import Iterable

from kafka_compat.coordination.replicated_store.metadata_log import Reach
from kafka_compat.coordination.replicated_store.tree_machine import SessionEntry

LOOK_EVERY_S = 0.25
"""How often `expired` must be called."""
GRACE_S = 1.5
"""How long a node may be silent before it is probed. A reconnection takes less time."""
RECONNECTION_S = LOOK_EVERY_S
"""How long a node that closed its connection has to fetch again before it is probed. It usually does so at
once.
"""
_STEP_S_MAX = 2 * LOOK_EVERY_S
"""A longer interval between two calls means that the process did not run."""


class SessionTimeouts:
    """The timeouts of one leader epoch. Times are in seconds on a monotonic clock."""

    def __init__(self, incarnation: str, sessions: Iterable[SessionEntry], now_s: float) -> None:
        """`incarnation` identifies this process."""
        self._incarnation = incarnation
        self._looked_s = now_s
        self._run_s = 0.0
        """Time that this process has run since the beginning."""
        self._sessions = {session.session_id: (session, 0.0) for session in sessions}
        self._heard: dict[int, float] = {}
        self._left: dict[int, float] = {}
        """When nodes closed the connections of their last fetches."""
        self._probed: dict[int, float] = {}
        """When nodes were last returned by `silent`."""
        self._gone: set[int] = set()
        """Nodes whose processes have ended."""
        self._ending: set[int] = set()
        """Sessions whose end was returned by `expired`, and has been neither applied nor withdrawn."""

    def opened(self, session: SessionEntry, now_s: float) -> None:
        """Start the timeout of a session that was opened."""
        self._sessions[session.session_id] = session, self._advance(now_s)
        self._gone.discard(session.opened.node_id)

    def ended(self, session_id: int) -> None:
        """Forget a session that has ended."""
        ended = self._sessions.pop(session_id, None)
        self._ending.discard(session_id)
        if ended is not None:
            node_id = ended[0].opened.node_id
            if all(session.opened.node_id != node_id for session, _ in self._sessions.values()):
                self._heard.pop(node_id, None)
                self._left.pop(node_id, None)
                self._probed.pop(node_id, None)
                self._gone.discard(node_id)

    def heard(self, node_id: int, now_s: float) -> None:
        """Record a fetch of a node."""
        self._heard[node_id] = self._advance(now_s)
        self._left.pop(node_id, None)
        self._gone.discard(node_id)

    def left(self, node_id: int, now_s: float) -> None:
        """Record that a node closed the connection of its last fetch."""
        if node_id in self._heard:
            self._left[node_id] = self._advance(now_s)

    def silent(self, now_s: float, latest: dict[int, list[str]]) -> list[int]:
        """Return the nodes to be probed. The same node is returned again after GRACE_S."""
        run_s = self._advance(now_s)
        opened_s: dict[int, float] = {}
        for session, since_s in self._sessions.values():
            _, node_id, _, incarnation, _ = session.opened
            if incarnation not in (self._incarnation, *latest[node_id][:-1]) and node_id not in self._gone:
                opened_s[node_id] = max(opened_s.get(node_id, 0.0), since_s)
        found = [node_id for node_id, at_s in opened_s.items() if run_s >= self._probe_due_s(node_id, at_s)]
        self._probed.update(dict.fromkeys(found, run_s))
        return found

    def _probe_due_s(self, node_id: int, opened_s: float) -> float:
        """Return when a node must be probed. `opened_s` is the time of its latest session."""
        heard_s, left_s = self._heard.get(node_id), self._left.get(node_id)
        last_s = max(opened_s, heard_s or 0.0, left_s or 0.0)
        probed_s = self._probed.get(node_id, -1.0)
        if probed_s >= last_s:
            return probed_s + GRACE_S
        may_have_ended = left_s is not None or (heard_s is None and opened_s == 0.0)
        return last_s + (RECONNECTION_S if may_have_ended else GRACE_S)

    def probed(self, node_id: int, reach: Reach) -> None:
        """Record the result of a probe. It counts only if the node has not fetched since the probe began."""
        probed_s = self._probed.get(node_id)
        if probed_s is None or self._heard.get(node_id, 0.0) > probed_s:
            return
        has_left = self._left.get(node_id, probed_s) <= probed_s - GRACE_S
        if reach is Reach.REFUSED or (has_left and reach is not Reach.CONNECTED):
            self._gone.add(node_id)

    def withdraw(self, session_ids: Iterable[int]) -> None:
        """Return these sessions again: the records that end them were not appended."""
        self._ending.difference_update(session_ids)

    def is_gone(self, node_id: int) -> bool:
        """Return whether the node's process has ended, so that its sessions end before their timeouts."""
        return node_id in self._gone

    def expired(self, now_s: float, latest: dict[int, list[str]]) -> list[int]:
        """Return the sessions that have expired since the last call.

        `latest` maps each node to its incarnations, the current one last.
        """
        run_s = self._advance(now_s)
        found = []
        for session_id, (session, since_s) in self._sessions.items():
            _, node_id, _, incarnation, timeout_ms = session.opened
            if incarnation == self._incarnation or session_id in self._ending:
                continue
            if latest[node_id][-1] == incarnation:
                since_s = max(since_s, self._heard.get(node_id, 0.0))
            if run_s - since_s >= timeout_ms / 1000 or node_id in self._gone:
                found.append(session_id)
        self._ending.update(found)
        return found

    def _advance(self, now_s: float) -> float:
        self._run_s += min(max(now_s - self._looked_s, 0.0), _STEP_S_MAX)
        self._looked_s = now_s
        return self._run_s
