"""A Produce request whose records are appended and not yet as safe as `acks` asks."""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

if TYPE_CHECKING:
    from kafka_compat.replication.fetch_context import FetchConnection
    from kafka_compat.replication.partition import Partition


_NONE: Final = ErrorCode.NONE
"""At hand: a member of an enumeration takes two look-ups by name."""


class ProduceContext(Protocol):
    """What is used of a request's context, as kafka_compat.network.request has it."""

    @property
    def connection(self) -> FetchConnection: ...

    def respond(self, response: Any) -> None: ...


class DelayedProduce:
    """Answered when all of its partitions are committed, or its time is over; it ends with its connection."""

    __slots__ = ("_ctx", "_response", "_timer", "_waiting")

    def __init__(self, ctx: ProduceContext) -> None:
        self._ctx = ctx
        self._response: ProduceResponse | None = None
        self._timer: TimerHandle | None = None
        self._waiting: dict[int, PartitionProduceResponse] = {}

    def wait_for(
        self, partition: Partition, offset: int, acks: int, answer: PartitionProduceResponse
    ) -> None:
        """Wait until the records below `offset` are as safe as that; an error changes the answer."""
        key = id(answer)
        self._waiting[key] = answer

        def reached(code: ErrorCode) -> None:
            if self._waiting.pop(key, None) is None:
                return
            if code != _NONE:
                answer.error_code = code
                answer.base_offset = -1
            if not self._waiting:
                self._finish()

        if acks == -1:
            partition.when_committed(offset, reached)
        else:
            partition.when_durable(offset, reached)

    def start(self, response: ProduceResponse, timeout_ms: int) -> bool:
        """Whether something is still waited for; then the response goes out later."""
        if not self._waiting:
            return False
        self._response = response
        self._timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, self._time_out)
        self._ctx.connection.parked.add(self)
        return True

    def connection_ended(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _time_out(self) -> None:
        for answer in self._waiting.values():
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
            answer.base_offset = -1
        self._waiting.clear()
        self._finish()

    def _finish(self) -> None:
        if self._response is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._ctx.connection.parked.discard(self)
        self._ctx.respond(self._response)
