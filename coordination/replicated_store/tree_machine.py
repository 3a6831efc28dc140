"""The tree and its sessions as a pure function of the records: equal records give equal trees on all nodes.

Rules:
- The zxid of a change is the offset of its record, and so is the ID of a session that a record opens. The
  first record of a log is Raft's own, so that no ID is 0.
- A call whose number is not the next one of its session has no effect: neither a repetition, nor a call whose
  predecessor is missing.
- The first session of a new incarnation of a node ends the sessions of its earlier incarnations that used the
  same directory, in the same step. An earlier incarnation cannot open another session: its record was sent
  before it died, or two processes have the same node ID.
"""

import hashlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kafka_compat.coordination.replicated_store import records
from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord, Steps
from kafka_compat.coordination.replicated_store.records import BadRecord, Outcome
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.journal import encode_node, restore_node
from kafka_compat.coordination.store.metadata_store import Event
from kafka_compat.coordination.store.tree import Tree, TreeImage, split

OUTCOMES_KEPT = 256
"""Maximum number of outcomes kept for a session. They are needed only if its node, while it waits for calls,
falls so far behind that it gets a snapshot. The outcome of an earlier call is then unknown to it."""
INCARNATIONS_KEPT = 8
"""Number of incarnations kept for each node. Records of earlier processes do not stay under way longer."""
NODES_PER_RECORD = 200
_NODE_BYTES_PER_RECORD = 256 * 1024
_PATHS_PER_STEP = 1000


class SessionEntry:
    """A session, as all nodes know it."""

    __slots__ = ("ephemerals", "last_call", "opened", "outcomes", "session_id")

    def __init__(self, session_id: int, opened: records.OpenSession) -> None:
        self.session_id = session_id
        self.opened = opened
        self.last_call = 0
        self.outcomes: deque[Outcome] = deque(maxlen=OUTCOMES_KEPT)
        """The outcomes of the calls whose result the owner may not know yet."""
        self.ephemerals: set[str] = set()


class Ended(NamedTuple):
    """A session that has ended. `closed` is set if its owner has closed it."""

    session_id: int
    closed: bool


class Applied(NamedTuple):
    """What happened when a record was applied."""

    events: Sequence[Event] = ()
    session_id: int = 0
    outcome: Outcome | None = None
    """The outcome of a call of the session `session_id`."""
    opened: SessionEntry | None = None
    refused_token: str | None = None
    """The token of an OpenSession that an earlier incarnation sent."""
    ended: Sequence[Ended] = ()


NOTHING = Applied()


class TreeMachine:
    """The state after the records so far."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.sessions: dict[int, SessionEntry] = {}
        self.incarnations: dict[int, list[str]] = {}
        """Maps each node to its latest incarnations that have opened a session, the current one last."""
        self.end_offset = 0
        """The offset after the last record that was applied."""
        self._by_token: dict[str, SessionEntry] = {}
        """Maps the token of each session's OpenSession record to the session."""

    def apply(self, record: AppliedRecord) -> Applied:
        """Apply a record. Raises BadRecord, without an effect, if it is unknown."""
        change = records.decode_change(record)
        self.end_offset = record.offset + 1
        if isinstance(change, records.Transaction):
            return self._transaction(record.offset, change)
        if isinstance(change, records.OpenSession):
            return self._open(record.offset, change)
        return self._close(record.offset, change)

    def _transaction(self, offset: int, change: records.Transaction) -> Applied:
        session = self.sessions.get(change.session_id)
        if session is None or change.call != session.last_call + 1:
            return NOTHING
        session.last_call = change.call
        outcomes = session.outcomes
        while outcomes and outcomes[0].call < change.first_unknown:
            outcomes.popleft()
        events: Sequence[Event] = ()
        try:
            results, events = self._perform(offset, change.operations, session.session_id, change.time_ms)
            outcome = Outcome(change.call, results)
        except stores.TransactionFailed as error:
            outcome = records.failed(change.call, error)
        outcomes.append(outcome)
        return Applied(events, session.session_id, outcome)

    def _perform(
        self, offset: int, operations: Sequence[stores.Operation], session_id: int, now_ms: int
    ) -> tuple[Sequence[str | stores.Stat | None], list[Event]]:
        self.tree.zxid = offset - 1
        owners = {
            operation.path: node.owner
            for operation in operations
            if isinstance(operation, stores.Delete) and (node := self.tree.nodes.get(operation.path))
        }
        results, changes, events = self.tree.apply(operations, session_id, now_ms)
        for kind, path, *rest in changes:
            if kind == "create" and rest[1]:
                self.sessions[session_id].ephemerals.add(path)
                owners[path] = session_id
            elif kind == "delete" and (owner := self.sessions.get(owners.get(path, 0))):
                owner.ephemerals.discard(path)
        return results, events

    def _open(self, offset: int, opened: records.OpenSession) -> Applied:
        if opened.token in self._by_token:
            return NOTHING
        known = self.incarnations.setdefault(opened.node_id, [])
        ended: list[Ended] = []
        events: list[Event] = []
        if opened.incarnation in known[:-1]:
            return Applied(refused_token=opened.token)
        if not known or known[-1] != opened.incarnation:
            known.append(opened.incarnation)
            del known[:-INCARNATIONS_KEPT]
            for session in list(self.sessions.values()):
                earlier = session.opened
                if (earlier.node_id, earlier.directory_id) == (opened.node_id, opened.directory_id):
                    events += self._end(offset, session)
                    ended.append(Ended(session.session_id, closed=False))
        entry = self._add(SessionEntry(offset, opened))
        return Applied(events, opened=entry, ended=ended)

    def _add(self, session: SessionEntry) -> SessionEntry:
        self.sessions[session.session_id] = self._by_token[session.opened.token] = session
        return session

    def _close(self, offset: int, change: records.CloseSession) -> Applied:
        session = self.sessions.get(change.session_id)
        if session is None or change.call not in (None, session.last_call + 1):
            return NOTHING
        events = self._end(offset, session)
        return Applied(events, ended=[Ended(session.session_id, change.call is not None)])

    def _end(self, offset: int, session: SessionEntry) -> list[Event]:
        """Remove a session and its ephemeral nodes. Return the events."""
        del self.sessions[session.session_id], self._by_token[session.opened.token]
        deletes = [stores.Delete(path) for path in sorted(session.ephemerals)]
        self.tree.zxid = offset - 1
        return self.tree.apply(deletes, session.session_id, 0)[2]

    # --- snapshots

    def snapshot(self) -> "Snapshot":
        """Return a snapshot of the current state, to be read while records are applied."""
        return Snapshot(self)

    def restore(self, offset: int, saved: Iterable[AppliedRecord]) -> Steps:
        """Fill this new machine with a snapshot of all records below `offset`. Raises BadRecord."""
        payloads: dict[str, bytes] = {}
        self.tree.nodes.clear()
        summary: records.Summary | None = None
        for record in saved:
            item = records.decode_saved(record)
            try:
                if isinstance(item, records.Nodes):
                    self._restore_nodes(item.nodes, payloads)
                elif isinstance(item, records.SavedSession):
                    entry = self._add(SessionEntry(item.session_id, item.opened))
                    entry.last_call = item.last_call
                    entry.outcomes.extend(item.outcomes)
                elif isinstance(item, records.Summary):
                    summary = item
                else:
                    self.incarnations = dict(item.by_node)
            except (ValueError, TypeError, LookupError) as error:
                raise BadRecord(f"type {record.type} of a snapshot is malformed: {error!r}") from None
            yield
        if summary != (len(self.tree.nodes), len(self.sessions)):
            raise BadRecord(
                f"the snapshot has {len(self.tree.nodes)} nodes and {len(self.sessions)} sessions "
                f"instead of {summary}"
            )
        self.end_offset = offset
        self.tree.zxid = offset - 1

    def _restore_nodes(self, nodes: list[list[Any]], payloads: dict[str, bytes]) -> None:
        for values in nodes:
            restore_node(self.tree, values, payloads)
            owner = values[6]
            if owner:
                self.sessions[owner].ephemerals.add(values[0])

    def dismantle(self) -> Steps:
        """Free the nodes, little by little. The machine must not be used any more."""
        nodes = self.tree.nodes
        if self.tree.image is not None:
            self.tree.image.close()
        while len(nodes) > 1:
            for _ in range(min(_PATHS_PER_STEP, len(nodes) - 1)):
                path, _node = nodes.popitem()
                parent_path, name = split(path)
                if parent := nodes.get(parent_path):
                    parent.children.pop(name, None)
            yield

    def digest(self) -> str:
        """Return a hash of everything: the nodes, the sessions and the incarnations."""
        sha = hashlib.sha256()
        for path in sorted(self.tree.nodes):
            sha.update(repr((path, self.tree.nodes[path].values())).encode())
        for session_id, session in sorted(self.sessions.items()):
            outcomes = [(item.call, list(item.results), *item[2:]) for item in session.outcomes]
            known = (session_id, session.opened, session.last_call, outcomes, sorted(session.ephemerals))
            sha.update(repr(known).encode())
        sha.update(repr(sorted(self.incarnations.items())).encode())
        return sha.hexdigest()


class Snapshot(Iterator[bytes]):
    """The framed records of a snapshot. Each is made when it is taken."""

    def __init__(self, machine: TreeMachine) -> None:
        self._image: TreeImage = machine.tree.take_image()
        self._sessions = [
            records.SavedSession(
                session.session_id, session.opened, session.last_call, tuple(session.outcomes)
            )
            for session in machine.sessions.values()
        ]
        self._incarnations = [(node_id, list(known)) for node_id, known in machine.incarnations.items()]
        self._records = self._made()

    def __next__(self) -> bytes:
        return next(self._records)

    def close(self) -> None:
        """Stop: the changes of the tree are no longer tracked."""
        self._records.close()
        self._image.close()

    def _made(self) -> Generator[bytes, None, None]:
        yield records.framed(records.SUMMARY, [self._image.count, len(self._sessions)])
        yield records.framed(records.INCARNATIONS, self._incarnations)
        # Sessions come before the nodes, whose owners they are.
        for session in self._sessions:
            yield session.framed()
        nodes: list[list[Any]] = []
        size_bytes = 0
        for path, values in self._image.read():
            nodes.append(encode_node(path, values))
            size_bytes += len(path) + len(values[0] or b"")
            if len(nodes) == NODES_PER_RECORD or size_bytes > _NODE_BYTES_PER_RECORD:
                yield records.framed(records.NODES, nodes)
                nodes, size_bytes = [], 0
        if nodes:
            yield records.framed(records.NODES, nodes)
        self._image.close()
