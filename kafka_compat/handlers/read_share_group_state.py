"""ReadShareGroupState (API key 84): return the state of share-partitions to their leader (KIP-932)."""

from typing import Any

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.share_state_requests import process
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from kafka_compat.share_coordinator.messages import READ


@handler(0, 0)
def read_share_group_state(ctx: RequestContext, request: ReadShareGroupStateRequest) -> Steps[Any]:
    return process(ctx, request, READ)
