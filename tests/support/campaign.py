"""Campaigns: acceptance runs with full counts. Normal runs use samples."""

from __future__ import annotations

import os

VARIABLE = "KAFKA_COMPAT_CAMPAIGN"


def enabled() -> bool:
    """Return whether this run is a campaign (`pytest --campaign` or KAFKA_COMPAT_CAMPAIGN=1)."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def rounds(everyday: int, campaign: int) -> int:
    """Return the number of repetitions: `campaign` in a campaign, otherwise `everyday`."""
    return campaign if enabled() else everyday


def sides() -> list[str]:
    """Return the servers for tests that state what they expect: "ours", and in a campaign also "genuine",
    where the same test shows that Apache Kafka behaves as expected.
    """
    return ["ours", "genuine"] if enabled() else ["ours"]
