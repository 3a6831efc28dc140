"""Request statistics of a broker: counts, error codes, durations and sizes by API and version.

Rules
1. Each request is counted by API and version.
2. If metrics may be requested, each error code of a response is also counted, and TIMED_PER_S requests per
   second are timed and measured for each API and version. At low rates, all requests are timed; at higher
   rates, every Nth request, where N depends on the rate in the previous second (`pace`). The last KEPT values
   of each kind are kept.
3. Fetches by followers and by consumers are separate kinds, as in Kafka; a third kind contains both.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.api.api import Api
    from kafka_compat.api.error_codes import Codes
    from kafka_compat.api.stages import StagedContext

KEPT: Final = 512
FOLLOWER: Final = "FetchFollower"
CONSUMER: Final = "FetchConsumer"

_SIZE_BYTES: Final = 4


COLUMNS: Final = ("queue", "local", "remote", "throttle", "send", "total", "size")


class Times:
    """The last KEPT timed requests of one kind, as columns of milliseconds or bytes (see COLUMNS)."""

    __slots__ = ("_columns", "_next")

    def __init__(self) -> None:
        self._columns = [array("d") for _ in COLUMNS]
        self._next = 0

    def add(self, values: tuple[float, ...]) -> None:
        """Add the values of one request, in the order of COLUMNS."""
        position = self._next
        is_full = len(self._columns[0]) == KEPT
        for column, value in zip(self._columns, values, strict=True):
            if is_full:
                column[position] = value
            else:
                column.append(value)
        self._next = (position + 1) % KEPT

    def sorted(self, column: str) -> list[float]:
        """Return the values of a column in ascending order."""
        return sorted(self._columns[COLUMNS.index(column)])


class RequestCounts:
    """Request statistics of one broker. `apis` maps API keys to the APIs that clients have used."""

    def __init__(self, apis: Mapping[int, Api]) -> None:
        self._apis = apis
        self.times: dict[str, Times] = {}
        """Maps the name of each API or kind of fetch to its timed requests."""

    @property
    def requests(self) -> list[tuple[int, int, int]]:
        """A tuple (key, version, count) for each API and version that has been requested."""
        return [
            (key, version, requests.count)
            for key, api in self._apis.items()
            for version, requests in enumerate(api.requests)
            if requests.count
        ]

    @property
    def codes(self) -> dict[int, Codes]:
        """Error code counts by API key."""
        return {key: api.codes for key, api in self._apis.items()}

    def pace(self, second_s: float) -> None:
        """Adapt the sampling intervals to the request rates of the last `second_s` seconds."""
        for api in self._apis.values():
            for requests in api.requests:
                if requests.count:
                    requests.pace(second_s)

    def timed(self, ctx: StagedContext, answered_s: float) -> None:
        """Record a timed request, after all of its times are known."""
        from kafka_compat.protocol.json_form import api_name

        key = ctx.api_key
        values = (
            ctx.queued_s * 1000,
            (ctx.local_s - ctx.began_s) * 1000,
            max(ctx.ready_s - ctx.local_s, 0.0) * 1000,
            float(ctx.throttle_time_ms),
            max(answered_s - ctx.ready_s, 0.0) * 1000,
            (answered_s - ctx.began_s + ctx.queued_s) * 1000,
            float(ctx.request_bytes + _SIZE_BYTES),
        )
        self._of(api_name(key)).add(values)
        if key is ApiKey.FETCH and ctx.request is not None:
            self._of(FOLLOWER if is_of_follower(ctx.request) else CONSUMER).add(values)

    def _of(self, name: str) -> Times:
        found = self.times.get(name)
        if found is None:
            found = self.times[name] = Times()
        return found


def is_of_follower(request: Any) -> bool:
    """Return whether a FetchRequest was sent by another broker."""
    is_of_follower: bool = request.replica_id >= 0 or request.replica_state.replica_id >= 0
    return is_of_follower
