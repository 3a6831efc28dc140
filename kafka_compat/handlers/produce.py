"""Produce (API key 0): append one batch to each partition, and respond as `acks` requires.

With acks=0, there is no response, and the connection is closed after an error. With acks=1, the response is
sent once the records are in this replica's log; with acks=all (-1), once they are in the logs of all in-sync
replicas. Versions 3, 8, 10 and 13 add record format 2, errors for individual records (KIP-467), the current
leader (KIP-951) and topic IDs (KIP-516), respectively.

Transactional records are accepted only if the transaction's coordinator has registered the partition
(KIP-890). Otherwise, version 11 and later return TRANSACTION_ABORTABLE, and earlier versions
INVALID_TXN_STATE. In version 12 and later, the request itself registers the partition.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from librt.strings import read_i32_be

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred, HungUp
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.produce_refusals import (
    ATTRIBUTES_LOW_BYTE,
    MAGIC_POSITION,
    failure,
    is_transactional,
    refused,
    start_of,
    take_out_denied,
    unverified,
)
from kafka_compat.metadata.topic_names import INTERNAL_TOPICS
from kafka_compat.protocol.buffers import in_memory, size_of
from kafka_compat.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka_compat.replication.delayed_produce import DelayedProduce
from kafka_compat.storage.errors import OutOfOrderSequence, StorageError, TakesLong
from kafka_compat.storage.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    TRANSACTIONAL_FLAG,
    Buffer,
    read_header,
)
from kafka_compat.storage.records.validation import (
    QUICK_BYTES_MAX,
    QUICK_COMPRESSED_BYTES_MAX,
    QUICK_RECORDS_MAX,
    ValidatedBatches,
)

if TYPE_CHECKING:
    from kafka_compat.long_work import Steps
    from kafka_compat.replication.partition import Partition
    from kafka_compat.transactions.verification import PartitionErrors, Verification

Validated = dict[int, ValidatedBatches | StorageError]
"""Maps the id() of each partition's request data to its validated batches or to the validation error."""

QUICK_PARTITIONS_MAX: Final = 32
"""Maximum number of small batches that are appended without yielding to the event loop."""

ADMIN_CLIENT_ID: Final = "__admin_client"
_COUNT_POSITION: Final = 57
_ACKS: Final = (-1, 0, 1)
_PLAIN: Final = 0
_CHECKED: Final = 1
_LONG: Final = 2
"""Kinds of requests: those that need no check as a whole, those that do, and those that may take long."""
_FIRST_VERSION_WITH_ABORTABLE: Final = 11
_FIRST_VERSION_THAT_ADDS: Final = 12


@handler(0, 13)
def produce(
    ctx: RequestContext, request: ProduceRequest
) -> ProduceResponse | Deferred | Coroutine[Any, Any, ProduceResponse | Deferred | None] | None:
    if ctx.services.authorizer is None or ctx.authorizer is None:
        kind = _kind(ctx, request)
        if kind == _PLAIN:
            return _Appends(ctx, request, [], {}, {}).append_all(None)
        if kind != _LONG:
            return _append_verified(ctx, request, [], {})
    return ctx.long_work.run(_produce_in_steps(ctx, request), partial(_keep_records, ctx, request))


def _append_verified(
    ctx: RequestContext, request: ProduceRequest, denied: list[TopicProduceResponse], validated: Validated
) -> ProduceResponse | Deferred | Coroutine[Any, Any, ProduceResponse | Deferred | None] | None:
    """Append to all partitions, once the coordinator has confirmed that the transaction includes them."""
    verification = _verify(ctx, request)
    if verification is None:
        return _Appends(ctx, request, denied, {}, validated).append_all(_refusal(request))
    if verification.is_answered:
        verified = verification.take()
        return _Appends(ctx, request, denied, verified, validated).append_all(_refusal(request))
    _keep_records(ctx, request)
    return _when_verified(ctx, request, denied, verification, validated)


async def _when_verified(
    ctx: RequestContext,
    request: ProduceRequest,
    denied: list[TopicProduceResponse],
    verification: Verification,
    validated: Validated,
) -> ProduceResponse | Deferred | None:
    await verification.wait()
    return _Appends(ctx, request, denied, verification.take(), validated).append_all(_refusal(request))


def _kind(ctx: RequestContext, request: ProduceRequest) -> int:
    """Return _LONG if the request contains many or large batches, or batches of unknown decompressed size.
    Otherwise, return _PLAIN if the request is valid and has no part in a transaction, or _CHECKED.
    """
    kind = _PLAIN if request.transactional_id is None and request.acks in _ACKS else _CHECKED
    partition_count = record_count = 0
    for topic in request.topic_data:
        partition_count += len(topic.partition_data)
        if partition_count > QUICK_PARTITIONS_MAX:
            return _LONG
        for data in topic.partition_data:
            records = data.records
            if isinstance(records, bytes):
                start, size_bytes = records, len(records)
            else:
                start, size_bytes = start_of(records), 0 if records is None else size_of(records)
            if size_bytes < HEADER_SIZE:
                kind = _CHECKED
                continue
            attributes = start[ATTRIBUTES_LOW_BYTE]
            if start[MAGIC_POSITION] != 2 or attributes & COMPRESSION_MASK:
                return _LONG
            if attributes & TRANSACTIONAL_FLAG:
                kind = _CHECKED
            record_count += read_i32_be(start, _COUNT_POSITION)
            if record_count > QUICK_RECORDS_MAX or size_bytes > QUICK_BYTES_MAX:
                return _LONG
            if size_bytes > QUICK_COMPRESSED_BYTES_MAX:
                name = (
                    topic.name if ctx.api_version < 13 else ctx.services.metadata.topic_name(topic.topic_id)
                )
                partition = None if name is None else ctx.services.replicas.get(name, data.index)
                if partition is not None and partition.log.must_recompress(start):
                    return _LONG
    return kind


def _produce_in_steps(ctx: RequestContext, request: ProduceRequest) -> Steps[Any]:
    """Append to one partition at a time if the request may take long. The batches of a transaction are
    checked individually but appended together, because the coordinator's confirmation is valid only until
    control returns to the event loop.
    """
    denied = [] if ctx.authorizer is None else (yield from take_out_denied(ctx, request))
    validated: Validated = {}
    if _kind(ctx, request) != _LONG:
        return _append_verified(ctx, request, denied, validated)
    if request.transactional_id is not None:
        _keep_records(ctx, request)
        for topic in request.topic_data:
            for data in topic.partition_data:
                yield None
                ready = yield from _validated(ctx, request, topic, data)
                if ready is not None:
                    validated[id(data)] = ready
        return _append_verified(ctx, request, denied, validated)
    refusal = None if request.acks in _ACKS else ErrorCode.INVALID_REQUIRED_ACKS
    for topic in request.topic_data:
        for data in topic.partition_data:
            yield None
            if refusal is None and is_transactional(data.records):
                refusal = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    appends = _Appends(ctx, request, denied, {}, validated)
    for topic in request.topic_data:
        name = appends.begin(topic)
        for data in topic.partition_data:
            yield None
            if refusal is None:
                ready = yield from _validated(ctx, request, topic, data)
                if ready is not None:
                    validated[id(data)] = ready
            appends.partitions.append(appends.append(name, data, refusal))
    return appends.finish()


def _validated(
    ctx: RequestContext, request: ProduceRequest, topic: TopicProduceData, data: PartitionProduceData
) -> Steps[ValidatedBatches | StorageError | None]:
    """Validate the batches of one partition and return them, or the error. Slow validation runs in a worker
    thread. Return None if no validation is needed.
    """
    broker = ctx.services
    name = topic.name if ctx.api_version < 13 else broker.metadata.topic_name(topic.topic_id)
    partition = None if name is None else broker.replicas.get(name, data.index)
    records = in_memory(data.records)
    if partition is None or not partition.is_leader or records is None:
        return None
    try:
        return partition.log.validate(records, broker.clock.now_ms(), ctx.api_version, quick=True)
    except StorageError as error:
        # Break a reference cycle: the traceback refers to the caller's frame, which keeps the returned error.
        return error.with_traceback(None)
    except TakesLong:
        _keep_records(ctx, request)
        kept = in_memory(data.records)
        found: ValidatedBatches | StorageError = yield partial(
            _validate, partition, kept or b"", broker.clock.now_ms(), ctx.api_version
        )
        return found


def _validate(
    partition: Partition, records: Buffer, now_ms: int, api_version: int
) -> ValidatedBatches | StorageError:
    try:
        return partition.log.validate(records, now_ms, api_version)
    except StorageError as error:
        # Break a reference cycle: the traceback refers to the executor's frame, which keeps the error.
        return error.with_traceback(None)


def _keep_records(ctx: RequestContext, request: ProduceRequest) -> None:
    """Copy the records of a request whose frame is about to be overwritten."""
    if ctx.is_kept:
        return
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if isinstance(records, memoryview):
                data.records = memoryview(bytearray(records))
    ctx.is_kept = True


class _Appends:
    """The appends of one request, in order. `denied` contains responses for unauthorized topics."""

    __slots__ = (
        "_ctx",
        "_parked",
        "_request",
        "_responses",
        "_validated",
        "_verified",
        "partitions",
    )

    partitions: list[PartitionProduceResponse]
    """The responses for the partitions of the current topic, after the first `begin`."""

    def __init__(
        self,
        ctx: RequestContext,
        request: ProduceRequest,
        denied: list[TopicProduceResponse],
        verified: PartitionErrors,
        validated: Validated,
    ) -> None:
        self._ctx = ctx
        self._request = request
        self._verified = verified
        self._validated = validated
        self._parked: DelayedProduce | None = None
        self._responses: list[TopicProduceResponse] = denied

    def begin(self, topic: TopicProduceData) -> str | None:
        """Start the appends to a topic, and return its name, or None if the topic ID is unknown."""
        ctx = self._ctx
        response = TopicProduceResponse()
        response.name = name = topic.name
        response.topic_id = topic_id = topic.topic_id
        self.partitions = response.partition_responses
        self._responses.append(response)
        return name if ctx.api_version < 13 else ctx.services.metadata.topic_name(topic_id)

    def append_all(self, refusal: ErrorCode | None) -> ProduceResponse | Deferred | None:
        for topic in self._request.topic_data:
            name = self.begin(topic)
            partitions = self.partitions
            for data in topic.partition_data:
                partitions.append(self.append(name, data, refusal))
        return self.finish()

    def append(
        self, name: str | None, data: PartitionProduceData, refusal: ErrorCode | None
    ) -> PartitionProduceResponse:
        """Append a batch to a partition of the topic, unless `refusal` rejects the request."""
        ctx, acks, index = self._ctx, self._request.acks, data.index
        broker = ctx.services
        if refusal is not None:
            return refused(index, refusal)
        validated = self._validated
        ready = validated.pop(id(data), None) if validated else None
        if name is None:
            return refused(index, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = broker.replicas.partitions.get((name, index))
        if partition is None:
            return refused(index, broker.replicas.missing(name, index))
        if name in INTERNAL_TOPICS and ctx.client_id != ADMIN_CLIENT_ID:
            return refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        records = data.records
        if not isinstance(records, bytes):
            records = in_memory(records)
            if records is None:
                return refused(index, ErrorCode.INVALID_RECORD)
        if self._verified:
            error = self._verified.get((name, index))
            if error:
                return unverified(index, error)
            if ctx.api_version >= _FIRST_VERSION_THAT_ADDS and not _may_begin(partition, records):
                lost = OutOfOrderSequence("a transaction begins with sequence 0")
                return failure(index, lost, partition.log.log_start_offset)
        try:
            if acks == -1 and partition.is_under_min_isr:
                partition.check_min_isr()
            if ready is not None and isinstance(ready, StorageError):
                partition.counts.not_appended(ready, len(records))
                return failure(index, ready, partition.log.log_start_offset)
            info = partition.append(records, broker.clock.now_ms(), ctx.api_version, False, ready)
        except (StorageError, KafkaError) as error:
            return failure(index, error, partition.log.log_start_offset)
        answer = PartitionProduceResponse()
        answer.index = index
        answer.base_offset = info.first_offset
        answer.log_append_time_ms = info.log_append_time
        answer.log_start_offset = info.log_start_offset
        needed = info.last_offset + 1
        if acks != 0 and (partition.high_watermark if acks == -1 else partition.durable_end_offset) < needed:
            if self._parked is None:
                self._parked = DelayedProduce(broker.replicas)
            self._parked.wait_for(partition, needed, acks, answer)
        return answer

    def finish(self) -> ProduceResponse | Deferred | None:
        """Return the response, a Deferred, or None (acks=0). Raises HungUp if an acks=0 append failed."""
        if self._request.acks == 0:
            if any(answer.error_code for topic in self._responses for answer in topic.partition_responses):
                raise HungUp
            return None
        response = ProduceResponse()
        response.responses = self._responses
        parked = self._parked
        return response if parked is None else parked.start(response, self._request.timeout_ms) or response


def _refusal(request: ProduceRequest) -> ErrorCode | None:
    """Return the error that rejects the whole request, or None if the request is acceptable."""
    if request.acks not in _ACKS:
        return ErrorCode.INVALID_REQUIRED_ACKS
    if request.transactional_id is not None:
        return None
    for topic in request.topic_data:
        for data in topic.partition_data:
            if is_transactional(data.records):
                # A transactional batch in a request without a transactional ID is never authorized.
                return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None


def _verify(ctx: RequestContext, request: ProduceRequest) -> Verification | None:
    """Ask the coordinator to verify that the transaction includes the partitions, or, in version 12 and
    later, to add them. Return None if it already includes them or verification is disabled.
    """
    broker = ctx.services
    transactional_id = request.transactional_id
    adds = ctx.api_version >= _FIRST_VERSION_THAT_ADDS
    if transactional_id is None or not (
        adds or broker.config.bool("transaction.partition.verification.enable")
    ):
        return None
    from kafka_compat.transactions.status import ProducerIdentity

    partitions: dict[tuple[str, int], ProducerIdentity] = {}
    for topic in request.topic_data:
        name = topic.name if ctx.api_version < 13 else broker.metadata.topic_name(topic.topic_id)
        for data in topic.partition_data:
            records = in_memory(data.records)
            if (
                name is not None
                and records is not None
                and len(records) >= HEADER_SIZE
                and is_transactional(records)
            ):
                held = broker.replicas.get(name, data.index)
                if held is not None and held.is_leader:
                    header = read_header(records)
                    identity = ProducerIdentity(header.producer_id, header.producer_epoch)
                    partitions[name, data.index] = identity
    verifications = broker.verifications
    if all(verifications.is_open(item, identity) for item, identity in partitions.items()):
        return None
    identity, *others = set(partitions.values())
    if others:
        return verifications.refuse(partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    knows_abortable = ctx.api_version >= _FIRST_VERSION_WITH_ABORTABLE
    return verifications.ask(
        transactional_id, identity, partitions, knows_abortable=knows_abortable, adds=adds
    )


def _may_begin(partition: Partition, records: Buffer) -> bool:
    """Return whether a transaction may continue or begin with this batch. In version 12, clients begin each
    transaction with sequence 0. If the producer is unknown to this replica, any other sequence means that an
    earlier batch was lost.
    """
    header = read_header(records)
    return header.base_sequence <= 0 or header.producer_id in partition.log.producers.entries
