"""Connection between two processes on one machine, for messages in the format of store_wire.py."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Self, cast

from kafka_compat.coordination.store.store_wire import BadFrame, Message, Splitter, encode_frame

log = logging.getLogger(__name__)


class Link(asyncio.Protocol):
    """A connection that calls `on_message` with each message, and `on_end` once when it is closed.

    The connection is closed if a message is invalid, or if `on_message` raises BadFrame.
    """

    def __init__(self, on_message: Callable[[list[Any]], None], on_end: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_end = on_end
        self._splitter = Splitter()
        self._transport: asyncio.Transport | None = None
        self.ended = asyncio.Event()

    @classmethod
    async def over(
        cls, connected: socket.socket, on_message: Callable[[list[Any]], None], on_end: Callable[[], None]
    ) -> Self:
        """Create a link that owns one end of a `socket.socketpair`."""
        link = cls(on_message, on_end)
        await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=connected)
        return link

    def send(self, message: Message) -> None:
        """Send a message if the connection is open. Raises MetadataStoreError if the message is too long."""
        frame = encode_frame(message)
        if self._transport is not None:
            self._transport.write(frame)

    def close(self) -> None:
        """Close the connection after all messages are sent."""
        if self._transport is not None:
            self._transport.close()

    # --- asyncio protocol methods

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._splitter.feed(data):
                self._on_message(message)
        except BadFrame as error:
            log.error(
                "Closed the connection between a broker process and its supervisor: invalid message: %s",
                error,
            )
            assert self._transport is not None
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.ended.set()
        self._on_end()
