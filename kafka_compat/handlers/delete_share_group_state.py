"""DeleteShareGroupState (API key 86): delete the state of share-partitions (KIP-932)."""

from typing import Any

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.share_state_requests import process
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kafka_compat.share_coordinator.messages import DELETE


@handler(0, 0)
def delete_share_group_state(ctx: RequestContext, request: DeleteShareGroupStateRequest) -> Steps[Any]:
    return process(ctx, request, DELETE)
