"""Create and list the topics of a broker under test over Kafka's protocol."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_compat.client.cluster import Cluster, Node
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from kafka_compat.protocol.messages.metadata import MetadataRequestTopic

_CLIENT_ID = "kafka-compat-testing"
_TIMEOUT_S = 30.0
_AGAIN_S = 0.001


class TopicsFailed(RuntimeError):
    """Raised if a topic cannot be created. The message contains the broker's reason."""


def names(host: str, port: int) -> list[str]:
    """Return the names of the cluster's topics, except Kafka's internal topics."""
    with Cluster(f"{host}:{port}", client_id=_CLIENT_ID) as cluster:
        found = _topics(cluster, cluster.brokers(), None)
        return sorted({topic.name for topic in found if not topic.is_internal})


def create(
    host: str, port: int, name: str, partitions: int, replication_factor: int, config: Mapping[str, object]
) -> None:
    """Create a topic, and wait until clients can use it. Raises TopicsFailed."""
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=str(value)) for key, value in config.items()],
    )
    with Cluster(f"{host}:{port}", client_id=_CLIENT_ID) as cluster:
        answer = cluster.ask_controller(
            ApiKey.CREATE_TOPICS, "createTopics", topics=[wanted], timeout_ms=int(_TIMEOUT_S * 1000)
        )
        (result,) = answer.topics
        if result.error_code:
            reason = f"{ErrorCode(result.error_code).name} {result.error_message or ''}".strip()
            raise TopicsFailed(f"cannot create {name}: {reason}")
        brokers, deadline_s = cluster.brokers(), time.monotonic() + _TIMEOUT_S
        # Poll all brokers, because the controller updates them one after the other.
        while any(topic.error_code for topic in _topics(cluster, brokers, name)):
            if time.monotonic() > deadline_s:
                raise TopicsFailed(f"some brokers do not know {name} after {_TIMEOUT_S:g} s")
            time.sleep(_AGAIN_S)


def _topics(cluster: Cluster, brokers: Iterable[Node], name: str | None) -> list[Any]:
    """Return the metadata of a topic (None: all topics) from each broker."""
    asked = {
        "topics": None if name is None else [MetadataRequestTopic(name=name)],
        "allow_auto_topic_creation": False,
    }
    answers = (cluster.ask_broker(each.node_id, ApiKey.METADATA, "metadata", **asked) for each in brokers)
    return [topic for answer in answers for topic in answer.topics]
