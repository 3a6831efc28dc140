"""Snapshots of all that a broker holds, and the way back to them, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.control.alone import the_lone
from kafka_compat.errors import StartupError
from kafka_compat.http.routes import Answer, BadCall, Call, Route
from kafka_compat.storage.directories import saved_states
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.control.hooks import ControlHooks

_NOT_FOUND = 404
_UNAVAILABLE = 503
_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,99}")
_TIME = "kafka-compat-time"
"""The file that says how far the time was put forward."""


class Snapshots:
    """The routes. One at a time; they answer when it is done."""

    def __init__(self, brokers: Sequence[Broker[Any]], hooks: ControlHooks) -> None:
        self._brokers = brokers
        self._side = hooks
        self._lock = asyncio.Lock()

    def routes(self, prefix: str) -> list[Route]:
        """What is served."""
        one = prefix + "/snapshots/{name}"
        return [
            Route(
                "POST",
                prefix + "/snapshots",
                self._save,
                "keep all that the broker holds now, under a name, without a copy of its records",
                {"name": "string: letters, digits, '.', '_' and '-'"},
            ),
            Route("GET", prefix + "/snapshots", self._all, "the names of the snapshots that there are"),
            Route("POST", one + "/restore", self._restore, "hold what a snapshot holds, and no more"),
            Route("DELETE", one, self._delete, "forget a snapshot"),
        ]

    async def _save(self, call: Call) -> Answer:
        began_s = time.perf_counter()
        name = call.body.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadCall(f"name={name!r}: expected up to 100 letters, digits, '.', '_' and '-'")
        broker, membership = the_lone(self._brokers, "snapshots")
        services = broker.services

        def save(files: Mapping[str, bytes]) -> None:
            of_time = json.dumps({"ahead_ms": self._side.travel.clock.ahead_ms}).encode()
            high_watermarks = services.replicas.high_watermarks()
            saved_states.save(services.log_dirs, name, high_watermarks, {**files, _TIME: of_time})

        async with self._lock:
            try:
                await membership.saved(save)
            except (OSError, StorageError) as error:
                raise BadCall(f"the snapshot cannot be kept: {error}", _UNAVAILABLE) from None
            topics = len(services.metadata.topics)
            self._tidy_up_later(services.log_dirs.directories)
        return {"name": name, "topics": topics, "took_ms": _since(began_s)}

    async def _all(self, call: Call) -> Answer:
        broker, _ = the_lone(self._brokers, "snapshots")
        return saved_states.names(broker.services.log_dirs.directories)

    async def _restore(self, call: Call) -> Answer:
        began_s = time.perf_counter()
        broker, directories, name = self._find(call)
        async with self._lock:
            try:
                ahead_ms = json.loads(saved_states.read_file(directories, name, _TIME))["ahead_ms"]
                self._side.travel.clock.ahead_ms = ahead_ms
                await broker.start_anew(lambda: saved_states.return_to(directories, name))
            except (OSError, StartupError, StorageError) as error:
                raise BadCall(f"the snapshot cannot be restored: {error}", _UNAVAILABLE) from None
        self._side.pulse.beat()
        return {"name": name, "topics": len(broker.services.metadata.topics), "took_ms": _since(began_s)}

    async def _delete(self, call: Call) -> Answer:
        _, directories, name = self._find(call)
        async with self._lock:
            with contextlib.suppress(FileNotFoundError):
                saved_states.remove(directories, name)
            await asyncio.to_thread(saved_states.remove_leftovers, directories)
        return None

    def _find(self, call: Call) -> tuple[Broker[Any], list[str], str]:
        broker, _ = the_lone(self._brokers, "snapshots")
        directories, name = broker.services.log_dirs.directories, call.path["name"]
        there = saved_states.names(directories)
        if name not in there:
            raise BadCall(f"there is no snapshot {name}; there are {', '.join(there) or 'none'}", _NOT_FOUND)
        return broker, directories, name

    def _tidy_up_later(self, directories: Sequence[str]) -> None:
        """Remove the files of those that were replaced."""

        async def tidy_up() -> None:
            async with self._lock:
                await asyncio.to_thread(saved_states.remove_leftovers, directories)

        self._tidying = asyncio.ensure_future(tidy_up())


def _since(began_s: float) -> float:
    return round((time.perf_counter() - began_s) * 1000, 3)
