"""The levels of the process's loggers under log4j's names, for Kafka's tools (KIP-412)."""

import logging
from collections.abc import Mapping

from kafka_compat.errors import ErrorCode, KafkaError

ROOT = "root"
_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


class LoggerLevels:
    """Reads and sets the levels. They belong to the process and are forgotten with it."""

    def levels(self) -> dict[str, str]:
        """The effective level of every logger that exists, the root's first."""
        names = sorted(
            name
            for name, logger in logging.Logger.manager.loggerDict.items()
            if isinstance(logger, logging.Logger)
        )
        return {ROOT: _name(logging.getLogger().level)} | {
            name: _name(logging.getLogger(name).getEffectiveLevel()) for name in names
        }

    def check(self, levels: Mapping[str, str | None]) -> None:
        """KafkaError unless every logger exists and can have its level; None is the level of its parent."""
        known = self.levels()
        for name, level in levels.items():
            if name not in known:
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
        """Let loggers have these levels."""
        for name, level in levels.items():
            logger = logging.getLogger(None if name == ROOT else name)
            logger.setLevel(logging.NOTSET if level is None else _LEVELS[level])


def _name(level: int) -> str:
    for name, number in _LEVELS.items():
        if level <= number:
            return name
    return "FATAL"
