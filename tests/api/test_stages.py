"""Stages of calls, tested with doubles: the input of each stage, and the effect of its result on the
connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_compat.api.calls import Calls
from kafka_compat.api.codec_thread import ELEMENTS_ON_LOOP_MAX
from kafka_compat.api.handler import RequestContext
from kafka_compat.api.stages import Account, Quota, Served
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.served import SERVED
from kafka_compat.network.connection import Connection as ServerConnection
from kafka_compat.network.dispatch import Dispatcher
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from kafka_compat.protocol.messages.heartbeat import HeartbeatResponse
from kafka_compat.protocol.messages.produce import ProduceResponse
from kafka_compat.security.principal import ANONYMOUS, Principal
from tests.conformance.batches import batch
from tests.conformance.wire import CLIENT_ID, Connection, encode
from tests.network.serving import serving

ALICE = Principal("User", "alice")
HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
PRODUCE = {
    "timeout_ms": 1000,
    "topic_data": [{"name": "t", "partition_data": [{"index": 3, "records": batch(1)}]}],
}


@asynccontextmanager
async def staged(
    quota: Quota | None = None, account: Account | None = None, **handlers: Callable[..., Any]
) -> AsyncIterator[Connection]:
    """A connection to a server with these stages, and with handlers named after their APIs."""
    calls = Calls(SimpleNamespace(served=SERVED), accounts=() if account is None else (account,))
    calls.set_quota(quota)
    dispatcher = Dispatcher(calls)
    for name, function in handlers.items():
        api = calls.api(ApiKey[name.upper()])
        assert api is not None
        api.handler = function
    async with serving(dispatcher.dispatch) as (_, port):
        with Connection(f"127.0.0.1:{port}", timeout_s=10) as connection:
            yield connection
    await dispatcher.stop()


async def ask(connection: Connection, key: ApiKey, version: int, request: dict[str, Any]) -> dict[str, Any]:
    return await asyncio.to_thread(connection.ask, key, version, request)


@pytest.mark.parametrize("account", [None, lambda served: None])
async def test_a_handler_knows_the_client_that_sent_the_request(account: Account | None) -> None:
    seen: list[Principal] = []

    def heartbeat(ctx: RequestContext, request: object) -> HeartbeatResponse:
        seen.append(ctx.principal)
        line = ctx.caller.session.line
        assert isinstance(line, ServerConnection)
        line.let_in(ALICE)
        return HeartbeatResponse()

    async with staged(account=account, heartbeat=heartbeat) as connection:
        await ask(connection, ApiKey.HEARTBEAT, 4, HEARTBEAT)
        await ask(connection, ApiKey.HEARTBEAT, 4, HEARTBEAT)
    assert seen == [ANONYMOUS, ALICE]


async def async_answer(ctx: RequestContext, request: object) -> HeartbeatResponse:
    await asyncio.sleep(0)  # completes in a later iteration of the event loop
    return HeartbeatResponse()


def late_answer(ctx: RequestContext, request: object) -> Deferred:
    deferred = Deferred()
    asyncio.get_running_loop().call_soon(deferred.complete, HeartbeatResponse())
    return deferred


def early_answer(ctx: RequestContext, request: object) -> Deferred:
    deferred = Deferred()
    deferred.complete(HeartbeatResponse())
    return deferred


async def later_than_its_handler(ctx: RequestContext, request: object) -> Deferred:
    await asyncio.sleep(0)  # completes in a later iteration of the event loop
    return late_answer(ctx, request)


ANSWERS = [lambda *_: HeartbeatResponse(), async_answer, late_answer, early_answer, later_than_its_handler]


@pytest.mark.parametrize("heartbeat", ANSWERS)
async def test_a_throttled_client_gets_the_throttle_time_and_is_muted(heartbeat: Callable[..., Any]) -> None:
    throttled = iter([200, 0])

    def quota(ctx: object, request: object, response: object) -> int:
        return next(throttled)

    async with staged(quota, heartbeat=heartbeat) as connection:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        first = await ask(connection, ApiKey.HEARTBEAT, 4, HEARTBEAT)
        second = await ask(connection, ApiKey.HEARTBEAT, 4, HEARTBEAT)
        assert (first["throttle_time_ms"], second["throttle_time_ms"]) == (200, 0)
        assert loop.time() - began_s >= 0.2, "requests sent while the connection is muted wait"


@pytest.mark.parametrize("heartbeat", ANSWERS)
async def test_served_requests_are_counted(heartbeat: Callable[..., Any]) -> None:
    seen: list[Served] = []
    async with staged(lambda ctx, request, response: 1, seen.append, heartbeat=heartbeat) as connection:
        sent = encode(ApiKey.HEARTBEAT, 4, HEARTBEAT)
        await asyncio.to_thread(connection.send, sent)
        answer = await asyncio.to_thread(connection.receive)
    (served,) = seen
    assert served.principal == ANONYMOUS
    assert (served.client_id, served.listener_name) == (CLIENT_ID, "PLAINTEXT")
    assert (served.api_key, served.api_version) == (ApiKey.HEARTBEAT, 4)
    assert (served.request_bytes, served.response_bytes) == (len(sent) - 4, len(answer))
    assert served.began_s <= served.ready_s <= served.answered_s
    assert (served.throttle_time_ms, served.error_code) == (1, 0)


async def test_failed_requests_and_requests_without_a_response_are_counted() -> None:
    seen: list[Served] = []

    def fail(*_: object) -> None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    handlers = {"produce": lambda *_: None, "heartbeat": fail}
    async with staged(None, seen.append, **handlers) as connection:
        connection.begin(ApiKey.PRODUCE, 9, {"acks": 0, **PRODUCE})
        await ask(connection, ApiKey.HEARTBEAT, 4, HEARTBEAT)
    produced, failed = seen
    assert (produced.api_key, produced.response_bytes, produced.response) == (ApiKey.PRODUCE, 0, None)
    assert (failed.api_key, failed.error_code) == (ApiKey.HEARTBEAT, ErrorCode.UNKNOWN_MEMBER_ID)


async def test_a_long_response_is_counted_after_it_is_encoded() -> None:
    seen: list[Served] = []
    many = [DeletableTopicResult(name=str(number)) for number in range(ELEMENTS_ON_LOOP_MAX + 1)]
    handlers = {"delete_topics": lambda *_: DeleteTopicsResponse(responses=many)}
    async with staged(None, seen.append, **handlers) as connection:
        connection.begin(ApiKey.DELETE_TOPICS, 5, {"topic_names": []})
        answer = await asyncio.to_thread(connection.receive)
    assert [(served.api_key, served.response_bytes) for served in seen] == [
        (ApiKey.DELETE_TOPICS, len(answer))
    ]


async def test_a_connection_is_unmuted_when_its_last_mute_expires() -> None:
    """After two throttled responses, the next request waits for the longer throttle time."""
    throttled = iter([50, 250, 0])
    waiting: list[Deferred] = []

    def produce(ctx: RequestContext, request: object) -> Deferred:
        waiting.append(Deferred())
        if len(waiting) == 2:
            for each in waiting:
                asyncio.get_running_loop().call_soon(each.complete, ProduceResponse())
        return waiting[-1]

    handlers: dict[str, Any] = {"produce": produce, "heartbeat": lambda *_: HeartbeatResponse()}
    async with staged(lambda ctx, request, response: next(throttled), **handlers) as connection:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for correlation_id in (1, 2):
            connection.send(encode(ApiKey.PRODUCE, 9, {"acks": 1, **PRODUCE}, correlation_id))
        for _ in range(2):
            await asyncio.to_thread(connection.receive)
        await ask(connection, ApiKey.HEARTBEAT, 4, HEARTBEAT)
        assert loop.time() - began_s >= 0.25
