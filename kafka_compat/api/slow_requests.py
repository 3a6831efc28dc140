"""Logging of requests that took longer than kafka.compat.log.slow.request.ms.

If the setting is -1, the default, requests are not timed. Otherwise, an Account (stages.py) times each
request, from the start of serving until its response is passed to the connection. The time that a request
asks to wait does not count: the limit for a fetch is increased by its `max_wait_ms`, and JoinGroup and
SyncGroup, which wait for other members, are excluded.

At most one line is logged per second. Further slow requests are counted, and the count is logged at the end
of the second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.api.calls import Calls
    from kafka_compat.api.stages import Served
    from kafka_compat.config import BrokerConfig

log = logging.getLogger(__name__)

SETTING: Final = "kafka.compat.log.slow.request.ms"
OFF: Final = -1
QUIET_S: Final = 1.0

_WAIT_FOR_OTHERS: Final = frozenset((ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP))


class SlowRequests:
    """Logging of one broker's slow requests."""

    def __init__(self, config: BrokerConfig, calls: Calls) -> None:
        self._config = config
        self._calls = calls
        self._threshold_ms = OFF
        self._quiet: asyncio.TimerHandle | None = None
        """Timer that runs for QUIET_S after each log line."""
        self._left_out = 0
        self._slowest: tuple[int, str] = (0, "")
        """Duration in milliseconds and description of the slowest request not yet logged."""
        self.obey()

    def obey(self, _changed: AbstractSet[str] = frozenset()) -> None:
        """Apply the current value of kafka.compat.log.slow.request.ms."""
        before, self._threshold_ms = self._threshold_ms, self._config.int(SETTING)
        if before == OFF and self._threshold_ms != OFF:
            self._calls.add_account(self._look)
        elif before != OFF and self._threshold_ms == OFF:
            self._calls.remove_account(self._look)

    def _look(self, served: Served) -> None:
        if self._threshold_ms == OFF:
            return  # Logging of slow requests was disabled while the request was being served.
        took_ms = int((served.answered_s - served.began_s) * 1000)
        if took_ms < self._threshold_ms or served.api_key in _WAIT_FOR_OTHERS:
            return
        if served.api_key is ApiKey.FETCH:
            request = served.context.request
            if request is None or took_ms - request.max_wait_ms < self._threshold_ms:
                return
        if self._quiet is None:
            log.warning("Slow request: %s", _described(served, took_ms))
            self._be_quiet()
            return
        self._left_out += 1
        if took_ms >= self._slowest[0]:
            self._slowest = took_ms, _described(served, took_ms)

    def _be_quiet(self) -> None:
        self._quiet = asyncio.get_running_loop().call_later(QUIET_S, self._end_quiet)

    def _end_quiet(self) -> None:
        self._quiet = None
        if self._left_out:
            log.warning("Further slow requests: %d; slowest: %s", self._left_out, self._slowest[1])
            self._left_out, self._slowest = 0, (0, "")
            self._be_quiet()


def _described(served: Served, took_ms: int) -> str:
    from kafka_compat.protocol.json_form import api_name

    client = "a client" if served.client_id is None else f"client {served.client_id}"
    error = f", error {served.error_code}" if served.error_code else ""
    return (
        f"{api_name(served.api_key)} v{served.api_version} from {client} ({served.principal}) at "
        f"{served.context.client_host} on listener {served.listener_name} took {took_ms} ms "
        f"(bytes received: {served.request_bytes}, bytes sent: {served.response_bytes}{error})"
    )
