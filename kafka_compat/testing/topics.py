"""Topics of a broker under test: made and listed, over Kafka's protocol."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from kafka_compat.client.connection import Connection
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from kafka_compat.protocol.messages.metadata import MetadataRequestTopic

_CLIENT_ID = "kafka-compat-testing"
_TIMEOUT_S = 30.0
_TIMEOUT_MS = int(_TIMEOUT_S * 1000)
_AGAIN_S = 0.001
_METADATA_VERSION = 9
_CREATE_VERSION = 5


class TopicsFailed(RuntimeError):
    """The broker says why a topic cannot be made."""


def names(host: str, port: int) -> list[str]:
    """The topics that there are, without Kafka's internal ones."""
    with _brokers(host, port) as brokers:
        return sorted({topic.name for topic in _topics(brokers) if not topic.is_internal})


def create(
    host: str, port: int, name: str, partitions: int, replication_factor: int, config: Mapping[str, object]
) -> None:
    """Make a topic, and wait until clients may use it. TopicsFailed."""
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=str(value)) for key, value in config.items()],
    )
    with _brokers(host, port) as brokers:
        answer = brokers.controller.ask(
            ApiKey.CREATE_TOPICS, _CREATE_VERSION, topics=[wanted], timeout_ms=_TIMEOUT_MS
        )
        _check(answer.topics)
        asked = [MetadataRequestTopic(name=name)]
        _wait(
            lambda: all(topic.error_code == 0 for topic in _topics(brokers, asked)),
            f"not all brokers know {name}",
        )


def _wait(is_so: Callable[[], bool], otherwise: str) -> None:
    """The controller tells the brokers of a cluster one after the other, and clients only if they ask."""
    until_s = time.monotonic() + _TIMEOUT_S
    while not is_so():
        if time.monotonic() > until_s:
            raise TopicsFailed(f"{otherwise} after {_TIMEOUT_S:g} s")
        time.sleep(_AGAIN_S)


def _check(results: Iterable[Any]) -> None:
    failed = [
        f"{result.name}: {ErrorCode(result.error_code).name} {result.error_message or ''}".strip()
        for result in results
        if result.error_code
    ]
    if failed:
        raise TopicsFailed(f"cannot make {'; '.join(failed)}")


class _Brokers(NamedTuple):
    """Connections to those of a cluster."""

    all: list[Connection]
    controller: Connection
    """To the one that makes topics."""


def _topics(brokers: _Brokers, asked: list[MetadataRequestTopic] | None = None) -> list[Any]:
    """Those that were asked for, or all, as each of the brokers knows them."""
    return [topic for connection in brokers.all for topic in _metadata(connection, asked).topics]


def _metadata(connection: Connection, topics: list[MetadataRequestTopic] | None) -> Any:
    return connection.ask(ApiKey.METADATA, _METADATA_VERSION, topics=topics, allow_auto_topic_creation=False)


@contextmanager
def _brokers(host: str, port: int) -> Iterator[_Brokers]:
    with ExitStack() as opened:
        first = opened.enter_context(_connected(host, port))
        found = _metadata(first, [])
        connections = {
            broker.node_id: first
            if (broker.host, broker.port) == (host, port)
            else opened.enter_context(_connected(broker.host, broker.port))
            for broker in found.brokers
        }
        yield _Brokers(list(connections.values()), connections[found.controller_id])


@contextmanager
def _connected(host: str, port: int) -> Iterator[Connection]:
    with socket.create_connection((host, port), _TIMEOUT_S) as opened:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield Connection(opened, _CLIENT_ID)
