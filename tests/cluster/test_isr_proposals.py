"""ISR proposals (AlterPartition): they are retried after every unexpected response of the controller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from kafka_compat.cluster import controller_link, isr_proposals
from kafka_compat.cluster.controller_link import ControllerLink
from kafka_compat.cluster.isr_proposals import IsrProposals
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from kafka_compat.replication.in_sync import IsrAnswer
from tests.protocol.server_headers import decode_request_header

TOPIC_ID = UUID(int=7)
VERSION = 3
VERSION_WITH_NAMES = 1
CONTROLLER_ID = 1
Answer = Callable[[AlterPartitionRequest], bytes]


def _accept(
    request: AlterPartitionRequest, error: int = 0, error_of_partition: int = 0, version: int = VERSION
) -> bytes:
    topics = [
        AlterPartitionResponseTopicData(
            topic_name=topic.topic_name,
            topic_id=topic.topic_id,
            partitions=[
                AlterPartitionResponsePartitionData(
                    partition_index=item.partition_index,
                    error_code=error_of_partition,
                    leader_id=1,
                    leader_epoch=item.leader_epoch,
                    isr=item.new_isr or [broker.broker_id for broker in item.new_isr_with_epochs],
                    partition_epoch=item.partition_epoch + 1,
                )
                for item in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return bytes(codec.encode(AlterPartitionResponse(error_code=error, topics=topics), version))


class ScriptedController:
    """Responds to AlterPartition requests with each of `answers` in turn, and then accepts all requests."""

    def __init__(self, version: int = VERSION) -> None:
        self.answers: list[Answer] = []
        self._version = version
        self._server: asyncio.Server | None = None

    async def start(self) -> tuple[str, int]:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        return host, port

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = memoryview(await reader.readexactly(size))
                header, position = decode_request_header(frame)
                request = codec.decode(AlterPartitionRequest, self._version, frame, position)
                answer = self.answers.pop(0) if self.answers else partial(_accept, version=self._version)
                body = header.correlation_id.to_bytes(4, "big") + b"\0" + answer(request)
                writer.write(len(body).to_bytes(4, "big") + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


class _Service:
    """The attributes of ControllerService that a link uses."""

    def __init__(self) -> None:
        self.controller_id = CONTROLLER_ID
        self.controller_changed = asyncio.Event()
        self.on_controller_changed: list[Callable[[], None]] = []


class _Log:
    topic_id = TOPIC_ID


class _Partition:
    """The attributes of Partition that a proposal uses."""

    topic = "t"
    log = _Log()

    def __init__(self, partition: int) -> None:
        self.partition = partition


class World:
    def __init__(self, controller: ScriptedController, proposals: IsrProposals) -> None:
        self.controller = controller
        self._proposals = proposals

    async def propose(self, partition: int = 0, isr: tuple[int, ...] = (1, 2)) -> IsrAnswer:
        """Propose an ISR, and retry as a partition does, until the proposal is accepted or rejected."""
        while True:
            answered: asyncio.Future[IsrAnswer] = asyncio.get_running_loop().create_future()
            stand_in: Any = _Partition(partition)
            self._proposals.propose(stand_in, isr, 3, 4, answered.set_result)
            async with asyncio.timeout(10):
                answer = await answered
            if answer.error != ErrorCode.UNKNOWN_SERVER_ERROR:
                return answer


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(isr_proposals, "FAILURE_PAUSE_S", 0.01, raising=False)
    monkeypatch.setattr(controller_link, "MALFORMED_PAUSE_S", 0.01, raising=False)
    async with _world(VERSION) as world:
        yield world


@asynccontextmanager
async def _world(version: int) -> AsyncIterator[World]:
    controller = ScriptedController(version)
    address = await controller.start()

    async def address_of(broker_id: int) -> tuple[str, int]:
        return address

    service: Any = _Service()
    link = ControllerLink("test", service, address_of, 2_000)
    proposals = IsrProposals(
        2, link, broker_epoch=lambda: 1, is_alive=lambda broker_id: True, version=version
    )
    yield World(controller, proposals)
    await proposals.close()
    await link.close()
    await controller.close()


async def test_isr_proposals_before_kafka_3_3_identify_topics_by_name() -> None:
    async with _world(VERSION_WITH_NAMES) as world:
        assert await world.propose(1, (1, 2, 3)) == IsrAnswer(ErrorCode.NONE, 3, (1, 2, 3), 5)


@pytest.mark.parametrize(
    "odd",
    [
        lambda request: _accept(request, error=32_000),
        lambda request: _accept(request, error_of_partition=32_000),
        lambda request: _accept(request, error=ErrorCode.STALE_BROKER_EPOCH),
        lambda request: b"",
        lambda request: b"\xff" * 40,
        lambda request: _accept(AlterPartitionRequest()),
        lambda request: _accept(request)[:-3],
    ],
    ids=[
        "an unknown error",
        "an unknown error of the partition",
        "a temporary error",
        "an empty response",
        "garbage",
        "a response for a different partition",
        "a truncated response",
    ],
)
async def test_an_isr_proposal_is_repeated_after_an_unexpected_response(world: World, odd: Answer) -> None:
    world.controller.answers = [odd, odd]
    assert await world.propose() == IsrAnswer(ErrorCode.NONE, 3, (1, 2), 5)
    assert await world.propose(1, (1, 2, 3)) == IsrAnswer(ErrorCode.NONE, 3, (1, 2, 3), 5)


async def test_an_isr_proposal_that_fails_unexpectedly_is_logged_and_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    send, failures = ControllerLink.send, [RuntimeError("first"), KeyError("second")]

    async def failing(link: ControllerLink, api_key: ApiKey, version: int, request: Any) -> Any:
        if failures:
            raise failures.pop(0)
        return await send(link, api_key, version, request)

    monkeypatch.setattr(ControllerLink, "send", failing)
    assert (await world.propose()).error == ErrorCode.NONE
    told = [record for record in caplog.records if record.levelno == logging.ERROR and record.exc_info]
    assert len(told) == 2
