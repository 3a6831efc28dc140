"""A consumer's answer, where consumers have quotas (KIP-219)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kafka_compat.quotas.enforcement import Enforcement
    from kafka_compat.replication.fetch_answer import Look
    from kafka_compat.replication.fetch_context import FetchContext
    from kafka_compat.replication.fetch_session import FetchPlan, SentState

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
    before: SentState,
) -> FetchResponse:
    """The response, or an empty one that says how long to wait.

    Records count as they lie in the log, whatever they are converted to. `before` is what the client had been
    sent before the response was made.
    """
    size_bytes = look.total_bytes + _FIXED_BYTES
    for topic in response.responses:
        size_bytes += _TOPIC_BYTES + _PARTITION_BYTES * len(topic.partitions)
    throttle_ms = quotas.fetched(ctx, size_bytes)
    if throttle_ms == 0:
        return response
    plan.restore(before)
    return FetchResponse(session_id=plan.session_id, throttle_time_ms=throttle_ms)
