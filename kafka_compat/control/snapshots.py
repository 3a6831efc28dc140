"""HTTP routes of the control API for snapshots: save and restore the entire state of the brokers."""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from kafka_compat.broker import Broker
from kafka_compat.control.hooks import ControlHooks
from kafka_compat.errors import StartupError
from kafka_compat.http.routes import NOT_FOUND, UNAVAILABLE, Answer, BadCall, Call, Route
from kafka_compat.storage.directories import saved_states
from kafka_compat.storage.errors import StorageError

_NOT_IMPLEMENTED = 501
_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,99}")
_TIME = "kafka-compat-time"
"""Name of the file that stores by how much time was advanced."""


class SharedTree(Protocol):
    """The metadata store of the brokers of one process."""

    def snapshot(self) -> Mapping[str, bytes]:
        """Return the contents of the current metadata files, by file name."""

    async def return_to(self, name: str) -> None:
        """Restore the metadata and the brokers' log directories from a snapshot."""


class Snapshots:
    """Routes for snapshots. They run one operation at a time, and respond when the operation is complete."""

    def __init__(
        self, brokers: Sequence[Broker], hooks: ControlHooks, tree: SharedTree | None = None
    ) -> None:
        """`tree` is the metadata store of several brokers, or None for a standalone broker."""
        self._brokers = brokers
        self._tree = tree
        self._hooks = hooks
        self._lock = asyncio.Lock()

    def routes(self, prefix: str) -> list[Route]:
        one = prefix + "/snapshots/{name}"
        return [
            Route(
                "POST",
                prefix + "/snapshots",
                self._save,
                "take a snapshot of the broker's data, without copying records",
                {"name": "string: letters, digits, '.', '_' and '-'"},
            ),
            Route("GET", prefix + "/snapshots", self._all, "names of all snapshots"),
            Route("POST", one + "/restore", self._restore, "restore the data of a snapshot"),
            Route("DELETE", one, self._delete, "delete a snapshot"),
        ]

    async def _save(self, call: Call) -> Answer:
        began_s = time.perf_counter()
        name = call.body.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadCall(f"name={name!r}: expected up to 100 letters, digits, '.', '_' and '-'")
        self._check()
        async with self._lock:
            try:
                await self._save_all(name)
            except (OSError, StorageError) as error:
                raise BadCall(f"cannot store the snapshot: {error}", UNAVAILABLE) from None
            topics = len(self._brokers[0].services.metadata.topics)
            self._tidy_up_later()
        return {"name": name, "topics": topics, "took_ms": _since(began_s)}

    async def _save_all(self, name: str) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for broker in self._brokers:
                # Prevent the creation and deletion of topics during the snapshot.
                await stack.enter_async_context(broker.services.topics.writes.alone())
            # Do not await in this loop, so that all state is saved at the same moment.
            of_time = json.dumps({"ahead_ms": self._hooks.travel.clock.ahead_ms}).encode()
            for broker in self._brokers:
                services, files = broker.services, {}
                if broker is self._brokers[0]:
                    metadata = self._tree or broker.membership
                    files = {**metadata.snapshot(), _TIME: of_time}
                saved_states.save(services.log_dirs, name, services.replicas.high_watermarks(), files)

    async def _all(self, call: Call) -> Answer:
        self._check()
        return saved_states.names(self._directories[0])

    async def _restore(self, call: Call) -> Answer:
        began_s = time.perf_counter()
        name = self._find(call)
        async with self._lock:
            try:
                ahead_ms = json.loads(saved_states.read_file(self._directories[0], name, _TIME))["ahead_ms"]
                self._hooks.travel.clock.ahead_ms = ahead_ms
                await self._return_to(name)
            except (OSError, StartupError, StorageError) as error:
                raise BadCall(f"cannot restore the snapshot: {error}", UNAVAILABLE) from None
        self._hooks.pulse.beat()
        topics = len(self._brokers[0].services.metadata.topics)
        return {"name": name, "topics": topics, "took_ms": _since(began_s)}

    async def _return_to(self, name: str) -> None:
        directories = self._directories
        suspended = [(broker, await broker.suspend()) for broker in self._brokers]
        for broker, sockets in suspended:
            # Drop waiting requests: a broker that briefly became controller while the previous controller was
            # suspended may have sent requests with a controller epoch that is missing from the snapshot.
            broker.drop_waiting(sockets)
        try:
            if self._tree is not None:
                await self._tree.return_to(name)
            else:
                saved_states.return_to(directories[0], name)
        except BaseException:
            for broker in self._brokers:
                broker.on_fatal()
            raise
        await asyncio.gather(*(broker.resume(sockets) for broker, sockets in suspended))

    async def _delete(self, call: Call) -> Answer:
        name = self._find(call)
        async with self._lock:
            for directories in self._directories:
                with contextlib.suppress(FileNotFoundError):
                    saved_states.remove(directories, name)
            await asyncio.to_thread(self._remove_leftovers)
        return None

    @property
    def _directories(self) -> list[Sequence[str]]:
        return [broker.services.log_dirs.directories for broker in self._brokers]

    def _check(self) -> None:
        if self._tree is None and not self._brokers[0].membership.is_standalone:
            problem = "snapshots require all brokers in one process: start them with --brokers"
            raise BadCall(problem, _NOT_IMPLEMENTED)

    def _find(self, call: Call) -> str:
        self._check()
        name, there = call.path["name"], saved_states.names(self._directories[0])
        if name not in there:
            raise BadCall(f"unknown snapshot {name}; expected: {', '.join(there) or 'none'}", NOT_FOUND)
        return name

    def _remove_leftovers(self) -> None:
        for directories in self._directories:
            saved_states.remove_leftovers(directories)

    def _tidy_up_later(self) -> None:
        async def tidy_up() -> None:
            async with self._lock:
                await asyncio.to_thread(self._remove_leftovers)

        self._tidying = asyncio.ensure_future(tidy_up())


def _since(began_s: float) -> float:
    return round((time.perf_counter() - began_s) * 1000, 3)
