"""The ACLs of a cluster, stored in the metadata store and cached in memory.

Rules
1. Decisions use the cached copy (`Rules`), which follows the store: see coordination/nodes/following.py.
2. A change is written together with its notification, on condition that the node has not changed since it was
   read. After a conflict, the node is read and changed again. A broker applies its change before it responds.
3. An unreadable node may contain a denial. Its last known ACLs therefore stay in effect; if no ACLs are
   known, only super users may access the resources to which the node applies.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.following import Following, Notices
from kafka_compat.coordination.nodes.malformed_nodes import NO_VERSION, MalformedNode, MalformedNodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import Event, MetadataStore
from kafka_compat.error_mapping import as_kafka_error
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.long_work import Turn, batched
from kafka_compat.security.acls import bindings as acls
from kafka_compat.security.acls.bindings import Binding, Entry, Filter, Pattern, PatternType
from kafka_compat.security.acls.rules import Rules
from kafka_compat.security.authorizer import Operation
from kafka_compat.tasks import Tasks, asked_for_all

log = logging.getLogger(__name__)

WRITES_MAX: Final = 11
"""Maximum number of attempts at a change while other brokers change the same node, as in Kafka."""
RETRY_S: Final = 0.1
_READS_AT_ONCE: Final = 100

Entries = frozenset[Entry]
Change = Callable[[Entries], Entries]

_CLOSED: Final = frozenset((Entry(str(acls.EVERYBODY), acls.WILDCARD, Operation.ALL, acls.Permission.DENY),))
_MALFORMED: Final = "its last known ACLs stay in effect; without any, only super users are allowed"


class Known(NamedTuple):
    """The ACLs in a pattern's node, and the version of the node, or None if the node does not exist."""

    entries: Entries
    version: int | None


_ABSENT: Final = Known(frozenset(), None)


class Deleted(NamedTuple):
    """An ACL that matched a filter. `error` is the reason why it was not deleted, or None on success."""

    binding: Binding
    error: KafkaError | None


class Keeper:
    """The ACLs in the metadata store: a cached copy, and operations that change them."""

    def __init__(self, store: MetadataStore, rules: Rules, tasks: Tasks, now_ms: Callable[[], int]) -> None:
        """`rules` receives the ACLs from the store."""
        self._store = store
        self._rules = rules
        self._malformed = MalformedNodes()
        self._known: dict[Pattern, Known] = {}
        self._closed: set[Pattern] = set()
        """The patterns whose nodes are unreadable (rule 3)."""
        self._lock = asyncio.Lock()
        decoders = {
            PatternType.LITERAL: acls.decode_literal_change,
            PatternType.PREFIXED: acls.decode_extended_change,
        }
        self._mended: set[Pattern] = set()
        """Patterns whose unreadable nodes have changed, so that they must be read again."""
        self._following = Following(
            "the ACLs",
            store,
            acls.PERSISTENT_PATHS,
            self._read_all,
            [
                Notices(acls.CHANGES[kind], acls.CHANGE_PREFIX, partial(self._hear, decode), now_ms)
                for kind, decode in decoders.items()
            ],
            tasks,
            self._reread_mended,
        )

    async def start(self) -> None:
        """Read all ACLs, and follow later changes. Raises MetadataStoreError if the ACLs cannot be read."""
        await self._following.start()

    def candidates(self, wanted: Filter) -> Iterator[tuple[Pattern, Entries]]:
        """Yield the patterns whose ACLs may match the filter, each with all of its ACLs."""
        patterns = wanted.pattern.candidates()
        if patterns is None:
            return ((pattern, known.entries) for pattern, known in list(self._known.items()))
        return ((pattern, self._known.get(pattern, _ABSENT).entries) for pattern in patterns)

    async def create(self, bindings: Sequence[Binding]) -> list[KafkaError | None]:
        """Add ACLs. Return an error for each ACL, or None if the ACL was added."""
        outcomes: list[KafkaError | None] = [None] * len(bindings)
        wanted: dict[Pattern, list[int]] = {}
        for index, binding in enumerate(bindings):
            if _is_valid(binding):
                wanted.setdefault(binding.pattern, []).append(index)
            else:
                outcomes[index] = KafkaError(ErrorCode.INVALID_REQUEST, "Failed to create ACL")
        for pattern, indexes in wanted.items():
            error = await self._create(pattern, frozenset(bindings[index].entry for index in indexes))
            for index in indexes:
                outcomes[index] = error
        return outcomes

    async def _create(self, pattern: Pattern, added: Entries) -> KafkaError | None:
        try:
            acls.path_of(pattern)
            for entry in added:
                acls.parse_principal(entry.principal)
        except ValueError as error:
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        return await self._change(pattern, lambda entries: entries | added)

    async def delete(self, filters: Sequence[Filter], turn: Turn) -> list[list[Deleted]]:
        """Delete the ACLs that match the filters, and return the deleted ACLs for each filter. An ACL that
        matches several filters is returned only for the first.

        A filter for a single pattern also deletes ACLs that are missing from this broker's copy.
        """
        concerned: dict[Pattern, None] = {}
        for wanted in filters:
            named = wanted.pattern.candidates()
            if named is not None:
                concerned.update((pattern, None) for pattern in named if znodes.is_name(pattern.name))
                continue
            for some in batched(self.candidates(wanted)):
                for pattern, entries in some:
                    if wanted.pattern.matches(pattern) and any(map(wanted.entry.matches, entries)):
                        concerned[pattern] = None
                await turn.pause_if_due()
        found: list[list[Deleted]] = [[] for _ in filters]
        for pattern in concerned:
            taken: dict[Entry, int] = {}
            error = await self._change(pattern, _without(pattern, filters, taken))
            for entry, index in taken.items():
                found[index].append(Deleted(Binding(pattern, entry), error))
        return found

    async def _change(self, pattern: Pattern, change: Change) -> KafkaError | None:
        try:
            async with self._lock:
                await self._update(pattern, change)
        except Exception as error:
            return as_kafka_error(error, f"Changing the ACLs on {pattern}")
        return None

    async def _update(self, pattern: Pattern, change: Change) -> None:
        path = acls.path_of(pattern)
        known = self._known.get(pattern) or await self._stored(path)
        for attempt in range(WRITES_MAX):
            if attempt:
                await asyncio.sleep(RETRY_S * (1 + random.random() / 2))
                known = await self._stored(path)
            wanted = change(known.entries)
            try:
                version = await self._write(pattern, known, wanted)
            except (stores.BadVersion, stores.NodeExists, stores.NoNode, stores.ConnectionLost):
                # Retry. If the response was lost, the store may contain the change and its notification.
                continue
            if wanted != known.entries:
                log.info("Changed the ACLs on %s (entries: %d)", pattern, len(wanted))
            self._know(pattern, Known(wanted, version))
            return
        problem = f"Failed to update ACLs for {pattern} after trying a maximum of {WRITES_MAX - 1} times"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, problem)

    async def _write(self, pattern: Pattern, known: Known, wanted: Entries) -> int | None:
        """Write the node, and return its new version, or None if the node no longer exists. If nothing
        changes, only verify that the copy is up to date.
        """
        path = acls.path_of(pattern)
        operations: list[stores.Operation] = []
        version = known.version
        if version is None:
            if wanted:
                operations.append(stores.Create(path, acls.encode_acls(wanted)))
        elif not wanted:
            operations.append(stores.Delete(path, version))
        elif wanted != known.entries:
            operations.append(stores.SetData(path, acls.encode_acls(wanted), version))
        else:
            operations.append(stores.Check(path, version))
        if wanted != known.entries:
            notice = f"{acls.CHANGES[pattern.pattern_type]}/{acls.CHANGE_PREFIX}"
            operations.append(stores.Create(notice, acls.encode_change(pattern), sequential=True))
        if operations:
            try:
                results = await self._store.multi(operations)
            except stores.TransactionFailed as failed:
                raise failed.take_cause() from None
            if isinstance(results[0], stores.Stat):
                return results[0].version
        if not wanted:
            return None
        return 0 if version is None else version

    async def _stored(self, path: str) -> Known:
        try:
            data, stat = await self._store.get(path)
        except stores.NoNode:
            return _ABSENT
        return Known(acls.decode_acls(path, data), stat.version)

    async def _reread_mended(self) -> None:
        while self._mended:
            pattern = self._mended.pop()
            try:
                async with self._lock:
                    await self._reread(pattern)
            except BaseException:
                self._mended.add(pattern)
                raise

    def _touched(self, pattern: Pattern, event: Event) -> None:
        self._mended.add(pattern)
        self._following.wake()

    async def _read_all(self) -> None:
        async with self._lock:
            await self._read_folders()

    async def _read_folders(self) -> None:
        found: list[Pattern] = []
        for pattern_type, folder in acls.FOLDERS.items():
            for name in await self._store.children(folder):
                resource_type = acls.resource_type(name)
                if resource_type is None:
                    problem = MalformedNode(f"{folder}/{name}", "is not a resource type")
                    self._malformed.report(problem, NO_VERSION, "its ACLs are ignored")
                    continue
                resources = await self._store.children(f"{folder}/{name}")
                found += [Pattern(resource_type, resource, pattern_type) for resource in resources]
        await asked_for_all(found, self._reread, _READS_AT_ONCE)
        for gone in (self._known.keys() | self._closed) - set(found):
            self._know(gone, _ABSENT)

    async def _hear(
        self, decode: Callable[[str, bytes | None], Pattern], path: str, data: bytes | None
    ) -> None:
        try:
            pattern = decode(path, data)
            if not znodes.is_name(pattern.name):
                raise MalformedNode(path, f"{pattern.name!r:.80} is not a node name")
        except MalformedNode as error:
            self._malformed.report_notice(error)
            return
        async with self._lock:
            await self._reread(pattern)

    async def _reread(self, pattern: Pattern) -> None:
        path = acls.path_of(pattern)
        # Watch unreadable nodes, because a node that is repaired by hand creates no notification.
        for watch in (None, partial(self._touched, pattern)):
            try:
                data, stat = await self._store.get(path, watch)
                self._know(pattern, Known(acls.decode_acls(path, data), stat.version))
                return
            except stores.NoNode:
                self._know(pattern, _ABSENT)
                return
            except MalformedNode as error:
                self._malformed.report(error, stat.version, _MALFORMED)
        if pattern not in self._known:
            self._closed.add(pattern)
            self._rules.put(pattern, _CLOSED)

    def _know(self, pattern: Pattern, known: Known) -> None:
        self._closed.discard(pattern)
        self._rules.put(pattern, known.entries)
        if known.entries:
            self._known[pattern] = known
        else:
            self._known.pop(pattern, None)


def _is_valid(binding: Binding) -> bool:
    pattern, entry = binding
    known = pattern.resource_type and pattern.pattern_type and entry.operation and entry.permission
    return bool(known) and "/" not in pattern.name


def _without(pattern: Pattern, filters: Sequence[Filter], taken: dict[Entry, int]) -> Change:
    """Return a function that removes matching entries, and records each entry's first matching filter."""
    concerned = [(index, wanted) for index, wanted in enumerate(filters) if wanted.pattern.matches(pattern)]

    def change(entries: Entries) -> Entries:
        here = {}
        for entry in entries:
            for index, wanted in concerned:
                if wanted.entry.matches(entry):
                    here[entry] = index
                    break
        taken.update(here)
        return entries - here.keys()

    return change
