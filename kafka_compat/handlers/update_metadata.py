"""UpdateMetadata (API key 6): the controller sends the cluster metadata that this broker returns to clients
in Metadata responses. An old broker epoch is rejected with STALE_BROKER_EPOCH, an old controller epoch with
STALE_CONTROLLER_EPOCH.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.cluster.metadata_updates import update_of
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kafka_compat.security.authorizer import Operation


@handler(0, 8, cluster=True)
def update_metadata(ctx: RequestContext, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    error = ctx.services.membership.orders.update_metadata(
        request.controller_epoch, request.broker_epoch, update_of(request)
    )
    return UpdateMetadataResponse(error_code=error)
