"""What clients push of their own metrics (KIP-714), at /metrics beside the broker's.

Each sample has the client's id and that of its instance; `kafka_client_info` tells the rest of it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite, isnan

from kafka_compat.long_work import Steps, batched
from kafka_compat.telemetry.pushed import PushedBy, PushedMetrics

_LINES_AT_ONCE = 500


def client_telemetry(pushed: PushedMetrics, now_ms: int, *, by_client: bool) -> Steps[list[bytes]]:
    """The text, in steps; none while nobody pushes. `by_client=False`: without samples of single clients."""
    pushed.expire(now_ms)
    if not (pushed.series or pushed.left_out):
        return []
    clients = pushed.clients() if by_client else []
    families: dict[str, _Family] = {}
    for client in clients:
        for batch in batched(_samples(client)):
            for (name, labels), value, is_counter in batch:
                family = families.get(name)
                if family is None:
                    family = families[name] = _Family()
                family.add(f"{name}{{{_joined(client.identity, labels)}}}", value, is_counter)
            yield None
    pieces = [_own(pushed, clients)]
    for name in sorted(families):
        pieces.append(families[name].text(name))
        yield None
    return pieces


def _samples(client: PushedBy) -> Iterator[tuple[tuple[str, str], float, bool]]:
    # Copied, since there may be news while this is written.
    for values, is_counter in ((client.counters, True), (client.gauges, False)):
        for series, value in list(values.items()):
            yield series, value, is_counter


class _Family:
    """Samples of one name. Clients need not agree about what kind it is."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._kinds: set[str] = set()

    def add(self, series: str, value: float, is_counter: bool) -> None:
        self._kinds.add("counter" if is_counter else "gauge")
        self._lines.append(f"{series} {_number(value)}\n")

    def text(self, name: str) -> bytes:
        kind = self._kinds.pop() if len(self._kinds) == 1 else "untyped"
        head = f"# HELP {name} Pushed by clients (KIP-714)\n# TYPE {name} {kind}\n"
        return "".join((head, *self._lines)).encode()


def _joined(*labels: str) -> str:
    return ",".join(filter(None, labels))


def _number(value: float) -> str:
    if isfinite(value):
        return repr(value)
    return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"


def _own(pushed: PushedMetrics, clients: Iterable[PushedBy]) -> bytes:
    told = "".join(f"kafka_client_info{{{_joined(client.identity, client.about)}}} 1\n" for client in clients)
    return (
        "# HELP kafka_client_info Clients that push their metrics\n# TYPE kafka_client_info gauge\n"
        f"{told}"
        "# HELP kafka_client_series Time series that clients push\n# TYPE kafka_client_series gauge\n"
        f"kafka_client_series {pushed.series}\n"
        "# HELP kafka_client_series_left_out_total Time series that clients pushed and that were left out\n"
        "# TYPE kafka_client_series_left_out_total counter\n"
        f"kafka_client_series_left_out_total {pushed.left_out}\n"
    ).encode()
