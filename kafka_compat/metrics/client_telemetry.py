"""Metrics pushed by clients (KIP-714), exposed alongside the broker's own metrics.

Each sample has the client ID and the instance ID as labels; `kafka_client_info` has the other attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.family import COUNTER, GAUGE, NO_LABELS, UNTYPED, Family, Labels

if TYPE_CHECKING:
    from kafka_compat.telemetry.payload import Pairs
    from kafka_compat.telemetry.pushed import PushedBy, PushedMetrics


class _Pushed(NamedTuple):
    """All samples pushed under one metric name. Clients may push different types under the same name."""

    kinds: set[str]
    samples: list[tuple[PushedBy, Pairs, float]]


def client_telemetry(pushed: PushedMetrics, now_ms: int, *, by_client: bool) -> Steps[list[Family]]:
    """Return the pushed metrics, if any. `by_client=False` omits the samples of individual clients."""
    pushed.expire(now_ms)
    if not (pushed.series or pushed.left_out):
        return []
    clients = pushed.clients() if by_client else []
    found: dict[str, _Pushed] = {}
    for client in clients:
        # Copy the samples, because clients may push again before serialization.
        for values, kind in ((client.counters, COUNTER), (client.gauges, GAUGE)):
            for some in batched(list(values.items())):
                for (name, labels), value in some:
                    of_name = found.setdefault(name, _Pushed(set(), []))
                    of_name.kinds.add(kind)
                    of_name.samples.append((client, labels, value))
                yield None
    about = [(Labels(client.identity + client.about), 1) for client in clients]
    families = [
        Family("kafka_client_info", GAUGE, "Clients that push their metrics", about),
        Family("kafka_client_series", GAUGE, "Time series that clients push", [(NO_LABELS, pushed.series)]),
        Family(
            "kafka_client_series_left_out_total",
            COUNTER,
            "Time series that clients pushed and the broker ignored",
            [(NO_LABELS, pushed.left_out)],
        ),
    ]
    for name, (kinds, samples) in sorted(found.items()):
        kind = kinds.pop() if len(kinds) == 1 else UNTYPED
        labelled = ((Labels(client.identity + labels), value) for client, labels, value in samples)
        families.append(Family(name, kind, "Pushed by clients (KIP-714)", labelled))
    return families
