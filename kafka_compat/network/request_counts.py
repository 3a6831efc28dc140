"""What the requests of a broker come to: how many, their errors, and how long they take.

There is one of these in a broker whose metrics somebody may ask for, and none in others. Its `dispatch`
stands before that of the dispatcher.

Rules
1. Each request is counted, by its API and version, and each error code of an answer.
2. Times and sizes are taken of TIMED_PER_S requests in a second for each API and version, which is of all
   where there are fewer: of one in so many as came in the second before (`pace`). The last KEPT of each
   kind are kept.
3. Fetches of followers and of consumers are of two kinds, as Kafka has them, and of a third together.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.network.api import Api, LateAnswer
from kafka_compat.network.error_codes import Codes
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.network.connection import Connection
    from kafka_compat.network.dispatch import Dispatcher
    from kafka_compat.network.output import Part
    from kafka_compat.network.stages import Served

TIMED_PER_S: Final = 20
_RARELY: Final = 1001
"""One in so many, where it turns out within a second that very many come."""
KEPT: Final = 512
FOLLOWER: Final = "FetchFollower"
CONSUMER: Final = "FetchConsumer"

_HEAD_BYTES: Final = 4
"""Of the key and the version, of which the lower halves alone are in use."""
_KINDS: Final = 1 << 16
_SIZE_BYTES: Final = 4


class Requests:
    """Those of one API in one version."""

    __slots__ = ("_left", "_paced", "count", "every", "next_timed")

    def __init__(self) -> None:
        self.count = 0
        self.next_timed = 1
        self.every = 1
        """One in so many is timed."""
        self._left = TIMED_PER_S
        self._paced = 0

    def timed(self) -> None:
        """One is: which is the next."""
        self._left -= 1
        if self._left == 0:
            # Many come at once, and nobody knows yet how many.
            self.every = max(self.every, _RARELY)
        self.next_timed = self.count + self.every

    def pace(self, second_s: float) -> None:
        """So many seconds have passed since this was asked before."""
        rate = (self.count - self._paced) / second_s
        self._paced = self.count
        self._left = TIMED_PER_S
        # Odd, so that it does not fall in step with what clients repeat.
        self.every = int(rate / TIMED_PER_S) | 1
        self.next_timed = min(self.next_timed, self.count + self.every)


COLUMNS: Final = ("queue", "local", "remote", "throttle", "send", "total", "size")


class Times:
    """Of the last timed requests of one kind, a column for each of COLUMNS: ms, and bytes."""

    __slots__ = ("_columns", "_next")

    def __init__(self) -> None:
        self._columns = [array("d") for _ in COLUMNS]
        self._next = 0

    def add(self, values: tuple[float, ...]) -> None:
        """One request, in the order of COLUMNS."""
        position = self._next
        is_full = len(self._columns[0]) == KEPT
        for column, value in zip(self._columns, values, strict=True):
            if is_full:
                column[position] = value
            else:
                column.append(value)
        self._next = (position + 1) % KEPT

    def sorted(self, column: str) -> list[float]:
        """What was seen, the least first."""
        return sorted(self._columns[COLUMNS.index(column)])


class RequestCounts:
    """See the rules above; those of one broker."""

    def __init__(self) -> None:
        self._by_kind: list[Requests | None] = [None] * _KINDS
        """By key << 8 | version."""
        self._seen: list[int] = []
        """The kinds that there are."""
        self.codes: dict[int, Codes] = {}
        """By key."""
        self.times: dict[str, Times] = {}
        """By the name of the API, or the kind of a fetch."""
        self._names: dict[int, str] = {}
        self._unknown = Requests()

    def stand_before(self, dispatcher: Dispatcher) -> None:
        """Pass on to this one."""
        self._dispatcher = dispatcher

    def dispatch(self, connection: Connection, frame: memoryview) -> bool:
        """Serve one frame; False when the connection must be closed."""
        if len(frame) < _HEAD_BYTES:
            return self._dispatcher.dispatch(connection, frame)
        kind: int = frame[1] << 8 | frame[3]
        requests = self._by_kind[kind]
        if requests is None:
            requests = self._first(kind)
        requests.count += 1
        if requests.count == requests.next_timed:
            requests.timed()
            return self._dispatcher.dispatch_timed(connection, frame)
        return self._dispatcher.dispatch(connection, frame)

    @property
    def requests(self) -> list[tuple[int, int, int]]:
        """(key, version, how many) of all that there were."""
        found = []
        for kind in self._seen:
            requests = self._by_kind[kind]
            if requests is not None:
                found.append((kind >> 8, kind & 0xFF, requests.count))
        return found

    def pace(self, second_s: float) -> None:
        """So many seconds have passed since this was asked before, or since the beginning."""
        for kind in self._seen:
            requests = self._by_kind[kind]
            if requests is not None:
                requests.pace(second_s)

    def _first(self, kind: int) -> Requests:
        api = self._dispatcher.api(kind >> 8)
        if api is None or not api.min_version <= kind & 0xFF <= api.max_version:
            self._unknown.next_timed = 0
            return self._unknown
        found = self._by_kind[kind] = Requests()
        self._seen.append(kind)
        return found

    def new_api(self, key: ApiKey, min_version: int, max_version: int, answer_late: LateAnswer) -> Api:
        """For the dispatcher."""
        codes = self.codes[key] = Codes()
        return CountedApi(key, min_version, max_version, answer_late, codes)

    def timed(self, served: Served) -> None:
        """For the dispatcher: a request of which the times are known."""
        ctx = served.context
        key = served.api_key
        values = (
            ctx.queued_s * 1000,
            (ctx.local_s - served.began_s) * 1000,
            max(served.ready_s - ctx.local_s, 0.0) * 1000,
            float(served.throttle_time_ms),
            max(served.answered_s - served.ready_s, 0.0) * 1000,
            (served.answered_s - served.began_s + ctx.queued_s) * 1000,
            float(served.request_bytes + _SIZE_BYTES),
        )
        name = self._names.get(key)
        if name is None:
            from kafka_compat.protocol.json_form import api_name

            name = self._names[key] = api_name(key)
        self._of(name).add(values)
        if key is ApiKey.FETCH and ctx.request is not None:
            self._of(FOLLOWER if is_of_follower(ctx.request) else CONSUMER).add(values)

    def _of(self, name: str) -> Times:
        found = self.times.get(name)
        if found is None:
            found = self.times[name] = Times()
        return found


def is_of_follower(request: Any) -> bool:
    """Whether a FetchRequest is another broker's."""
    is_of_follower: bool = request.replica_id >= 0 or request.replica_state.replica_id >= 0
    return is_of_follower


class CountedApi(Api):
    """An API whose answers' error codes are counted."""

    __slots__ = ("_codes",)

    def __init__(
        self, key: ApiKey, min_version: int, max_version: int, answer_late: LateAnswer, codes: Codes
    ) -> None:
        super().__init__(key, min_version, max_version, answer_late)
        self._codes = codes

    def encode(self, version: int, correlation_id: int, response: Any) -> list[Part]:
        parts = Api.encode(self, version, correlation_id, response)
        self._codes.count(response)
        return parts

    def encode_long(self, version: int, correlation_id: int, response: Any) -> list[Part]:
        # Counted in the codec's thread, too: only long answers of the same API could lose a count by that.
        self._codes.count(response)
        return super().encode_long(version, correlation_id, response)
