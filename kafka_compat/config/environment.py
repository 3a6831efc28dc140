"""Settings from environment variables, with the conventions of the common Kafka container images.

The apache/kafka and Confluent images use `KAFKA_NAME`, and Bitnami's image uses `KAFKA_CFG_NAME`. In NAME, a
triple underscore stands for `-`, a double one for `_`, and a single one for `.`.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

#: Variables for the JVM or for the shell scripts of container images. They are not broker settings. The
#: pattern is not compiled here, because that would delay startups that do not read the environment.
_NOT_SETTINGS = (
    r"KAFKA_(.*_OPTS|OPTS|(TOOLS_)?LOG4J_.*|JMX_(HOSTNAME|PORT)|HOME|DEBUG|VERSION|CREATE_TOPICS"
    r"|(KRAFT_)?CLUSTER_ID|(CFG_)?ENABLE_KRAFT)"
)
_UNDERSCORES = r"_{1,3}"
_CONTINUATION = r"\\\r?\n[ \t\f]*"
"""A line end that a backslash precedes joins two lines, because the images write a properties file."""
_MEANING = {"_": ".", "__": "_", "___": "-"}


class TopicToCreate(NamedTuple):
    """A topic to create at startup, from KAFKA_CREATE_TOPICS."""

    name: str
    partitions: int
    replication_factor: int
    cleanup_policy: str | None


def settings_from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in environment variables. KAFKA_LOG_RETENTION_MS=5 sets log.retention.ms to 5."""
    settings = {}
    for prefix in ("KAFKA_", "KAFKA_CFG_"):
        for variable, value in environment.items():
            if (
                variable.startswith(prefix)
                and variable.startswith("KAFKA_CFG_") == (prefix == "KAFKA_CFG_")
                and not re.fullmatch(_NOT_SETTINGS, variable)
            ):
                name = variable[len(prefix) :].lower()
                settings[re.sub(_UNDERSCORES, lambda match: _MEANING[match[0]], name)] = (
                    re.sub(_CONTINUATION, "", value) if "\n" in value else value
                )
    return settings


def cluster_id_from_environment(environment: Mapping[str, str]) -> str | None:
    """Return the ID of the cluster that container images format data directories for, or None."""
    names = ("CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")
    return next((value for name in names if (value := environment.get(name, "").strip())), None)


def topics_from_environment(environment: Mapping[str, str]) -> tuple[TopicToCreate, ...]:
    """Return the topics in KAFKA_CREATE_TOPICS="name:partitions:replicas[:policy],…". Raises ValueError if an
    entry is invalid.
    """
    topics = []
    for item in re.split(r"[,;\s]+", environment.get("KAFKA_CREATE_TOPICS", "").strip()):
        if not item:
            continue
        name, *numbers = item.split(":")
        try:
            partitions = int(numbers[0]) if numbers else 1
            replicas = int(numbers[1]) if len(numbers) > 1 else 1
        except ValueError:
            partitions = replicas = 0
        policy = numbers[2] if len(numbers) > 2 else None
        if (
            not name
            or partitions < 1
            or replicas < 1
            or len(numbers) > 3
            or policy not in (None, "compact", "delete")
        ):
            raise ValueError(
                f"KAFKA_CREATE_TOPICS: {item!r}: expected name:partitions:replicas, optionally followed by "
                ":compact or :delete"
            )
        topics.append(TopicToCreate(name, partitions, replicas, policy))
    return tuple(topics)
