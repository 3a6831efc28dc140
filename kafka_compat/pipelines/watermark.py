"""How far the time of a stream has come: the latest time of its records, but for clocks that run ahead."""

import time
from typing import Any

AHEAD_MS = 3_600_000
"""Times further ahead of this machine's clock say nothing of the stream's: one wrong clock would make all
other records late. An hour is what Kafka 3.9 allows by default, too (message.timestamp.after.max.ms).
"""


def latest_time(at: Any) -> Any:
    """The aggregate of the column `at` (ms since 1970) that is its latest believable time, or null."""
    from pyspark.sql import functions as f

    return f.max(f.when(at <= int(time.time() * 1000) + AHEAD_MS, at))
