"""Schedule of metric pushes, and log messages about their failures. No I/O.

Rules
1. A push begins one interval after the start of the previous push, or immediately if that push took longer.
2. While pushes fail, the pause doubles each time, up to five minutes (or the interval, if longer): a receiver
   that recovers is not flooded by all brokers, and an absent receiver is not contacted every second for days.
3. The first failure is logged as a warning; later failures are not logged. The first success after failures
   is logged. Rejected points are logged as a warning, and again only after a push without rejected points.

Times are seconds of a monotonic clock.
"""

import logging
from typing import Final, NamedTuple

log = logging.getLogger(__name__)

_PAUSE_MAX_S: Final = 300.0
_REASON_MAX: Final = 200


class Outcome(NamedTuple):
    """The result of a push: its `failure` or None, and the number of `refused` points with the `reason`."""

    failure: str | None = None
    refused: int = 0
    reason: str = ""


class Schedule:
    def __init__(self, where: str, interval_s: float) -> None:
        """`where` is the endpoint shown in log messages."""
        self._where = where
        self._interval_s = interval_s
        self._failures = 0
        self._refuses = False

    def pause_s(self, took_s: float) -> float:
        """Return the number of seconds to wait after a push that took `took_s`."""
        longest_s = max(self._interval_s, _PAUSE_MAX_S)
        wanted_s = min(self._interval_s * 2.0 ** min(self._failures, 32), longest_s)
        # Do not retry immediately, even if the failed push took a long time.
        return max(wanted_s - took_s, wanted_s / 2 if self._failures else 0.0)

    def note(self, outcome: Outcome) -> None:
        """Record the result of a push, and log it according to rule 3."""
        if outcome.failure is not None:
            self._failures += 1
            if self._failures == 1:
                log.warning(
                    "Could not push metrics to %s: %s. Retrying at intervals of up to %.0f s; further "
                    "failures are not logged until a push succeeds",
                    self._where,
                    outcome.failure[:_REASON_MAX],
                    max(self._interval_s, _PAUSE_MAX_S),
                )
            return
        if self._failures:
            log.info("Resumed pushing metrics to %s (failed attempts: %d)", self._where, self._failures)
        self._failures = 0
        if outcome.refused and not self._refuses:
            log.warning(
                "The collector at %s rejected %d of the pushed metrics: %s",
                self._where,
                outcome.refused,
                outcome.reason[:_REASON_MAX],
            )
        self._refuses = bool(outcome.refused)
