"""A TCP proxy that can stop forwarding: connections stay open, but no data passes, as if a cable were cut."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Self

_CHUNK_BYTES = 65536


class SilentProxy:
    """Forwards data between a local port on 127.0.0.1 and a target, except while it is silenced.

    Data sent in the meantime is delivered later, as with TCP retransmission. The proxy runs in its own
    thread. Use it as a context manager.
    """

    def __init__(self, target_port: int, target_host: str = "127.0.0.1") -> None:
        self._target_port = target_port
        self._target_host = target_host
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def silence(self) -> None:
        """Stop forwarding."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def resume(self) -> None:
        """Resume forwarding, including the delayed data."""
        self._loop.call_soon_threadsafe(self._open.set)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await self._open.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection(self._target_host, self._target_port)
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        finally:
            writer.transport.abort()
            far_writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        await self._open.wait()
        writer.transport.abort()
