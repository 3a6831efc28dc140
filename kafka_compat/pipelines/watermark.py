"""The latest plausible time in a batch, as the basis of the watermark. A record far ahead of the clock does
not make other records late.
"""

import time
from typing import Any

AHEAD_MS = 3_600_000
"""Times further ahead of this machine's clock are ignored, because one wrong clock would make all other
records late. One hour is also the default of message.timestamp.after.max.ms in Kafka 4.
"""


def latest_time(at: Any) -> Any:
    """Return an aggregate of the column `at` (ms since 1970): the latest plausible time, or null."""
    from pyspark.sql import functions as f

    return f.max(f.when(at <= int(time.time() * 1000) + AHEAD_MS, at))
