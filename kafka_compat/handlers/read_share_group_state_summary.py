"""ReadShareGroupStateSummary (API key 87): return the progress of share-partitions (KIP-932). Version 1
adds the number of records whose delivery is complete (KIP-1226)."""

from typing import Any

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.share_state_requests import process
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from kafka_compat.share_coordinator.messages import READ_SUMMARY


@handler(0, 1)
def read_share_group_state_summary(
    ctx: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> Steps[Any]:
    return process(ctx, request, READ_SUMMARY)
