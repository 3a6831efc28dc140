"""Faults for single requests: an error, a closed connection, or a lost, changed or delayed response."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafka_compat.api.stages import Next
from kafka_compat.deferred import Deferred, HungUp
from kafka_compat.errors import KafkaError


@dataclass(slots=True, frozen=True)
class Fault:
    """A fault to inject into one request."""

    error: KafkaError | None = None
    """Error to return instead of handling the request."""
    is_dropped: bool = False
    """Whether to close the connection without handling the request."""
    is_lost: bool = False
    """Whether to handle the request, but close the connection instead of sending the response."""
    delay_ms: int = 0
    """Delay of the response in milliseconds."""
    amend: Callable[[Any], None] | None = None
    """Function that changes the response in place."""
    mangle: Callable[[bytes], bytes] | None = None
    """Function that takes the encoded response, including its size field, and returns the bytes to send
    instead. If it returns fewer bytes, the connection is closed after they are sent.
    """

    def serve(self, ctx: Any, request: Any, go_on: Next) -> Any:
        """Apply this fault to a request. This method is an api.stages.Middleware."""
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
