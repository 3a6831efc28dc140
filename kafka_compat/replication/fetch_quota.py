"""The size of a consumer's response, for its quota (KIP-219)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.long_work import batched
from kafka_compat.replication.fetch_answer import PARTITIONS_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_compat.long_work import Steps
    from kafka_compat.replication.fetch_answer import Found, Look
    from kafka_compat.replication.fetch_session import FetchPlan

_FIXED_BYTES: Final = 16
_TOPIC_BYTES: Final = 20
_PARTITION_BYTES: Final = 40
"""Of a response beside its records: at the top, for each topic, and for each partition; about."""


def response_bytes(plan: FetchPlan, look: Look) -> int:
    """About how many bytes the response has; records count as they lie in the log, also if converted."""
    return look.total_bytes + _FIXED_BYTES + _bytes_of(plan, look.found)


def response_bytes_in_steps(plan: FetchPlan, look: Look) -> Steps[int]:
    """The same for many partitions."""
    size_bytes = look.total_bytes + _FIXED_BYTES + (_TOPIC_BYTES + _PARTITION_BYTES) * len(plan.denied)
    for some in batched(look.found, PARTITIONS_AT_ONCE):
        size_bytes += _bytes_of(plan, some)
        yield None
    return size_bytes


def _bytes_of(plan: FetchPlan, found: Sequence[Found]) -> int:
    size_bytes, topic = 0, None
    for target, data, records_bytes, _ in found:
        if plan.would_send(target, data, records_bytes):
            size_bytes += _PARTITION_BYTES
            if target.topic != topic:
                size_bytes += _TOPIC_BYTES
                topic = target.topic
    return size_bytes
