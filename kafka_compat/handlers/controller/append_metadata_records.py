"""AppendMetadataRecords (our own API key 10000): a node passes records of its store to this leader."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.handlers.controller.checks import leader_address, node_of, require_same_cluster
from kafka_compat.protocol.messages.append_metadata_records import (
    AppendMetadataRecordsRequest,
    AppendMetadataRecordsResponse,
)
from kafka_compat.security.authorizer import Operation


@handler(0, 0)
def append_metadata_records(ctx: RequestContext, request: AppendMetadataRecordsRequest) -> Deferred:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    node = node_of(ctx)
    require_same_cluster(node, request.cluster_id)
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

    # Copy the records, because the request's bytes are reused after the handler returns.
    node.append_for([bytes(record) for record in request.records], request.leader_epoch, done)
    return deferred
