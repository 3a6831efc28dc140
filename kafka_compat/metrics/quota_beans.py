"""Kafka's metrics of clients with quotas: type=Produce, Fetch, Request and ControllerMutation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.beans import Beans
from kafka_compat.quotas.enforcement import CHANGES, FETCH, PRODUCE, TIME, Used

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import RunningBroker
    from kafka_compat.quotas.precedence import Owner

_RATES: Final[Mapping[str, str]] = {
    PRODUCE: "byte-rate",
    FETCH: "byte-rate",
    TIME: "request-time",
    CHANGES: "mutation-rate",
}


def quotas(brokers: Sequence[RunningBroker], beans: Beans) -> Steps[None]:
    """Of all who have a quota and came. Several brokers add up what was used; of their throttle times the
    longest is reported.
    """
    throttled: dict[tuple[str, Owner], float] = {}
    for each in brokers:
        enforcement = each.services.quotas
        if enforcement is None:
            continue
        for some in batched(list(enforcement.used()), 100):
            for used in some:
                _tell(used, beans)
                key = used.resource, used.owner
                throttled[key] = _longer(throttled.get(key, math.nan), used.throttle_ms)
            yield None
    for longest in batched(list(throttled.items()), 100):
        for (resource, owner), throttle_ms in longest:
            beans.quota(resource, "throttle-time", throttle_ms, _client(owner))
        yield None


def _longer(first_ms: float, second_ms: float) -> float:
    if math.isnan(first_ms):
        return second_ms
    return first_ms if math.isnan(second_ms) else max(first_ms, second_ms)


def _tell(used: Used, beans: Beans) -> None:
    client = _client(used.owner)
    beans.quota(used.resource, _RATES[used.resource], used.rate, client)
    if used.tokens is not None:
        beans.quota(used.resource, "tokens", used.tokens, client)


def _client(owner: Owner) -> dict[str, str]:
    """Kafka leaves out what is empty."""
    user, client_id = owner
    return {tag: value for tag, value in (("user", user), ("client-id", client_id)) if value}
