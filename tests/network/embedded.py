"""A broker in the test's process, and requests to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain

TOPIC_NAME = "t"


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[tuple[Broker, Connection]]:
    """Start a broker in this process with the topic t, and yield it with a connection."""
    config = BrokerConfig.from_properties(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory), "broker.id": "1"}
    )
    broker = standalone_broker(config)
    await broker.start()
    host, port = broker.addresses["PLAINTEXT"]
    try:
        with Connection(f"{host}:{port}") as connection:
            topic = {"name": TOPIC_NAME, "num_partitions": 2, "replication_factor": 1}
            made = await ask(connection, ApiKey.CREATE_TOPICS, 7, {"topics": [topic]})
            assert made["topics"][0]["error_code"] == 0
            yield broker, connection
    finally:
        await broker.stop()


async def ask(connection: Connection, api_key: ApiKey, version: int, request: Plain) -> Plain:
    return await asyncio.to_thread(connection.ask, api_key, version, request)


async def lives(connection: Connection) -> bool:
    answer = await ask(connection, ApiKey.API_VERSIONS, 3, _SOFTWARE)
    return bool(answer["error_code"] == ErrorCode.NONE)


_SOFTWARE = {"client_software_name": "a", "client_software_version": "1"}
