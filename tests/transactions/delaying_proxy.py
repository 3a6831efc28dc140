"""A proxy in front of a broker that holds requests back: the client gives up, reconnects and retries, and the
first request arrives when the test releases it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafka_compat.protocol.api_keys import ApiKey

_SIZE_BYTES = 4
_PATIENCE_S = 20


class LateProxy:
    """Forwards 127.0.0.1:`port` to the broker at `broker_port`. It holds frames selected by `holds`, but not
    their repetitions.
    """

    def __init__(self, broker_port: int, holds: Callable[[ApiKey], bool]) -> None:
        self.upstream = ("127.0.0.1", broker_port)
        self.held: list[tuple[ApiKey, bytes]] = []
        self._holds = holds
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen: set[bytes] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def release(self) -> int:
        """Send each held request on a new connection, wait for the responses, and return their number."""
        late, self.held = self.held, []
        for _, frame in late:
            reader, writer = await asyncio.open_connection(*self.upstream)
            writer.write(frame)
            async with asyncio.timeout(_PATIENCE_S):
                await _read_frame(reader)
            writer.close()
        return len(late)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            broker_reader, broker_writer = await asyncio.open_connection(*self.upstream)
        except OSError:
            writer.close()
            return
        back = asyncio.create_task(_pour(broker_reader, writer))
        try:
            while True:
                frame = await _read_frame(reader)
                if not self._hold(frame):
                    broker_writer.write(frame)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # asyncio's server would complain about a cancelled task
        finally:
            back.cancel()
            broker_writer.close()
            writer.close()

    def _hold(self, frame: bytes) -> bool:
        key = ApiKey(int.from_bytes(frame[4:6], "big"))
        # A repeated request differs only in its correlation id.
        body = frame[4:8] + frame[12:]
        if not self._holds(key) or body in self._seen:
            return False
        self._seen.add(body)
        self.held.append((key, frame))
        return True


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(_SIZE_BYTES)
    return size + await reader.readexactly(int.from_bytes(size, "big"))


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except OSError:
        pass
    writer.close()
