"""Changes of what the store has of users, clients and addresses: their credentials and quotas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from kafka_compat.tasks import OnFailure, Tasks

Listener = Callable[[str], Awaitable[None]]
"""Called with the path of what changed under /config, such as `users/alice` or `clients/<default>`."""


class EntityChanges:
    """Tells those who keep some of it in memory."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.listeners: list[Listener] = []

    async def tell(self, entity_path: str) -> None:
        """Returns when everybody has heard, and has read what there is to read."""
        for listener in self.listeners:
            await listener(entity_path)

    def tell_soon(self, entity_path: str) -> None:
        """In a task of its own, again where it fails."""
        if self.listeners and not self._tasks.closed:
            name = f"reading the new settings of {entity_path}"
            self._tasks.spawn(name, partial(self.tell, entity_path), OnFailure.RESTART)
