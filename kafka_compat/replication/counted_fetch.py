"""A fetch that counts what it gives out."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.fetch import FetchResponse
from kafka_compat.replication.counts import Counts, TopicCounts
from kafka_compat.replication.delayed_fetch import DelayedFetch
from kafka_compat.replication.fetch_answer import FIRST_VERSION_WITH_FORMAT_2, Look

if TYPE_CHECKING:
    from kafka_compat.long_work import Steps
    from kafka_compat.replication.fetch_session import FetchTarget

_ENTRY: Final = Struct(">qi")
"""Its offset and its size."""
CountedContext = Any
CountedServices = Any
"""Those of a FetchContext, with `counts`."""

_FAILURES: Final = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR})
"""What a reader can do nothing about: the rest Kafka tells of elsewhere."""


class CountedFetch(DelayedFetch):
    """See the module; it does what a DelayedFetch does."""

    __slots__ = ()

    def _answer(self, look: Look) -> FetchResponse:
        response = DelayedFetch._answer(self, look)
        self._count(look, response)
        return response

    def _answer_in_steps(self, look: Look) -> Steps[FetchResponse]:
        response = yield from super()._answer_in_steps(look)
        self._count(look, response)
        return response

    def _time_out(self) -> None:
        if not self._done:
            counts: Counts = self._services.counts
            counts.expired_fetches["follower" if self._replica_id >= 0 else "consumer"] += 1
        super()._time_out()

    def _count(self, look: Look, response: FetchResponse) -> None:
        ctx: CountedContext = self._ctx
        counts: Counts = ctx.services.counts
        is_follower = self._replica_id >= 0
        if is_follower:
            fetches = counts.follower_fetches
            fetches[ctx.api_version] = fetches.get(ctx.api_version, 0) + 1
        # Where a quota leaves an answer empty, or old formats are sent, its size is another one.
        as_found = self._quotas is None and ctx.api_version >= FIRST_VERSION_WITH_FORMAT_2
        known = counts.known_as
        for target, data, size_bytes in look.found:
            counted = known.get(target.key[0])
            if counted is None:
                counted = self._first_of(target)
                if counted is None:
                    # Whoever asks for what is not there makes nothing.
                    continue
            counted.fetches += 1
            if size_bytes and as_found:
                if size_bytes < ctx.sendfile_bytes_min:
                    counts.fetched_copied_bytes += size_bytes
                else:
                    counts.fetched_sendfile_bytes += size_bytes
                if is_follower:
                    counted.replicated_bytes_out += size_bytes
                else:
                    counted.bytes_out += size_bytes
            elif data.error_code in _FAILURES:
                counted.failed_fetches += 1
        if not as_found:
            self._count_sent(response)

    def _count_sent(self, response: FetchResponse) -> None:
        names = self._services.metadata.topic_name
        for topic in response.responses:
            name = topic.topic or names(topic.topic_id)
            counted = None if name is None else self._services.counts.topics.get(name)
            if counted is not None:
                for partition in topic.partitions:
                    records = partition.records
                    if isinstance(records, (bytes, bytearray, memoryview)):
                        counted.bytes_out += len(records)
                        counted.converted_out += _entries(records)
                    elif records is not None:
                        counted.bytes_out += records.size_bytes

    def _first_of(self, target: FetchTarget) -> TopicCounts | None:
        counts: Counts = self._services.counts
        topic = target.topic
        name = topic if isinstance(topic, str) else self._services.metadata.topic_name(topic)
        return None if name is None else counts.know(target.key[0], name)

    @property
    def _services(self) -> CountedServices:
        return self._ctx.services


def _entries(data: bytes | bytearray | memoryview) -> int:
    """How many records, or sets of them, there are in old formats."""
    count = position = 0
    while position + _ENTRY.size <= len(data):
        position += _ENTRY.size + _ENTRY.unpack_from(data, position)[1]
        count += 1
    return count
