"""WriteShareGroupState (API key 85): store changes to the state of share-partitions (KIP-932). Version
1 adds the number of records whose delivery is complete (KIP-1226)."""

from typing import Any

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.share_state_requests import process
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from kafka_compat.share_coordinator.messages import WRITE


@handler(0, 1)
def write_share_group_state(ctx: RequestContext, request: WriteShareGroupStateRequest) -> Steps[Any]:
    return process(ctx, request, WRITE)
