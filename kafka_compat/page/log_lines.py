"""The last lines of this process's log, in memory."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from kafka_compat.config.logger_levels import level_name

LINES_MAX: Final = 1000
_TEXT_MAX: Final = 4000
AUDIT: Final = "kafka.authorizer.logger"
_DENIED: Final = "Denied"


class LogLines(logging.Handler):
    """Keeps what the loggers let through. `refused` hears of what the authorizer denied: host and why."""

    def __init__(self, refused: Callable[[str, str], None]) -> None:
        super().__init__()
        self._refused = refused
        self._kept: deque[dict[str, Any]] = deque(maxlen=LINES_MAX)
        self._number = 0

    def emit(self, record: logging.LogRecord) -> None:
        """From whatever thread."""
        try:
            text = record.getMessage()
            if record.exc_info and record.exc_info[0] is not None:
                text += "\n" + (logging.Formatter().formatException(record.exc_info))
            if record.name == AUDIT:
                self._hear_audit(record)
        except Exception:
            self.handleError(record)
            return
        self._number += 1
        self._kept.append(
            {
                "number": self._number,
                "time_ms": int(record.created * 1000),
                "level": level_name(record.levelno),
                "level_number": record.levelno,
                "logger": record.name,
                "text": text[:_TEXT_MAX],
            }
        )

    def _hear_audit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, tuple) and len(record.args) == 6 and record.args[1] == _DENIED:
            principal, _, operation, host, resource, why = record.args
            self._refused(str(host), f"{principal} may not {operation} {resource}: {why}")

    def lines(self) -> list[dict[str, Any]]:
        """All that are kept, the oldest first."""
        return list(self._kept)
