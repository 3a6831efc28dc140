"""Log output on standard error, and status lines on standard output, as text or JSON.

In text format, each message is one line, followed by a traceback if there is one. Names chosen by clients
cannot start a new line. With kafka.compat.log.format=json, each line is a JSON object, also on standard
output. Write and encoding errors never stop a broker.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from kafka_compat.config.logger_levels import OURS, LoggerLevels, level_name, parse_levels

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig

LEVEL, FORMAT = "kafka.compat.log.level", "kafka.compat.log.format"

DESCRIPTORS_QUIET_S = 60.0
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)

log = logging.getLogger(OURS)


class TextFormatter(logging.Formatter):
    """A formatter that writes each message on one line, followed by a traceback if there is one."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        if not record.message.isprintable():
            record.message = "".join(
                one if one.isprintable() else one.encode("unicode_escape").decode() for one in record.message
            )
        return super().formatMessage(record)


class FewWordsOnDescriptors(logging.Filter):
    """A filter that limits messages about a lack of file descriptors to one per minute, because during a
    shortage, every attempt to open a file fails.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told_s: float | None = None
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if not _is_of_descriptors(record):
            return True
        now_s = time.monotonic()
        if self._told_s is not None and now_s - self._told_s < DESCRIPTORS_QUIET_S:
            self._left_out += 1
            return False
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        text = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        record.msg = (
            "%s%s. The process has reached its limit of %s open files and connections (`ulimit -n`): raise "
            "the limit. Similar messages suppressed since the last one: %d"
        )
        reason = "" if error is None or str(error) in text else f": {error}"
        record.args = (text, reason, limit, self._left_out)
        record.exc_info = record.exc_text = None
        self._told_s, self._left_out = now_s, 0
        return True


def _is_of_descriptors(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_DESCRIPTORS:
            return True
        error = error.__cause__ or error.__context__
    text = record.getMessage()
    return any(f"[Errno {number}]" in text or os.strerror(number) in text for number in _NO_DESCRIPTORS)


def begin(*, verbose: bool, broker_id: int | None = None) -> None:
    """Log warnings, and with `verbose` also info messages, as text to standard error. `broker_id` is set if
    several processes share the output.
    """
    whose = "" if broker_id is None else f"broker {broker_id}: "
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter(f"%(asctime)s %(levelname)s {whose}%(message)s"))
    handler.addFilter(FewWordsOnDescriptors())
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])


def obey(config: BrokerConfig, *, verbose: bool, broker_id: int | None = None) -> None:
    """Apply the log settings. With `verbose`, log at least at level INFO."""
    LoggerLevels().set(parse_levels(config.str(LEVEL) or ""))
    if verbose:
        logging.root.setLevel(min(logging.root.level, logging.INFO))
    if is_json(config):
        for handler in logging.root.handlers:
            handler.setFormatter(JsonFormatter(broker_id))
        catch_uncaught()


def is_json(config: BrokerConfig) -> bool:
    """Return whether log lines are JSON objects."""
    return config.str(FORMAT) == "json"


def tell(config: BrokerConfig, text: str, broker_id: int | None = None) -> None:
    """Print a status line in the configured log format."""
    if is_json(config):
        record = logging.LogRecord(OURS, logging.INFO, "", 0, "%s", (text,), None)
        text = JsonFormatter(broker_id).format(record)
    write(text)


def write(text: str) -> None:
    """Write a line to standard output. The first failure is logged; later lines are dropped."""
    try:
        # Write the text and its newline in one call, because other processes may write to the same stream.
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        log.warning("Closed standard output because a write to it failed: %s", error.strerror or error)
        from kafka_compat.tools.output import discard

        discard()


def tell_started(broker_id: int) -> None:
    """Print Kafka's startup messages, in KRaft and in ZooKeeper mode. Testcontainers modules and scripts wait
    for them in the output of a Kafka container.
    """
    now = time.time()
    moment = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))},{int(now * 1000) % 1000:03}"
    for line in (
        f"[BrokerLifecycleManager id={broker_id}] The broker has been unfenced. Transitioning from RECOVERY "
        "to RUNNING. (kafka.server.BrokerLifecycleManager)",
        f"[KafkaRaftServer nodeId={broker_id}] Kafka Server started (kafka.server.KafkaRaftServer)",
        f"[KafkaServer id={broker_id}] started (kafka.server.KafkaServer)",
    ):
        write(f"[{moment}] INFO {line}")


def refuse(message: str, config: BrokerConfig | None = None) -> int:
    """Print why the broker cannot start, and return the exit code."""
    if config is not None and is_json(config):
        log.critical("%s", message)
    else:
        with contextlib.suppress(OSError):
            print(f"kafka-compat serve: {message}", file=sys.stderr)
    return 2


class JsonFormatter(logging.Formatter):
    """A formatter for log lines as ASCII JSON objects with `time` (UTC), `level` (Kafka's names), `logger`
    and `message`, optionally `exception`, and `broker` if several processes share the output.
    """

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
        import json

        return json.dumps(entry)


def catch_uncaught() -> None:
    """Log exceptions that end the process or one of its threads, and Python's warnings."""

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.critical("Process terminated by an uncaught exception", exc_info=(kind, error, trace))

    def thread_ended(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
            name = ended.thread.name if ended.thread is not None else "?"
            trace = (ended.exc_type, ended.exc_value, ended.exc_traceback)
            log.error("Thread %s terminated by an uncaught exception", name, exc_info=trace)

    sys.excepthook = ended
    threading.excepthook = thread_ended
    logging.captureWarnings(True)


def _utc(created_s: float) -> str:
    moment_ms = int(created_s * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(moment_ms // 1000))}.{moment_ms % 1000:03}Z"
