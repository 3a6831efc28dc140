"""Our broker and Apache Kafka, shown by the same console."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

from confluent_kafka.admin import AdminClient

from tests.consoles.broker_content import Furniture
from tests.consoles.normalized_output import Names, lines_of
from tests.support.java_tools import JavaTools
from tests.tools.neutral import differences

T = TypeVar("T")
GENUINE, OURS = "genuine", "ours"
SETTLE_S = 15.0
PAUSE_S = 0.5


class Side(NamedTuple):
    name: str
    address: str
    folder: Path
    names: Names


class Sides:
    """Both sides with the topics, groups and settings of tests/consoles/broker_content.py."""

    def __init__(self, brokers: Mapping[str, tuple[str, Path, JavaTools]]) -> None:
        """`brokers` maps each side to its address, its data directory and Kafka's tools for it."""
        self._furniture: list[Furniture] = []
        self.all: dict[str, Side] = {}
        for name, (address, folder, tools) in brokers.items():
            self._furniture.append(Furniture(address, tools, address.count(",") + 1))
            admin = AdminClient({"bootstrap.servers": address})
            description = admin.describe_cluster().result(60)
            names = {description.cluster_id: "CLUSTER", str(folder): "DIR"}
            names |= {str(node.port): f"PORT-{node.id}" for node in description.nodes}
            self.all[name] = Side(name, address, folder, names)

    def both(self, act: Callable[[Side], T]) -> dict[str, T]:
        """Run `act` on both sides concurrently."""
        with ThreadPoolExecutor(2) as threads:
            begun = {name: threads.submit(act, side) for name, side in self.all.items()}
            return {name: each.result() for name, each in begun.items()}

    def differences(
        self,
        title: str,
        show: Callable[[Side], str],
        meant: Iterable[str] = (),
        *,
        needs: str = "",
        once: bool = False,
    ) -> list[str]:
        """Return the differences between the sides, except for lines that match `meant`.

        At least one line must match `needs`. If there are differences, the output is requested again for up
        to SETTLE_S, unless the request has side effects (`once`).
        """
        deadline_s = time.monotonic() + (0 if once else SETTLE_S)
        while True:
            shown = self.both(lambda side: lines_of(show(side), side.names, meant))
            found = differences(title, shown[GENUINE], shown[OURS])
            if not any(re.search(needs, line) for line in shown[GENUINE]):
                found = [f"{title}: no line for Apache Kafka matches {needs!r}"]
            if not found or time.monotonic() > deadline_s:
                return found
            time.sleep(PAUSE_S)  # interval of polling

    def close(self) -> None:
        for each in self._furniture:
            each.close()
