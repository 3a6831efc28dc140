"""Delayed Produce requests, whose records are not yet replicated or flushed as `acks` requires."""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from typing import TYPE_CHECKING, Final

from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

if TYPE_CHECKING:
    from kafka_compat.replication.partition import Partition
    from kafka_compat.replication.replica_manager import ReplicaManager


_NONE: Final = ErrorCode.NONE
"""A copy of the member, because accessing an enumeration member takes two lookups by name."""


class DelayedProduce:
    """One Produce request, which completes when its batches are replicated or flushed, or at its deadline."""

    __slots__ = ("_deferred", "_replicas", "_response", "_timer", "_waiting")

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self._deferred: Deferred | None = None
        self._response: ProduceResponse | None = None
        self._timer: TimerHandle | None = None
        self._waiting: dict[int, PartitionProduceResponse] = {}

    def wait_for(
        self, partition: Partition, offset: int, acks: int, answer: PartitionProduceResponse
    ) -> None:
        """Wait until the records below `offset` are replicated or flushed as `acks` requires."""
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

    def start(self, response: ProduceResponse, timeout_ms: int) -> Deferred | None:
        """Delay the response. Return None if nothing is pending."""
        if not self._waiting:
            return None
        self._response = response
        self._timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, self._time_out)
        self._deferred = deferred = Deferred(self)
        self._replicas.delayed_produces += 1
        return deferred

    def cancel(self) -> None:
        """Cancel the request, because the caller has disconnected."""
        self._waiting.clear()
        self._end()

    def _time_out(self) -> None:
        for answer in self._waiting.values():
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
            answer.base_offset = -1
        self._waiting.clear()
        self._finish()

    def _finish(self) -> None:
        deferred = self._deferred
        if deferred is not None:
            self._end()
            deferred.complete(self._response)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._deferred = None
        self._replicas.delayed_produces -= 1
