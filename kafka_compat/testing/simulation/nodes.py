"""Processes of a simulation. A context variable links callbacks and tasks to their process.

Rules
1. All work that a process schedules belongs to it, since asyncio runs it in a copy of the current context.
2. A killed process runs no code, not even `finally`: its sockets are reset, and its tasks are abandoned.
3. A paused process (SIGSTOP) runs no code until it resumes; then all due work runs in order. Its connections
   stay open, and the kernel continues to accept new connections for it.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, Protocol


class NodeSocket(Protocol):
    """Interface of an open socket of a process."""

    def reset(self) -> None:
        """Reset the socket of a killed process."""


class Node:
    """A simulated process. `host` is the address of its sockets."""

    __slots__ = ("host", "kept", "name", "running", "sockets", "state")

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.running = True
        self.state = "running"
        """`running`, `paused` or `dead`."""
        self.kept: list[asyncio.Handle] = []
        """Callbacks that became due while the process was paused."""
        self.sockets: dict[NodeSocket, None] = {}

    def context(self) -> contextvars.Context:
        """Return a new context. Work in this context belongs to this process."""
        context = contextvars.Context()
        context.run(CURRENT.set, self)
        return context

    def spawn(
        self, loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> asyncio.Task[None]:
        """Start a task in this process."""
        context = self.context()
        return loop.create_task(context.run(work), context=context)

    def pause(self) -> None:
        """Pause the process (SIGSTOP)."""
        if self.state == "running":
            self.running, self.state = False, "paused"

    def kill(self) -> None:
        """Kill the process (SIGKILL)."""
        self.running, self.state = False, "dead"
        self.kept.clear()
        for each in list(self.sockets):
            each.reset()
        self.sockets.clear()


CURRENT: contextvars.ContextVar[Node] = contextvars.ContextVar("simulated process")
