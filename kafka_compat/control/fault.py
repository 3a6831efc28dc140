"""Fault applied to one request: an error, a lost or changed response, or a delay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafka_compat.api.stages import Next
from kafka_compat.deferred import Deferred, HungUp
from kafka_compat.errors import KafkaError


@dataclass(slots=True, frozen=True)
class Fault:
    """One."""

    error: KafkaError | None = None
    """What it is answered with; it is not handled."""
    is_dropped: bool = False
    """It is not handled, and its connection ends."""
    is_lost: bool = False
    """It is handled, and its connection ends in the place of an answer."""
    delay_ms: int = 0
    """For how long the answer is held back."""
    amend: Callable[[Any], None] | None = None
    """Changes the response."""
    mangle: Callable[[bytes], bytes] | None = None
    """What is sent in the place of an answer, from the size before it on. Where that is shorter, the
    connection ends after it.
    """

    def serve(self, ctx: Any, request: Any, go_on: Next) -> Any:
        """Serve a request that it is for, by what comes next or not (see api.stages.Middleware)."""
        if self.error is not None:
            raise self.error
        if self.is_dropped:
            raise HungUp
        result = go_on(ctx, request)
        changed = Deferred()
        if isinstance(result, Deferred):
            changed.work = result
            changed.is_serial = result.is_serial
            result.when_done(lambda done: self._done(changed, done))
            result.when_released(changed.release)
        else:
            self._change(changed, result)
        return changed

    def _done(self, changed: Deferred, result: Deferred) -> None:
        if result.is_hung_up:
            changed.hang_up()
        else:
            self._change(changed, result.response)

    def _change(self, changed: Deferred, response: Any) -> None:
        if self.is_lost:
            changed.hang_up()
            return
        if response is not None:
            changed.mangle = self.mangle
            if self.amend is not None:
                self.amend(response)
        if self.delay_ms:
            asyncio.get_running_loop().call_later(self.delay_ms / 1000, changed.complete, response)
        else:
            changed.complete(response)
