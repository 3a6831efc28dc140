"""ShareFetch (API key 78): acquire records for a member of a share group, and acknowledge earlier ones
(KIP-932). Version 2 adds exact limits (KIP-1206) and the renewal of acquisition locks (KIP-1222).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.config.group import share_group_limits
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.share_requests import (
    FIRST_VERSION_WITH_RENEWALS,
    AcknowledgedBatches,
    Leaders,
    Outcomes,
    Topics,
    acknowledge,
    checked_key,
    grouped,
)
from kafka_compat.handlers.share_response_order import in_kafka_order, in_order_of_additions
from kafka_compat.long_work import AT_ONCE, Steps, batched
from kafka_compat.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kafka_compat.share_partitions.delayed_share_fetch import (
    DelayedShareFetch,
    FetchedPartition,
    Results,
    ShareFetchParams,
)
from kafka_compat.share_partitions.share_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    ShareSession,
    TopicIdPartition,
    next_epoch,
)

if TYPE_CHECKING:
    from kafka_compat.share_partitions.share_partition_manager import SharePartitionManager

NO_RECORDS: Final = b""
NO_BATCHES: Final[Sequence[AcknowledgementBatch]] = ()
_AT_ONCE: Final = 64
"""Number of partitions up to which a request is processed without yielding to the event loop."""
_ACKNOWLEDGED_AT_ONCE: Final = 500
"""Number of acknowledgements up to which a request is processed without yielding to the event loop."""
_PARTITION_BYTES: Final = 40
"""Approximate size of a partition in the response without its records."""


@handler(1, 2)
def share_fetch(ctx: RequestContext, request: ShareFetchRequest) -> Steps[ShareFetchResponse | Deferred]:
    key = checked_key(ctx, request.group_id, request.member_id)
    manager = ctx.services.share_partitions
    is_renewal = request.is_renew_ack and ctx.api_version >= FIRST_VERSION_WITH_RENEWALS
    if is_renewal and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    partitions: list[TopicIdPartition] = []
    batches: AcknowledgedBatches = {}
    acknowledged: AcknowledgedBatches = {}
    acknowledgements = 0
    request.topics.reverse()
    while request.topics:
        # Freeing very many topics or partitions at once would take long.
        topic = request.topics.pop()
        topic.partitions.reverse()
        while topic.partitions:
            wanted = topic.partitions.pop()
            partition = TopicIdPartition(topic.topic_id, wanted.partition_index)
            partitions.append(partition)
            if wanted.acknowledgement_batches:
                acknowledged[partition] = wanted.acknowledgement_batches
                acknowledgements += _size_of(wanted.acknowledgement_batches)
            elif partition in acknowledged:
                acknowledged[partition] = NO_BATCHES
            yield None
    has_batches = bool(acknowledged)
    for some in batched(partitions if has_batches else ()):
        batches.update((partition, acknowledged.get(partition, NO_BATCHES)) for partition in some)
        yield None
    epoch = request.share_session_epoch
    try:
        session = _session(ctx, manager, key, epoch, has_batches)
    except KafkaError as error:
        if error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _later(ShareFetchResponse(error_code=error.code), request.max_wait_ms)
        raise
    if epoch != FINAL_EPOCH:
        for some in batched(partitions):
            session.add(some, is_new=epoch != INITIAL_EPOCH)
            yield None
    if epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        while request.forgotten_topics_data:
            forgotten = request.forgotten_topics_data.pop()
            numbers = forgotten.partitions
            while numbers:
                session.forget(forgotten.topic_id, numbers[-AT_ONCE:])
                del numbers[-AT_ONCE:]
                yield None
    for some in batched(partitions):
        for partition in some:
            name = ctx.services.metadata.topic_name(partition.topic_id)
            if name is not None and partition in session.partitions:
                session.names.setdefault(partition, name)
        yield None
    exchange = _Exchange(ctx, manager, key, epoch, session)
    topics = Topics(ctx)
    steps = chain(
        exchange.acknowledge(request, topics, batches) if has_batches else (),
        exchange.fetch(request, topics) if not is_renewal and epoch != FINAL_EPOCH else (),
    )
    if len(partitions) + len(session.partitions) > _AT_ONCE or acknowledgements > _ACKNOWLEDGED_AT_ONCE:
        yield from steps
    else:
        # The fetch comes before the results of the acknowledgements, even if the event loop is busy.
        deque(steps, 0)
    return exchange.begun()


def _size_of(batches: Sequence[AcknowledgementBatch]) -> int:
    """Return the number of acknowledgements, or of batches, if these are many."""
    if len(batches) > _ACKNOWLEDGED_AT_ONCE:
        return len(batches)
    return sum(len(each.acknowledge_types) for each in batches)


def _session(
    ctx: RequestContext,
    manager: SharePartitionManager,
    key: SessionKey,
    epoch: int,
    has_batches: bool,
) -> ShareSession:
    """Open, continue or find the session. Raises KafkaError if the epoch is invalid."""
    if epoch != INITIAL_EPOCH:
        return manager.sessions.advance(key, epoch)
    if has_batches:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    connection = ctx.caller.session
    sessions_max = share_group_limits(ctx.services.config).share_sessions_max
    session = manager.open_session(key, connection, sessions_max)
    connection.when_left("share sessions", partial(manager.connection_closed, connection, key.group_id))
    return session


def _later(response: ShareFetchResponse, delay_ms: int) -> Deferred:
    """Complete a response after a delay, so that the client does not repeat its request at once."""
    deferred = Deferred()
    loop = asyncio.get_running_loop()
    deferred.work = loop.call_later(max(delay_ms, 0) / 1000, deferred.complete, response)
    return deferred


class _Exchange:
    """One request with a valid session: it waits for the fetch and the acknowledgements, and responds."""

    def __init__(
        self,
        ctx: RequestContext,
        manager: SharePartitionManager,
        key: SessionKey,
        epoch: int,
        session: ShareSession,
    ) -> None:
        self._ctx = ctx
        self._manager = manager
        self._key = key
        self._epoch = epoch
        self._session = session
        self._deferred = Deferred(self)
        self._fetch: DelayedShareFetch | None = None
        self._results: Results = {}
        self._outcomes: Outcomes = {}
        self._waiting = 1
        """Number of parts that are not complete: the fetch, the acknowledgements, and the request itself."""

    def acknowledge(
        self, request: ShareFetchRequest, topics: Topics, batches: AcknowledgedBatches
    ) -> Steps[None]:
        self._waiting += 1
        yield from acknowledge(
            self._ctx, self._manager, self._key, topics, batches, request.is_renew_ack, self._acknowledged
        )

    def fetch(self, request: ShareFetchRequest, topics: Topics) -> Steps[None]:
        ctx = self._ctx
        usable: list[TopicIdPartition] = []
        errors: Results = {}
        results_of: dict[ErrorCode, FetchedPartition] = {}
        for partition in self._session.rotated(self._epoch):
            code = topics.problem(partition, self._session.names.get(partition))
            if code == ErrorCode.NONE:
                usable.append(partition)
            else:
                errors[partition] = results_of.setdefault(code, FetchedPartition(code))
            yield None
        services = ctx.services
        max_bytes = min(request.max_bytes, services.config.int("fetch.max.bytes"))
        if services.quotas is not None:
            max_bytes = min(max_bytes, services.quotas.fetch_max_bytes(ctx))
        settings = self._manager.settings(self._key.group_id)
        params = ShareFetchParams(
            group_id=self._key.group_id,
            member_id=self._key.member_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            max_records=request.max_records,
            batch_size=max(request.batch_size, 1),
            is_exact=request.share_acquire_mode == 1,
            is_committed_only=settings.is_read_committed,
        )
        self._waiting += 1
        if not ctx.has_left:
            self._fetch = yield from self._manager.fetch(params, usable, errors, self._fetched)
            if ctx.has_left:
                self._fetch.cancel()

    def begun(self) -> Deferred:
        """Return the response, which may be complete."""
        self._part_done()
        return self._deferred

    def cancel(self) -> None:
        """Stop waiting for records, because the client has disconnected."""
        if self._fetch is not None:
            self._fetch.cancel()

    def _fetched(self, results: Results) -> None:
        self._results = results
        self._part_done()

    def _acknowledged(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._part_done()

    def _part_done(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._ctx.long_work.start(self._response(), self._respond)

    def _respond(self, response: ShareFetchResponse) -> None:
        self._deferred.complete(response)
        if self._epoch == FINAL_EPOCH:
            self._manager.end_session(self._key)

    def _response(self) -> Steps[ShareFetchResponse]:
        is_first = self._epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        if not is_first and self._session.epoch != next_epoch(self._epoch):
            return ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        quotas = self._ctx.services.quotas
        if quotas is not None:
            size_bytes = _PARTITION_BYTES * len(self._results)
            for some in batched(self._results.values()):
                size_bytes += sum(each.records.size_bytes for each in some if each.records is not None)
                yield None
            throttle_ms = quotas.fetched(self._ctx, size_bytes)
            if throttle_ms > 0:
                return ShareFetchResponse(throttle_time_ms=throttle_ms)
        leaders = Leaders(self._ctx)
        found: dict[TopicIdPartition, PartitionData] = {}
        ordered = yield from in_kafka_order(self._results, self._session.names.get)
        self._results = {}
        for key in list(ordered):
            yield None
            result = ordered.pop(key)
            if is_first or self._session.must_send(key, result.code, result.records is not None):
                found[key] = _data(key, result, leaders)
        others: list[TopicIdPartition] = []
        for keys in batched(self._outcomes):
            others += (key for key in keys if key not in found)
            yield None
        for key in (yield from in_order_of_additions(others)):
            yield None
            found[key] = PartitionData(partition_index=key.partition, records=NO_RECORDS)
        for key, (code, message) in self._outcomes.items():
            yield None
            found[key].acknowledge_error_code = code
            found[key].acknowledge_error_message = message
        responses = []
        for topic_id, partitions in (yield from grouped(found.items())).items():
            responses.append(ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions))
            yield None
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._manager.limits(self._key.group_id).lock_duration_ms,
            responses=responses,
            node_endpoints=leaders.endpoints,
        )


def _data(key: TopicIdPartition, result: FetchedPartition, leaders: Leaders) -> PartitionData:
    data = PartitionData(partition_index=key.partition, error_code=result.code, records=NO_RECORDS)
    leader = leaders.of(key, result.code)
    if leader is not None:
        data.current_leader = leader
    records = result.records
    if records is not None:
        data.records = records
        data.acquired_records = [
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=delivery_count)
            for first, last, delivery_count in result.acquired
        ]
        if result.replica is not None:
            result.replica.counts.bytes_out += records.size_bytes
    return data
