"""Check topics and permissions on Kafka clusters before Spark starts, so that a mistyped name fails without
waiting for a JVM.

The checks use this project's client, with the settings of the job's client. If it does not support the
authentication method (Java login classes, Spark's delegation tokens), `cluster.look` checks with the job's
client.
"""

import re
import ssl
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.connection_settings import HandshakeFailed, WrongSettings, addresses
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.kafka_options import java_names
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.metadata import MetadataRequestTopic
from kafka_compat.security.sasl.client import Untrusted

QUICK_S = 0.8
"""Timeout in seconds for each address in the first attempt. A message announces the second attempt."""
PATIENT_S = 20.0
READ, WRITE = 3, 4
"""Bit numbers of the authorized operations in a Metadata response."""
_IS_THERE = (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
_SHOWN_TOPICS = 20


class Seen(NamedTuple):
    """The cluster ID ("" if the cluster has none), and the number of partitions of each topic."""

    cluster_id: str
    partitions: dict[str, int]


def first_look(
    properties: Mapping[str, str], *, topics: Iterable[str] = (), pattern: str | None = None
) -> Seen | None:
    """Check topics to read. `properties` contains a Java client's properties.

    Raises NotStarted if no broker responds, authentication fails, or a topic does not exist (topics are not
    created) or may not be read. Returns None if this client does not support the authentication method.
    """
    servers, named = properties["bootstrap.servers"], sorted(set(topics))
    answer = _ask(properties, None if pattern is not None else named)
    if answer is None:
        return None
    if pattern is not None:
        # Skip internal topics, because Spark's topic patterns do not match them.
        candidates = sorted(topic.name for topic in answer.topics if not topic.is_internal)
        named = [name for name in candidates if _matches(pattern, name)]
        if not named:
            raise NotStarted(f"No topic on {servers} matches {pattern}.", _there(candidates))
    states = {topic.name: topic for topic in answer.topics}
    missing = {name for name in named if not _is_there(states.get(name))}
    _require_right(servers, [states[name] for name in named if name in states], READ)
    if missing:
        everything = _ask(properties, None)
        check_topics(servers, missing, {topic.name for topic in everything.topics if _is_there(topic)})
    return Seen(answer.cluster_id or "", {name: len(states[name].partitions) for name in named})


def first_look_at_target(
    properties: Mapping[str, str], wanted: Mapping[str, int], *, create: bool
) -> Seen | None:
    """Check topics to write to, each with at least the number of partitions in `wanted`. `properties`
    contains librdkafka properties. With `create`, missing topics and partitions are allowed.

    Raises NotStarted like `first_look`, and if a topic has too few partitions. Returns None if this client
    does not support the authentication method.
    """
    settings = java_names(properties)
    answer = None if settings is None else _ask(settings, sorted(wanted))
    if answer is None:
        return None
    servers = properties["bootstrap.servers"]
    states = {topic.name: topic for topic in answer.topics}
    _require_right(servers, states.values(), WRITE)
    there = {name: len(topic.partitions) for name, topic in states.items() if _is_there(topic)}
    if not create:
        check_partitions(servers, wanted, there)
    return Seen(answer.cluster_id or "", there)


def check_topics(servers: str, wanted: set[str], existing: set[str]) -> None:
    """Raise NotStarted unless all topics in `wanted` exist."""
    missing = ", ".join(sorted(wanted - existing))
    if missing:
        raise NotStarted(f"No such topic on {servers}: {missing}.", _there(sorted(existing)))


def check_partitions(servers: str, wanted: Mapping[str, int], there: Mapping[str, int]) -> None:
    """Raise NotStarted unless each topic in `wanted` exists with at least the wanted number of partitions."""
    for topic, count in wanted.items():
        if there.get(topic, 0) < count:
            state = f"has {there[topic]} partitions" if topic in there else "does not exist"
            raise NotStarted(
                f"The topic {topic} on {servers} {state}; {count} are needed.",
                "Create it with as many, and with retention.ms=-1 to keep old timestamps; --create creates "
                "missing topics.",
            )


# --- requests


def _ask(properties: Mapping[str, str], names: list[str] | None) -> Any:
    """Send a Metadata request to each address until one responds, and return the response. It contains all
    topics if `names` is None. Return None if this client does not support the authentication method.
    """
    servers = properties["bootstrap.servers"]
    request = {
        "topics": None if names is None else [MetadataRequestTopic(name=name) for name in names],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": True,
    }
    for timeout_s in (QUICK_S, PATIENT_S):
        cluster = _cluster(properties, timeout_s)
        if cluster is None:
            return None
        failures: list[Exception] = []
        with closing(cluster):
            for node_id in sorted(cluster.nodes, reverse=True):
                try:
                    return cluster.try_broker(node_id, ApiKey.METADATA, "metadata", **request)
                except WrongSettings:
                    return None
                except (OSError, EOFError, ValueError, HandshakeFailed, KafkaError, Untrusted) as error:
                    failures.append(error)
        telling = [error for error in failures if not isinstance(error, ConnectionRefusedError)]
        if not any(isinstance(error, TimeoutError) for error in failures) or timeout_s == PATIENT_S:
            break
        print(f"{servers} has not responded yet; waiting up to {PATIENT_S:g} s.", file=sys.stderr, flush=True)
    first = (telling or failures)[0]
    if isinstance(first, KafkaError) and first.code == ErrorCode.UNSUPPORTED_VERSION:
        return None
    raise _explained(servers, first) from None


def _cluster(properties: Mapping[str, str], timeout_s: float) -> Cluster | None:
    servers, timeout = properties["bootstrap.servers"], str(int(timeout_s * 1000))
    own = {"request.timeout.ms": timeout, "default.api.timeout.ms": timeout}
    try:
        addresses(servers)
        return Cluster(servers, {**properties, **own}, client_id="kafka-compat-pipeline")
    except WrongSettings as error:
        named = "bootstrap.servers" in str(error) or "no address" in str(error)
        if not named and _is_for_java_alone(properties):
            return None
        raise NotStarted(f"{error}.", "" if named else _SETTINGS_HINT) from None


_SETTINGS_HINT = "Give the client's settings with --command-config FILE, or one by one with --kafka-option."


def _is_for_java_alone(properties: Mapping[str, str]) -> bool:
    """Return whether only Java classes or Spark can authenticate the client."""
    classes = any(name.endswith((".class", ".provider", ".providers")) for name in properties)
    sasl = properties.get("security.protocol", "").upper().startswith("SASL")
    return classes or (sasl and "sasl.jaas.config" not in properties)


# --- errors


def _explained(servers: str, error: Exception) -> NotStarted:
    """Convert a connection error to a NotStarted with advice for the user."""
    doctor = f"kafka-compat doctor --bootstrap-server {servers} [client.properties] shows which step fails."
    if isinstance(error, KafkaError | Untrusted):
        reason = getattr(error, "message", "") or str(error)
        return NotStarted(
            f"The cluster at {servers} rejects the login: {reason}",
            "Check sasl.mechanism, and the name and password in sasl.jaas.config.",
        )
    if isinstance(error, HandshakeFailed):
        return NotStarted(
            f"The cluster at {servers} is not trusted: {error}",
            "Set ssl.truststore.location to the CA that signed the broker's certificate.",
        )
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).replace("_", " ").lower()
        return NotStarted(
            f"The cluster at {servers} does not respond in TLS: {reason}",
            "For a plain-text listener, set security.protocol=PLAINTEXT or SASL_PLAINTEXT; for one that "
            f"requires a client certificate, set ssl.keystore.location. {doctor}",
        )
    if isinstance(error, EOFError | ValueError):
        return NotStarted(
            f"The cluster at {servers} does not respond: {error}",
            f"Does it require TLS or a login (security.protocol)? {doctor}",
        )
    reason = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error)
    return NotStarted(
        f"The cluster at {servers} does not respond: {reason}",
        "Is the broker running, and is the address correct?",
    )


def _require_right(servers: str, topics: Iterable[Any], bit: int) -> None:
    """Raise NotStarted if the user lacks the permission with this bit number for a topic."""
    verb, operation = ("read", "Read") if bit == READ else ("write to", "Write")
    for topic in topics:
        refused = topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        may = topic.topic_authorized_operations
        if refused or (may >= 0 and not may >> bit & 1):
            raise NotStarted(
                f"This user may not {verb} the topic {topic.name} on {servers}.",
                f"Ask an administrator to allow it: kafka-acls --bootstrap-server {servers} --add "
                f"--allow-principal User:… --operation {operation} --operation Describe --topic {topic.name}",
            )


def _is_there(topic: Any) -> bool:
    return topic is not None and known_code(topic.error_code) in _IS_THERE


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error as error:
        raise NotStarted(f"--topic-pattern {pattern} is not a regular expression: {error}.") from None


def _there(names: list[str]) -> str:
    more = ", …" if len(names) > _SHOWN_TOPICS else ""
    return f"Topics there: {', '.join(names[:_SHOWN_TOPICS]) or 'none'}{more}."
