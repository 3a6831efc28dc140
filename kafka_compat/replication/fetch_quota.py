"""A consumer's answer, where consumers have quotas (KIP-219)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kafka_compat.quotas.enforcement import Enforcement
    from kafka_compat.replication.fetch_answer import Look
    from kafka_compat.replication.fetch_context import FetchContext
    from kafka_compat.replication.fetch_session import FetchPlan, Told

_FIXED_BYTES: Final = 16
_TOPIC_BYTES: Final = 20
_PARTITION_BYTES: Final = 40
"""Of a response beside its records: at the top, for each topic, and for each partition; about."""


def within_quota(
    ctx: FetchContext,
    quotas: Enforcement,
    plan: FetchPlan,
    look: Look,
    response: FetchResponse,
    told_before: Told,
) -> FetchResponse:
    """The response, or an empty one that says how long to wait: then the client has heard of nothing.

    Records count as they lie in the log, whatever they are converted to. `told_before` is what the client
    knew before the response was made.
    """
    size_bytes = look.total_bytes + _FIXED_BYTES
    for topic in response.responses:
        size_bytes += _TOPIC_BYTES + _PARTITION_BYTES * len(topic.partitions)
    throttle_ms = quotas.fetched(ctx, size_bytes)
    if throttle_ms == 0:
        return response
    if not plan.incremental and plan.session is not None:
        # Nobody would use it: the client begins anew.
        ctx.services.fetch_sessions.drop(plan.session)
        return FetchResponse(throttle_time_ms=throttle_ms)
    plan.take_back(told_before)
    return FetchResponse(session_id=plan.session_id, throttle_time_ms=throttle_ms)
