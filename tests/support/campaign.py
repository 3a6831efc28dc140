"""Long campaigns: the full counts of the acceptance runs, where the everyday suite takes a sample."""

from __future__ import annotations

import os

VARIABLE = "KAFKA_COMPAT_CAMPAIGN"


def enabled() -> bool:
    """Whether this run is a campaign (`pytest --campaign` or KAFKA_COMPAT_CAMPAIGN=1)."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def rounds(everyday: int, campaign: int) -> int:
    """How often to repeat something: `campaign` times in a campaign, else `everyday` times."""
    return campaign if enabled() else everyday
