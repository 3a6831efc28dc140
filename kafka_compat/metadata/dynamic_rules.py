"""Rules for dynamic broker settings, with Kafka's error messages. No I/O."""

from collections.abc import Mapping, Sequence

from kafka_compat.config import BrokerConfig, ConfigError, broker_keys
from kafka_compat.config.synonyms import known_key
from kafka_compat.errors import ErrorCode, KafkaError

_THREAD_COUNTS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
_BOUNDS = ("should be at least 1", "should be at least half", "should not be greater than double")
_CLEANERS_BOUNDS = (
    "should be at least 1",
    "cannot be reduced to less than half",
    "cannot be increased to more than double",
)


def check_dynamic(settings: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise KafkaError unless all of these settings can be changed dynamically for one broker (`per_broker`)
    or for all brokers.
    """
    keys = broker_keys()
    fixed = [name for name in settings if name in keys and keys[name].read_only]
    if fixed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {_set(fixed)}")
    bare = [name for name in settings if name.startswith("ssl.") and name in keys]
    if bare:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"HashSet({', '.join(bare)})",
        )
    for name, value in settings.items():
        key = known_key(name)
        if key:
            try:
                key.parse(value)
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    if not per_broker:
        single = [
            name
            for name in settings
            if name.startswith("listener.name.") or (name in keys and keys[name].update == "per-broker")
        ]
        if single:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Cannot update these configs at default cluster level, broker id must be specified: "
                + _set(single),
            )


def refusal(error: ConfigError) -> str:
    """Return Kafka's error message for contradictory dynamic settings, which differs from that at startup."""
    if error.name in ("listeners", "advertised.listeners"):
        return f"Error creating broker listeners from '{error.value}': {error.reason}"
    return f"requirement failed: {error.name} {error.reason}"


def check_thread_counts(old: BrokerConfig, new: BrokerConfig) -> None:
    """Raise KafkaError unless each thread count is at least 1, and between half and twice the old count."""
    for name in _THREAD_COUNTS:
        before, after = old.int(name), new.int(name)
        place = 0 if after < 1 else 1 if after < before // 2 else 2 if after > 2 * before else None
        if place is None:
            continue
        if name == "log.cleaner.threads":
            problem = f"Log cleaner threads {_CLEANERS_BOUNDS[place]}"
        else:
            failed = f"Dynamic thread count update validation failed for {name}={after}"
            problem = f"{failed}, value {_BOUNDS[place]}"
        if place:
            problem += f" the current value {before}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, refused_by_part(problem))


def refused_by_part(problem: str) -> str:
    """Return Kafka's error message for settings that a component, such as a listener, has rejected."""
    return (
        f"Invalid value org.apache.kafka.common.config.ConfigException: {problem} "
        "for configuration Invalid dynamic configuration"
    )


def _set(names: Sequence[str]) -> str:
    """Format names as Scala formats a Set, because Kafka's tools show this format."""
    return f"{'Set' if len(names) < 5 else 'HashSet'}({', '.join(names)})"
