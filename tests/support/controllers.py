"""The controller of a cluster with a quorum. Its brokers name themselves as the controller in responses, so
that only their logs tell which one was elected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_ELECTED = re.compile(r"Broker (\d+) became the controller \(epoch (\d+)\)")


def elected_controller(logs: Mapping[int, Path]) -> int | None:
    """Return the broker that was elected last, according to the logs of all brokers by ID, or None."""
    found = [
        (int(epoch), int(broker_id))
        for log in logs.values()
        if log.exists()
        for broker_id, epoch in _ELECTED.findall(log.read_text(errors="replace"))
    ]
    return max(found)[1] if found else None
