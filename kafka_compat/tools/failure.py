"""Errors of commands. Each has the name of a Java exception, which users and scripts search for."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_ERRORS: Final = os.path.join(os.path.dirname(__file__), "errors.txt")
"""A file whose lines contain an error code, the exception in Kafka's clients, and the message."""
_DIGITS_MAX: Final = 100
"""Python does not convert texts of any length to numbers."""


class Failure(Exception):
    """A failed command. `kind` is the fully qualified class name of the Java exception."""

    def __init__(self, kind: str, message: str | None, cause: "Failure | None" = None) -> None:
        super().__init__(kind if message is None else f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.cause = cause
        self.suppressed: list[Failure] = []

    @property
    def trace(self) -> str:
        """Java's stack trace, without positions in source files."""
        first = "".join([f"{self}\n", *(f"\tSuppressed: {each}\n" for each in self.suppressed)])
        return first if self.cause is None else f"{first}Caused by: {self.cause.trace}"


def illegal_argument(message: str) -> Failure:
    return Failure("java.lang.IllegalArgumentException", message)


def invalid_configuration(message: str) -> Failure:
    return Failure("org.apache.kafka.common.errors.InvalidConfigurationException", message)


def executed(failure: Failure) -> Failure:
    """Wrap a failure in an ExecutionException, as Kafka's clients do with background failures."""
    return Failure("java.util.concurrent.ExecutionException", str(failure), failure)


@contextmanager
def in_background() -> Iterator[None]:
    """Convert KafkaErrors raised in the `with` block to Failures, wrapped by `executed`."""
    from kafka_compat.errors import KafkaError

    try:
        yield
    except KafkaError as error:
        raise executed(of_client(error)) from None


def check(*results: Any, bare: bool = False) -> None:
    """Raise a Failure for the first error in these responses or parts of a response. Unless `bare` is set,
    the Failure is wrapped by `executed`.
    """
    for result in results:
        if result.error_code:
            failure = failure_of(result.error_code, getattr(result, "error_message", None))
            raise failure if bare else executed(failure)


def fits(number: int, bits: int = 32) -> bool:
    """Whether a number fits into Java's int (32 bits) or long (64 bits)."""
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def is_number(text: str, bits: int = 32) -> bool:
    """Whether Java's Integer.parseInt or, with 64 bits, Long.parseLong accepts a text."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isdecimal() and len(digits) <= _DIGITS_MAX and fits(int(text), bits)


def java_int(text: str, bits: int = 32) -> int:
    """Parse a number like Java's Integer.parseInt or, with 64 bits, Long.parseLong. Raises Failure if the
    text is not such a number.
    """
    if not is_number(text, bits):
        raise Failure("java.lang.NumberFormatException", f'For input string: "{text}"')
    return int(text)


def report(failure: Failure) -> int:
    """Print a command's final error on stderr, as many of Kafka's commands do. Return the exit code."""
    print(f"{failure.message}\n{failure.trace}", file=sys.stderr)
    return 1


def failure_of(code: int, message: str | None = None) -> Failure:
    """Return the Failure for an error code, with `message` or, if it is None, the text in `errors.txt`."""
    with open(_ERRORS, encoding="utf-8") as file:
        for line in file:
            number, name, text = line.rstrip("\n").split(" ", 2)
            if int(number) == code:
                package = "org.apache.kafka.common" + ("" if name == "InvalidRecordException" else ".errors")
                return Failure(f"{package}.{name}", text if message is None else message)
    return failure_of(-1, message)


def of_client(error: Exception) -> Failure:
    """Convert an exception from `kafka_compat.client` to a Failure. Any other exception is raised again."""
    from kafka_compat.client.cluster import TimedOut
    from kafka_compat.client.connection_settings import HandshakeFailed, WrongSettings
    from kafka_compat.errors import KafkaError
    from kafka_compat.security.sasl.client import Untrusted

    if isinstance(error, Failure):
        return error
    if isinstance(error, TimedOut):
        return Failure("org.apache.kafka.common.errors.TimeoutException", str(error))
    if isinstance(error, KafkaError):
        return failure_of(error.code, error.message or None)
    if isinstance(error, WrongSettings):
        return Failure("org.apache.kafka.common.config.ConfigException", str(error))
    if isinstance(error, HandshakeFailed):
        return Failure("org.apache.kafka.common.errors.SslAuthenticationException", str(error))
    if isinstance(error, Untrusted):
        return Failure("org.apache.kafka.common.errors.SaslAuthenticationException", str(error))
    if isinstance(error, OSError):
        return Failure("java.io.IOException", str(error))
    raise error


def log(level: str, text: str, logger: str) -> None:
    """Print a line to stderr in the log format of Kafka's commands."""
    now = time.time()
    stamp = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))},{int(now * 1000) % 1000:03}"
    print(f"[{stamp}] {level} {text} ({logger})", file=sys.stderr)
