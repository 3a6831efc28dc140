"""Connections between brokers: pipelining, failures and reconnection."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kafka_compat.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from kafka_compat.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tests.cluster.frames import frame_of, read_request

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[BrokerClient]:
    server = await asyncio.start_server(peer, "127.0.0.1", 0)
    client = BrokerClient("127.0.0.1", server.sockets[0].getsockname()[1], "broker-1")
    try:
        yield client
    finally:
        await client.close()
        server.close()
        await server.wait_closed()


async def test_requests_to_several_apis_are_pipelined() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await read_request(reader)
        second = await read_request(reader)
        assert first[3] == ControlledShutdownRequest(broker_id=1, broker_epoch=7)
        writer.write(frame_of(*first[:3], ControlledShutdownResponse(error_code=77)))
        writer.write(frame_of(*second[:3], AlterPartitionResponse(error_code=41)))

    async with listening(peer) as client:
        shutdown, altered = await asyncio.gather(
            client.send(
                ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest(broker_id=1, broker_epoch=7)
            ),
            client.send(ApiKey.ALTER_PARTITION, 3, AlterPartitionRequest(broker_id=1)),
        )
    assert shutdown.error_code == 77
    assert altered.error_code == 41


async def test_a_broken_connection_fails_pending_requests_and_the_next_request_reconnects() -> None:
    connections = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        asked = await read_request(reader)
        if connections > 1:
            writer.write(frame_of(*asked[:3], ControlledShutdownResponse()))
            await writer.drain()
        writer.close()

    async with listening(peer) as client:
        with pytest.raises(ConnectionError):
            await client.send(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest())
        answer = await client.send(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest())
        assert answer == ControlledShutdownResponse()


async def test_a_request_that_times_out_closes_the_connection() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await reader.read()
        writer.close()

    async with listening(peer) as client:
        with pytest.raises(ConnectionError, match="did not respond"):
            await client.send(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest(), timeout_ms=20)


async def test_a_response_with_a_wrong_correlation_id_is_rejected() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key, version, correlation_id, _ = await read_request(reader)
        writer.write(frame_of(key, version, correlation_id + 1, ControlledShutdownResponse()))
        await reader.read()
        writer.close()

    async with listening(peer) as client:
        with pytest.raises(ConnectionError, match="instead of"):
            await client.send(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest())


async def test_responses_and_failures_are_delivered_to_the_callback() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_request(reader)
        writer.write(frame_of(*asked[:3], ControlledShutdownResponse(error_code=77)))
        await read_request(reader)
        writer.close()

    handed: asyncio.Queue[object] = asyncio.Queue()
    async with listening(peer) as client:
        with pytest.raises(ConnectionError):
            client.ask(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest(), handed.put_nowait)
        await client.connect()
        client.ask(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest(), handed.put_nowait)
        assert await handed.get() == ControlledShutdownResponse(error_code=77)
        client.ask(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest(), handed.put_nowait)
        assert isinstance(await handed.get(), ConnectionError)
    assert handed.empty()


async def test_a_large_response_stays_valid_after_the_next_response_arrives() -> None:
    """The records of a response are views of the received frame."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for fill in (b"a", b"b"):
            asked = await read_request(reader)
            records = [PartitionData(partition_index=0, high_watermark=0, records=fill * 300_000)]
            response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=records)])
            writer.write(frame_of(*asked[:3], response))

    async with listening(peer) as client:
        answers = await asyncio.gather(*(client.send(ApiKey.FETCH, 12, FetchRequest()) for _ in range(2)))
    found = [bytes(answer.responses[0].partitions[0].records) for answer in answers]
    assert found == [b"a" * 300_000, b"b" * 300_000]


async def test_an_unknown_host_is_reported_as_a_connection_error() -> None:
    """A malformed broker registration may contain such a host."""
    client = BrokerClient("a..b", 9092, "broker-1")
    with pytest.raises(ConnectionError, match="cannot connect"):
        await client.send(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest())
    await client.close()


async def test_a_closed_port_is_reported_as_a_connection_error() -> None:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    client = BrokerClient("127.0.0.1", port, "broker-1")
    with pytest.raises(ConnectionError, match="cannot connect"):
        await client.send(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest())
    await client.close()
    with pytest.raises(ConnectionError, match="closed"):
        await client.send(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest())
