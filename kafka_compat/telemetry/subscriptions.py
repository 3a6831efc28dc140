"""Client-metrics subscriptions: validation as in Kafka's ClientMetricsConfigs, and the resulting subscription
of one client (KIP-714). No I/O.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

import crc32c

from kafka_compat.config import ConfigError, ConfigKey
from kafka_compat.coordination.nodes.znodes import encode_topic_id
from kafka_compat.errors import ErrorCode, KafkaError

METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"

DEFAULT_INTERVAL_MS: Final = 5 * 60 * 1000
_INTERVAL_MIN_MS, _INTERVAL_MAX_MS = 100, 3_600_000
ALL_METRICS: Final = "*"

KEYS: Final = {
    key.name: key
    for key in (
        ConfigKey(INTERVAL_MS, "int", str(DEFAULT_INTERVAL_MS), "medium", "cluster-wide"),
        ConfigKey(MATCH, "list", "", "medium", "cluster-wide"),
        ConfigKey(METRICS, "list", "", "medium", "cluster-wide"),
    )
}
"""Client-metrics settings, by name."""

ABOUT: Final = {
    INTERVAL_MS: "Interval in milliseconds at which clients push, from 100 to 3600000.",
    MATCH: "Clients that push: a list of selector=regular expression, all of which must match. Empty: "
    "all clients.",
    METRICS: "Name prefixes of the metrics that clients push; * for all metrics.",
}


class Client(NamedTuple):
    """The attributes of a client, except its instance ID. The fields have the names of the selectors."""

    client_id: str | None
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


INSTANCE_ID: Final = "client_instance_id"
_SELECTORS: Final = (INSTANCE_ID, *Client._fields)


class Subscription(NamedTuple):
    """A client metrics subscription: prefixes of metric names, and a pattern for each selector."""

    metrics: frozenset[str]
    interval_ms: int
    patterns: Mapping[str, re.Pattern[str]]

    def matches(self, instance_id: UUID, client: Client) -> bool:
        """Return whether the subscription applies to this client. Patterns must match entire values."""
        known = {INSTANCE_ID: encode_topic_id(instance_id), **client._asdict()} if self.patterns else {}
        return all(
            (value := known[selector]) is not None and pattern.fullmatch(value) is not None
            for selector, pattern in self.patterns.items()
        )


class Wanted(NamedTuple):
    """The combined subscription of one client instance. Its ID changes with its metrics and interval."""

    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int


def wanted(subscriptions: Iterable[Subscription], instance_id: UUID, client: Client) -> Wanted:
    """Combine matching subscriptions: all their metrics, at the shortest interval (at most five minutes)."""
    metrics: set[str] = set()
    interval_ms = DEFAULT_INTERVAL_MS
    for subscription in subscriptions:
        if subscription.matches(instance_id, client):
            metrics |= subscription.metrics
            interval_ms = min(interval_ms, subscription.interval_ms)
    names = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    text = f"[{', '.join(names)}]{interval_ms}"
    number = crc32c.crc32c(text.encode("utf-8", "surrogatepass")) ^ _java_hash(instance_id)
    return Wanted(number - (1 << 32) if number >= 1 << 31 else number, names, interval_ms)


def _java_hash(instance_id: UUID) -> int:
    """Return Kafka's Uuid.hashCode as an unsigned 32-bit number."""
    both = (instance_id.int >> 64) ^ (instance_id.int & ((1 << 64) - 1))
    return (both >> 32) ^ (both & 0xFFFF_FFFF)


def subscription(settings: Mapping[str, str]) -> Subscription:
    """Parse the settings of a resource. Raises KafkaError: INVALID_REQUEST for an unknown name or an interval
    out of bounds, INVALID_CONFIG for a value of the wrong type or an invalid pattern.
    """
    for name in settings:
        if name not in KEYS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    try:
        values = {name: key.parse(settings.get(name, key.default or "")) for name, key in KEYS.items()}
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    metrics, interval_ms, match = values[METRICS], values[INTERVAL_MS], values[MATCH]
    assert isinstance(metrics, list) and isinstance(interval_ms, int) and isinstance(match, list)
    for name, items in ((METRICS, metrics), (MATCH, match)):
        if "" in items:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Configuration '{name}' values must not be empty.")
    if not _INTERVAL_MIN_MS <= interval_ms <= _INTERVAL_MAX_MS:
        bounds = "interval must be between 100 and 3600000 (1 hour)"
        problem = f"Invalid value {interval_ms} for {INTERVAL_MS}, {bounds}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    return Subscription(frozenset(metrics), interval_ms, dict(map(_pattern, match)))


def _pattern(text: str) -> tuple[str, re.Pattern[str]]:
    # Drop empty strings at the end, as Java's split does.
    parts = text.split("=")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    if len(parts) == 2 and parts[0].strip() in _SELECTORS:
        try:
            return parts[0].strip(), re.compile(parts[1].strip())
        except (re.error, RecursionError, OverflowError):
            pass
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")
