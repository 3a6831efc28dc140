"""Messages between the supervisor of `serve --processes N` and the process of each broker."""

from typing import Any, NamedTuple, Self

from kafka_compat.config.environment import TopicToCreate
from kafka_compat.coordination.store.store_wire import Message

READY = "ready"
"""["ready", [[listener, host, port], …], URL]: the broker serves at these listeners. The URL is "" if there
is no HTTP listener.
"""
REFUSED = "refused"
"""["refused", reason]: the broker cannot start."""
SERVE = "serve"
STOP = "stop"
"""["stop", at once]: stop, with or without handing over leadership first."""

EXIT_REFUSED = 2


class Orders(NamedTuple):
    """The order to start a broker: ["serve", settings, topics, verbose]."""

    settings: dict[str, str]
    topics: tuple[TopicToCreate, ...]
    """Topics to create if they do not exist."""
    verbose: bool

    def encode(self) -> Message:
        return [SERVE, *self]

    @classmethod
    def decode(cls, message: list[Any]) -> Self:
        _, settings, topics, verbose = message
        return cls(settings, tuple(TopicToCreate(*topic) for topic in topics), verbose)
