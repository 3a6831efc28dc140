"""Processes of a simulation: each owns the callbacks and tasks that share its context variable.

Rules
1. Everything that a process schedules belongs to it, since asyncio runs it in a copy of the current context.
2. A killed process runs nothing any more, not even `finally`: its sockets are reset, its tasks abandoned.
3. A paused process (SIGSTOP) runs nothing until it resumes; then everything that became due runs in order.
   Its connections stay open, and the kernel continues to accept new ones for it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, Protocol


class NodeSocket(Protocol):
    """A socket that a process has open."""

    def reset(self) -> None:
        """The process was killed."""


class Node:
    """One process. `host` is the address that its sockets have."""

    __slots__ = ("host", "kept", "name", "running", "sockets", "state")

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.running = True
        self.state = "running"
        """`running`, `paused` or `dead`."""
        self.kept: list[asyncio.Handle] = []
        """What came while it was paused."""
        self.sockets: dict[NodeSocket, None] = {}

    def context(self) -> contextvars.Context:
        """A new one, in which everything is this process's."""
        context = contextvars.Context()
        context.run(CURRENT.set, self)
        return context

    def spawn(
        self, loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> asyncio.Task[None]:
        """A task of this process."""
        context = self.context()
        return loop.create_task(context.run(work), context=context)

    def pause(self) -> None:
        """SIGSTOP."""
        if self.state == "running":
            self.running, self.state = False, "paused"

    def kill(self) -> None:
        """SIGKILL."""
        self.running, self.state = False, "dead"
        self.kept.clear()
        for each in list(self.sockets):
            each.reset()
        self.sockets.clear()


CURRENT: contextvars.ContextVar[Node] = contextvars.ContextVar("simulated process")
