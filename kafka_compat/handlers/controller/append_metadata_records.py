"""AppendMetadataRecords (our own API key 10000): a node passes records of its store to this leader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_compat.api.handler import handler
from kafka_compat.coordination.replicated_store.record_frames import unframe
from kafka_compat.coordination.replicated_store.records import (
    BATCH_BYTES_MAX,
    RECORD_BYTES_MAX,
    BadRecord,
    decode_change,
)
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import leader_address, node_of, require_same_cluster
from kafka_compat.protocol.messages.append_metadata_records import (
    AppendMetadataRecordsRequest,
    AppendMetadataRecordsResponse,
)
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext


@handler(0, 0)
def append_metadata_records(ctx: ListenerContext, request: AppendMetadataRecordsRequest) -> Deferred:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)
    # Copy the records, because the request's bytes are reused after the handler returns.
    values = [bytes(record) for record in request.records]
    _check(values)
    deferred = Deferred()

    def done(is_appended: bool) -> None:
        machine = node.machine
        response = AppendMetadataRecordsResponse(
            error_code=ErrorCode.NONE if is_appended else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            leader_id=machine.leader_id,
            leader_epoch=machine.epoch,
        )
        address = leader_address(node, machine.leader_id)
        if address is not None:
            response.leader_host, response.leader_port = address
        deferred.complete(response)

    node.append_for(values, request.leader_epoch, done)
    return deferred


def _check(values: Sequence[bytes]) -> None:
    """Raise KafkaError if a record cannot be applied: it would stop the stores of all nodes."""
    if sum(map(len, values)) > BATCH_BYTES_MAX or max(map(len, values), default=0) > RECORD_BYTES_MAX:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    try:
        for value in values:
            decode_change(unframe(0, value))
    except BadRecord as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
