"""Processes of a simulation: each is what its callbacks and tasks share, by a context variable.

Rules
1. Whatever a process schedules belongs to it, since asyncio runs it in a copy of the context it was made in.
2. A process that was killed runs nothing any more, not even `finally`: its sockets are reset, its tasks stay
   where they are.
3. A process that is paused (SIGSTOP) runs nothing until it is resumed; then all that became due meanwhile, in
   its order. Its connections stay, and the kernel goes on accepting for it.
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
