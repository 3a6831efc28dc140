"""Output of kminion, Burrow and kafka_exporter, compared between our broker and Apache Kafka."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tests.consoles.sides import Side, Sides
from tests.consoles.web import ask, burrow, kminion
from tests.metrics.exporter import kafka_exporter
from tests.metrics.scraping import get, samples_of

_GROUPS = ("idle", "busy", "static", "copier")
_TOPICS = ("alpha", "beta", "hot", "ledger", "set", "__consumer_offsets")
_BURROW = (
    "/v3/kafka",
    "/v3/kafka/local",
    "/v3/kafka/local/topic",
    *(f"/v3/kafka/local/topic/{topic}" for topic in _TOPICS),
    *(f"/v3/kafka/local/topic/{topic}/consumers" for topic in _TOPICS),
    "/v3/kafka/local/consumer",
    *(f"/v3/kafka/local/consumer/{group}" for group in _GROUPS),
    *(f"/v3/kafka/local/consumer/{group}/status" for group in _GROUPS),
    *(f"/v3/kafka/local/consumer/{group}/lag" for group in _GROUPS),
    "/v3/config/consumer",
)
_SMALL = (r"^(go|process|promhttp)_", r"_(duration|latency)_seconds", r"_build_info", r"_created\b")
"""Metrics about the exporters themselves."""
_KMINION = (
    *_SMALL,
    r"^kminion_exporter_|^kminion_kafka_((requests_)?(sent|received)|(sent|received)_bytes)_total",
    # kminion guesses the version from the highest request versions, which for our broker are those of Kafka
    # 4.
    r"^kminion_kafka_cluster_info",
    # The number of attempts to connect to the stopped broker depends on timing.
    r'^kminion_log_messages_total \{"level": "warn"\}',
)
_PROBES = "kminion_end_to_end_messages_received_total"
_PROBES_MIN = 10
KMINION_MODES = ("adminApi", "offsetsTopic")
Program = Callable[[Side], AbstractContextManager[str]]
"""Runs a monitor for one side, and returns its URL."""


def _plain_samples(text: str) -> str:
    """Return one sample per line."""
    return "\n".join(
        f"{name} {json.dumps(dict(sorted(labels)))} {value}"
        for (name, labels), value in samples_of(text).items()
    )


def _metrics(urls: Mapping[str, str], side: Side) -> str:
    return _plain_samples(get(urls[side.name], "/metrics")[1].decode())


@contextmanager
def _of_both(sides: Sides, run: Program) -> Iterator[Mapping[str, str]]:
    """Run the program for each side, and yield the URLs by side."""
    with ExitStack() as stack:
        yield {side.name: stack.enter_context(run(side)) for side in sides.all.values()}


def kminion_differences(sides: Sides, folder: Path, mode: str) -> list[str]:
    """Compare kminion's metrics. `mode` is the way it reads groups."""
    run = functools.partial(kminion, folder=folder, MINION_CONSUMERGROUPS_SCRAPEMODE=mode)
    with _of_both(sides, run) as urls:
        show = functools.partial(_metrics, urls)
        return sides.differences(f"kminion {mode}", show, _KMINION, needs=r'_lag \{.*"static".* 35(\.0)?$')


def kminion_probe_differences(sides: Sides, folder: Path) -> list[str]:
    """Compare the names of the metrics of kminion's probe, which creates a topic, writes to it and reads it
    in a group.
    """

    def names(urls: Mapping[str, str], side: Side) -> str:
        samples = samples_of(get(urls[side.name], "/metrics")[1].decode())
        read = sum(value for (name, _), value in samples.items() if name == _PROBES)
        found = sorted({name for name, _ in samples if "end_to_end" in name})
        return "\n".join([*found, "probes come back" if read > _PROBES_MIN else f"none on {side.name}"])

    with _of_both(sides, functools.partial(kminion, folder=folder, MINION_ENDTOEND_ENABLED="true")) as urls:
        return sides.differences("kminion's probes", functools.partial(names, urls))


def burrow_differences(sides: Sides, folder: Path) -> list[str]:
    def answer(urls: Mapping[str, str], path: str, side: Side) -> str:
        return ask(urls[side.name], "GET", path)

    with _of_both(sides, functools.partial(burrow, folder=folder)) as urls:
        found = []
        for group in _GROUPS:
            show = functools.partial(answer, urls, f"/v3/kafka/local/consumer/{group}")
            found += sides.differences(f"burrow {group}", show, needs=r"offset = \d+$")
        for path in _BURROW:
            found += sides.differences(f"burrow {path}", functools.partial(answer, urls, path))
        return found + sides.differences("burrow /metrics", functools.partial(_metrics, urls), _SMALL)


def kafka_exporter_differences(sides: Sides, folder: Path) -> list[str]:
    def run(side: Side) -> AbstractContextManager[str]:
        return kafka_exporter(side.address, folder / f"kafka_exporter-{side.name}.log")

    with _of_both(sides, run) as urls:
        show = functools.partial(_metrics, urls)
        return sides.differences("kafka_exporter", show, _SMALL, needs=r'group_lag \{.*"static"')
