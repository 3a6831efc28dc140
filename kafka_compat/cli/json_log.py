"""Lines of the log as JSON: one object each, for programs that collect logs.

`time` (UTC, with milliseconds), `level` (by Kafka's names), `logger`, `message`; `exception` where there is
one, `broker` where several processes write to one place. What is not ASCII is escaped, so that every line
can be written everywhere.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from types import TracebackType

from kafka_compat.config.logger_levels import OURS, level_name


class JsonFormatter(logging.Formatter):
    """See above."""

    def __init__(self, broker_id: int | None = None) -> None:
        super().__init__()
        self._broker_id = broker_id

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, str | int] = {
            "time": _utc(record.created),
            "level": level_name(record.levelno),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._broker_id is not None:
            entry["broker"] = self._broker_id
        if record.exc_info and record.exc_info[0] is not None:
            entry["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            entry["stack"] = record.stack_info
        return json.dumps(entry)


def line(message: str, broker_id: int | None = None) -> str:
    """A line that no logger wrote."""
    return JsonFormatter(broker_id).format(
        logging.LogRecord(OURS, logging.INFO, "", 0, "%s", (message,), None)
    )


def catch_uncaught() -> None:
    """Have exceptions that end the process, or one of its threads, and Python's warnings logged as well."""
    log = logging.getLogger(OURS)

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.critical("the process ends", exc_info=(kind, error, trace))

    def thread_ended(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
            name = ended.thread.name if ended.thread is not None else "?"
            trace = (ended.exc_type, ended.exc_value, ended.exc_traceback)
            log.error("the thread %s ends", name, exc_info=trace)

    sys.excepthook = ended
    threading.excepthook = thread_ended
    logging.captureWarnings(True)


def _utc(created_s: float) -> str:
    moment_ms = int(created_s * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(moment_ms // 1000))}.{moment_ms % 1000:03}Z"
