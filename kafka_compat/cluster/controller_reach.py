"""Detects that the process of the controller has ended, in a cluster with a metadata quorum.

The metadata names the controller until its session ends and another broker is elected, which takes a second
or two. A client that learns of a controller whose process has ended may wait for this broker until its
request times out: librdkafka does not ask again who the controller is. In Apache Kafka's quorums, each broker
accepts the requests that are meant for the controller. Here, a broker names itself as the controller
meanwhile, and accepts the requests for topics that every broker can carry out.

This begins when the connection closes over which the controller sends its requests. If the controller only
closed an idle connection, it accepts another one, and is named again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.tasks import Tasks

_CONNECT_S: Final = 1.0
_ENDING_S: Final = 0.2


class ControllerConnection(Protocol):
    """The connection over which the controller sends its requests."""

    def when_left(self, purpose: object, call: Callable[[], None]) -> None:
        """Set a callback to run when the connection closes. It replaces any callback for the same purpose."""


class ControllerReach:
    """The connection of the controller to this broker."""

    def __init__(
        self, metadata: MetadataCache, address_of: Callable[[int], tuple[str, int] | None], tasks: Tasks
    ) -> None:
        """`address_of` returns a broker's address, or None if it is unknown."""
        self._metadata = metadata
        self._address_of = address_of
        self._tasks = tasks

    def called(self, connection: ControllerConnection, controller_id: int) -> None:
        """Record that the controller has sent a request over this connection."""
        connection.when_left("controller", partial(self._left, controller_id))

    def _left(self, controller_id: int) -> None:
        is_other = self._metadata.local_id != controller_id == self._metadata.controller_id
        if is_other and not self._tasks.closed:
            self._metadata.set_controller_left(True)
            self._tasks.spawn("looking for the controller", partial(self._look, controller_id))

    async def _look(self, controller_id: int) -> None:
        # A process that is shutting down may close its connections before its listener.
        await asyncio.sleep(_ENDING_S)
        address = self._address_of(controller_id)
        if address is not None and await _accepts(*address) and self._metadata.controller_id == controller_id:
            self._metadata.set_controller_left(False)


async def _accepts(host: str, port: int) -> bool:
    """Return whether a process accepts connections at an address."""
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:  # a TimeoutError, too
        return False
    writer.transport.abort()
    return True
