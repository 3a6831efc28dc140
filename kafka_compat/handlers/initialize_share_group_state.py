"""InitializeShareGroupState (API key 83): create the state of share-partitions (KIP-932)."""

from typing import Any

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.share_state_requests import process
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kafka_compat.share_coordinator.messages import INITIALIZE


@handler(0, 0)
def initialize_share_group_state(
    ctx: RequestContext, request: InitializeShareGroupStateRequest
) -> Steps[Any]:
    return process(ctx, request, INITIALIZE)
