"""Authorization of requests with many topics: checking them yields to the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

from kafka_compat.handlers.produce import produce
from kafka_compat.long_work import TURN_S, LongWork
from kafka_compat.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.conformance.batches import batch
from tests.support.contexts import request_context

_TOPICS = 50


class Slow:
    """An authorizer that is slow, and denies everything."""

    def allows(self, *_: object, **__: object) -> bool:
        time.sleep(TURN_S / 4)  # simulates a slow authorization check
        return False

    allows_any = allows


async def test_authorizing_many_topics_of_a_produce_request_yields_to_the_event_loop() -> None:
    loop = asyncio.get_running_loop()
    work = LongWork(loop)
    ctx = request_context(SimpleNamespace(authorizer=Slow(), long_work=work), 8)
    data = PartitionProduceData(index=0, records=memoryview(bytearray(batch(1))))
    topics = [TopicProduceData(name=f"t-{number}", partition_data=[data]) for number in range(_TOPICS)]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    others = 0

    def another() -> None:
        nonlocal others
        others += 1
        loop.call_soon(another)

    loop.call_soon(another)
    response: Any = produce.function(ctx, request)
    assert isinstance(response, Coroutine)
    answer = await response
    assert others > 5, "other callbacks run during the authorization checks"
    codes = [topic.partition_responses[0].error_code for topic in answer.responses]
    assert codes == [29] * _TOPICS
    work.close()
