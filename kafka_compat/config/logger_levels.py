"""Log levels of the process's loggers, by Kafka's names. kafka.compat.log.level sets them at startup, and
Kafka's tools change them at run time (KIP-412).
"""

import logging
from collections.abc import Mapping

from kafka_compat.errors import ErrorCode, KafkaError

ROOT = "root"
OURS = "kafka_compat"
ALIAS = "kafka"
"""The name that Kafka users use for all loggers of the broker."""
_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def level_name(level: int) -> str:
    """Return Kafka's name for a level from Python's `logging`."""
    for name, number in _LEVELS.items():
        if level <= number:
            return name
    return "FATAL"


def parse_levels(text: str) -> dict[str, str]:
    """Parse log levels such as `INFO,kafka_compat.cluster=DEBUG`, and return the level for each logger. A
    level without a logger applies to the root logger. Raises ValueError if an item is invalid.
    """
    levels: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        name, equals, level = item.rpartition("=")
        name, level = name.strip() or ROOT, level.strip().upper()
        if level not in _LEVELS or (equals and not item.partition("=")[0].strip()):
            raise ValueError(f"{item} is not LEVEL or LOGGER=LEVEL, with one of {', '.join(_LEVELS)}")
        levels[name] = level
    return levels


class LoggerLevels:
    """The log levels of this process, which are not stored."""

    def levels(self) -> dict[str, str]:
        """Return the effective levels of the root logger, other loggers, and this project's packages."""
        names = [
            name
            for name, logger in list(logging.Logger.manager.loggerDict.items())
            if isinstance(logger, logging.Logger) or name == OURS or name.startswith(OURS + ".")
        ]
        return {ROOT: level_name(logging.getLogger().level)} | {
            name: level_name(_logger(name).getEffectiveLevel()) for name in sorted({ALIAS, OURS, *names})
        }

    def check(self, name: str, level: str | None) -> None:
        """Raise KafkaError for an unknown logger or level. The level None means the parent logger's level."""
        if name not in self.levels():
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if level is None and name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
            )
        if level is not None and level not in _LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
                f"Valid log levels are {', '.join(sorted(_LEVELS))}",
            )

    def set(self, levels: Mapping[str, str | None]) -> None:
        """Set the levels of loggers, including loggers that do not exist yet."""
        for name, level in levels.items():
            _logger(name).setLevel(logging.NOTSET if level is None else _LEVELS[level])


def _logger(name: str) -> logging.Logger:
    if name == ROOT:
        return logging.getLogger()
    return logging.getLogger(OURS if name == ALIAS else name)
