"""The shutdown of one broker, in a process in which others keep running."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from kafka_compat.broker import standalone_broker
from kafka_compat.broker.hooks import BrokerHooks
from kafka_compat.config import BrokerConfig
from kafka_compat.storage.filesystem import RealFilesystem
from tests.conformance.wire import Connection
from tests.quotas.clients import create_topic, produce

_PATIENCE_S = 10.0


class WaitsForTheLoop(RealFilesystem):
    """Files whose syncs end only after the event loop has run, while `waits` is true."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self.waits = False
        self.syncs = 0
        self.blocked = 0
        """Number of syncs during which the event loop did not run."""

    def sync_file(self, path: str) -> None:
        if self.waits:
            ran = threading.Event()
            self._loop.call_soon_threadsafe(ran.set)
            self.syncs += 1
            self.blocked += not ran.wait(_PATIENCE_S)
        super().sync_file(path)


def _write(address: str) -> None:
    create_topic(address, "t")
    with Connection(address) as connection:
        produce(connection, "t", 100)


async def test_closing_logs_does_not_block_the_event_loop(tmp_path: Path) -> None:
    filesystem = WaitsForTheLoop(asyncio.get_running_loop())
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}
    broker = standalone_broker(BrokerConfig.from_properties(settings), BrokerHooks(filesystem=filesystem))
    await broker.start()
    host, port = broker.addresses["PLAINTEXT"]
    await asyncio.to_thread(_write, f"{host}:{port}")
    filesystem.waits = True
    await broker.stop()
    assert filesystem.syncs > 0
    assert filesystem.blocked == 0
