"""Produce (key 0): append one batch per partition, answer as `acks` asks.

acks=0 gets no answer, and a connection that is closed when something failed; acks=1 is answered once this
replica has the records; acks=all (-1) once every in-sync replica has. Versions: 3 brings format 2, 8 the
errors per record (KIP-467), 10 the current leader (KIP-951), 13 topic ids (KIP-516).

Records of a transaction are taken only where the transaction's coordinator knows that it writes (KIP-890); a
client that speaks version 11 is told TRANSACTION_ABORTABLE otherwise, others INVALID_TXN_STATE. From version
12 on the coordinator learns of it by this very request.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from kafka_compat.dispatch import PENDING, RequestContext, handler
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.buffers import Records
from kafka_compat.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka_compat.topic_names import is_internal
from storage.batch import HEADER_SIZE, read_header
from storage.errors import OutOfOrderSequence, StorageError
from storage.validation import ValidatedBatches

if TYPE_CHECKING:
    from kafka_compat.dispatch import _Pending
    from kafka_compat.replication.partition import Partition
    from kafka_compat.transactions.verification import PartitionErrors, Question

Validated = dict[int, ValidatedBatches | StorageError]
"""What other threads found of batches, by the identity of their data in the request."""

SLOW_BYTES = 32 * 1024
"""Below this, compressing is done sooner than another thread could be asked."""

ADMIN_CLIENT_ID = "__admin_client"
_MAGIC_POSITION = 16
_ATTRIBUTES_LOW_BYTE = 22
_TRANSACTIONAL_FLAG = 0x10
_FIRST_VERSION_WITH_ABORTABLE = 11
_FIRST_VERSION_THAT_ADDS = 12
_VERIFY_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
)
_ERRORS_WITHOUT_LOG_START = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
"""Errors of batches that Kafka refuses before it looks at the log."""


@handler(ApiKey.PRODUCE)
def produce(
    ctx: RequestContext, request: ProduceRequest
) -> ProduceResponse | _Pending | Coroutine[Any, Any, ProduceResponse | _Pending | None] | None:
    if _slow(ctx, request):
        _keep_records(request)
        return _when_ready(ctx, request)
    question = _verify(ctx, request)
    if question is None:
        return _produce(ctx, request, {}, {})
    if question.is_answered:
        return _produce(ctx, request, question.take(), {})
    _keep_records(request)
    return _when_verified(ctx, request, question, {})


async def _when_ready(ctx: RequestContext, request: ProduceRequest) -> ProduceResponse | _Pending | None:
    validated: Validated = {}
    for data, partition, records in _slow(ctx, request):
        # Another thread compresses, while this one serves the other clients.
        validated[id(data)] = await ctx.broker.loop.run_in_executor(
            None, _validate, partition, records, ctx.broker.clock.now_ms(), ctx.api_version
        )
    question = _verify(ctx, request)
    if question is None:
        return _produce(ctx, request, {}, validated)
    return await _when_verified(ctx, request, question, validated)


async def _when_verified(
    ctx: RequestContext, request: ProduceRequest, question: Question, validated: Validated
) -> ProduceResponse | _Pending | None:
    await question.wait()
    return _produce(ctx, request, question.take(), validated)


def _slow(
    ctx: RequestContext, request: ProduceRequest
) -> list[tuple[PartitionProduceData, Partition, memoryview]]:
    """The batches that are to be compressed anew, where that takes long."""
    found = []
    broker = ctx.broker
    for topic in request.topic_data:
        name = topic.name if ctx.api_version < 13 else broker.metadata.topic_name(topic.topic_id)
        for data in topic.partition_data:
            records = data.records
            if name is None or not isinstance(records, memoryview) or len(records) < SLOW_BYTES:
                continue
            partition = broker.replicas.get(name, data.index)
            if partition is not None and partition.log.compresses_anew(records):
                found.append((data, partition, records))
    return found


def _validate(
    partition: Partition, records: memoryview, now_ms: int, api_version: int
) -> ValidatedBatches | StorageError:
    try:
        return partition.log.validate(records, now_ms, api_version)
    except StorageError as error:
        return error


def _keep_records(request: ProduceRequest) -> None:
    """The request outlives its frame."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview):
                data.records = memoryview(bytearray(data.records))


def _produce(
    ctx: RequestContext, request: ProduceRequest, verified: PartitionErrors, validated: Validated
) -> ProduceResponse | _Pending | None:
    acks = request.acks
    refusal = _refusal(request)
    parked: _ParkedProduce | None = None
    failed = False
    responses = []
    for topic in request.topic_data:
        name = topic.name if ctx.api_version < 13 else ctx.broker.metadata.topic_name(topic.topic_id)
        partitions = []
        for data in topic.partition_data:
            if refusal is not None:
                answer = _error(data.index, refusal)
            else:
                answer, partition, needed = _append(ctx, name, data, acks, verified, validated)
                if partition is not None:
                    if parked is None:
                        parked = _ParkedProduce(ctx)
                    parked.wait_for(partition, needed, acks, answer)
            failed = failed or answer.error_code != 0
            partitions.append(answer)
        responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
        )
    if acks == 0:
        if failed:
            ctx.connection.abort()
        return None
    response = ProduceResponse(responses=responses)
    if parked is not None and parked.start(response, request.timeout_ms):
        return PENDING
    return response


def _refusal(request: ProduceRequest) -> ErrorCode | None:
    """A reason to refuse the whole request."""
    if request.acks not in (-1, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if request.transactional_id is not None:
        return None
    for topic in request.topic_data:
        for data in topic.partition_data:
            if _is_transactional(data.records):
                # Nobody may write in the name of no transactional id.
                return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None


def _is_transactional(records: Records | None) -> bool:
    return (
        isinstance(records, memoryview)
        and len(records) > _ATTRIBUTES_LOW_BYTE
        and records[_MAGIC_POSITION] == 2
        and records[_ATTRIBUTES_LOW_BYTE] & _TRANSACTIONAL_FLAG != 0
    )


def _verify(ctx: RequestContext, request: ProduceRequest) -> Question | None:
    """Ask whether the transaction includes the partitions that it has no records in yet; None where there is
    nothing to ask.
    """
    broker = ctx.broker
    transactional_id = request.transactional_id
    adds = ctx.api_version >= _FIRST_VERSION_THAT_ADDS
    if transactional_id is None or not (
        adds or broker.config.bool("transaction.partition.verification.enable")
    ):
        return None
    from kafka_compat.transactions.model import ProducerIdentity

    partitions: dict[tuple[str, int], ProducerIdentity] = {}
    for topic in request.topic_data:
        name = topic.name if ctx.api_version < 13 else broker.metadata.topic_name(topic.topic_id)
        for data in topic.partition_data:
            records = data.records
            if (
                name is not None
                and isinstance(records, memoryview)
                and len(records) >= HEADER_SIZE
                and _is_transactional(records)
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


def _may_begin(partition: Partition, records: memoryview) -> bool:
    """Whether the batch is the first of its epoch, or its producer is known here. Clients of version 12 begin
    each transaction with sequence 0, so any other means that a batch before it was lost.
    """
    header = read_header(records)
    return header.base_sequence <= 0 or header.producer_id in partition.log.producers.entries


def _unverified(index: int, error: ErrorCode) -> PartitionProduceResponse:
    """The refusal of a batch whose transaction does not include the partition."""
    message: str | None = None
    if error in _VERIFY_AGAIN:
        # Clients that know nothing of verification try again upon this one.
        message = (
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error.name}"
        )
        error = ErrorCode.NOT_ENOUGH_REPLICAS
    elif error is ErrorCode.INVALID_TXN_STATE:
        message = "Partition was not added to the transaction"
    return _error(index, error, message)


def _append(
    ctx: RequestContext,
    name: str | None,
    data: PartitionProduceData,
    acks: int,
    verified: PartitionErrors,
    validated: Validated,
) -> tuple[PartitionProduceResponse, Partition | None, int]:
    """The answer so far; with a partition and an offset when acks must wait until that offset is reached."""
    broker = ctx.broker
    if name is None:
        return _error(data.index, ErrorCode.UNKNOWN_TOPIC_ID), None, 0
    partition = broker.replicas.get(name, data.index)
    if partition is None:
        return _error(data.index, broker.replicas.missing(name, data.index)), None, 0
    if is_internal(name) and ctx.client_id != ADMIN_CLIENT_ID:
        return _error(data.index, ErrorCode.INVALID_TOPIC_EXCEPTION), None, 0
    records = data.records
    if not isinstance(records, memoryview):
        return _error(data.index, ErrorCode.INVALID_RECORD), None, 0
    if verified:
        unverified = verified.get((name, data.index))
        if unverified:
            return _unverified(data.index, unverified), None, 0
        if ctx.api_version >= _FIRST_VERSION_THAT_ADDS and not _may_begin(partition, records):
            lost = OutOfOrderSequence("a transaction begins with sequence 0")
            return _failure(data.index, lost, partition.log.log_start_offset), None, 0
    try:
        if acks == -1:
            partition.check_min_isr()
        ready = validated.get(id(data))
        if isinstance(ready, StorageError):
            raise ready
        info = partition.append(records, broker.clock.now_ms(), ctx.api_version, validated=ready)
    except (StorageError, KafkaError) as error:
        return _failure(data.index, error, partition.log.log_start_offset), None, 0
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time,
        log_start_offset=info.log_start_offset,
    )
    needed = info.last_offset + 1
    if acks == 0 or (partition.high_watermark if acks == -1 else partition.durable_end_offset) >= needed:
        return answer, None, 0
    return answer, partition, needed


def _error(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=message,
    )


def _failure(index: int, error: Exception, log_start_offset: int) -> PartitionProduceResponse:
    answer = _error(index, code_of(error), str(error) or None)
    if answer.error_code not in _ERRORS_WITHOUT_LOG_START:
        answer.log_start_offset = log_start_offset
    for batch_index, message in getattr(error, "record_errors", ()):
        answer.record_errors.append(
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
        )
    return answer


class _ParkedProduce:
    """A request whose records are appended and not yet as safe as `acks` asks."""

    __slots__ = ("_ctx", "_response", "_timer", "_waiting")

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._response: ProduceResponse | None = None
        self._timer: TimerHandle | None = None
        self._waiting: dict[int, PartitionProduceResponse] = {}

    def wait_for(
        self, partition: Partition, offset: int, acks: int, answer: PartitionProduceResponse
    ) -> None:
        key = id(answer)
        self._waiting[key] = answer

        def reached(code: ErrorCode) -> None:
            if self._waiting.pop(key, None) is None:
                return
            if code != ErrorCode.NONE:
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
        self._timer = self._ctx.broker.loop.call_later(max(timeout_ms, 0) / 1000, self._time_out)
        return True

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
        self._ctx.respond(self._response)
