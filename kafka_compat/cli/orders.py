"""Messages between the supervisor of `serve --processes N` and the process of each broker."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka_compat.config import TopicToCreate
from kafka_compat.coordination.store.store_wire import Message

READY = "ready"
"""["ready", [[listener, host, port], …], URL]: the broker serves, and where it listens; "" for the URL where
nothing is served over HTTP.
"""
REFUSED = "refused"
"""["refused", why]: the broker cannot start."""
SERVE = "serve"
STOP = "stop"
"""["stop", at once]: the broker is to stop, and whether without waiting for successors."""

EXIT_REFUSED = 2


class Orders(NamedTuple):
    """What the broker is to be: ["serve", settings, topics, verbose]."""

    settings: dict[str, str]
    topics: tuple[TopicToCreate, ...]
    """Those that it makes when they are not there."""
    verbose: bool

    def encode(self) -> Message:
        return [SERVE, *self]

    @classmethod
    def decode(cls, message: list[Any]) -> Orders:
        _, settings, topics, verbose = message
        return cls(settings, tuple(TopicToCreate(*topic) for topic in topics), verbose)
