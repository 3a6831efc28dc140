"""The nodes of a cluster in ZooKeeper, as far as `kafka-compat migrate check` needs them. Only reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, PartitionState, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import NodeObject
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode, NotAllowed

T = TypeVar("T")
MIGRATION: Final = "/migration"
"""The node in which Kafka keeps the state of a migration to KRaft."""
_AT_ONCE: Final = 500


class Nodes(NamedTuple):
    """The state of a cluster according to its nodes."""

    cluster_id: str | None
    brokers: Mapping[int, BrokerInfo]
    controller_id: int | None
    kraft_epoch: int
    """The epoch of the KRaft controller that has taken over this cluster, or -1."""
    has_migration: bool
    """Whether a migration to KRaft has begun at some time."""
    features: Mapping[str, int]
    """The finalized features in /feature."""
    own_levels: Mapping[str, int]
    """The feature levels of brokers of kafka-compat."""
    topics: Mapping[str, TopicState]
    states: Mapping[tuple[str, int], PartitionState]
    deletions: tuple[str, ...]
    legacy: tuple[str, ...]
    """The nodes with requests of old tools that the controller has not completed."""
    topic_configs: Mapping[str, Mapping[str, str]]
    broker_configs: Mapping[str, Mapping[str, str]]
    """The dynamic settings by broker ID, or `<default>`."""
    malformed: tuple[str, ...]
    denied: tuple[str, ...]
    """The nodes that this session may not read."""


class _Reader:
    def __init__(self, store: MetadataStore, chroot: str) -> None:
        self._store = store
        self._chroot = chroot
        self.malformed: list[str] = []
        self.denied: list[str] = []

    async def value(self, path: str, decode: Callable[[bytes | None, int], T]) -> T | None:
        """Return the decoded node, or None if it is missing, malformed or unreadable."""
        try:
            data, stat = await self._store.get(self._chroot + path)
            return decode(data, stat.version)
        except NoNode:
            return None
        except NotAllowed:
            self.denied.append(path)
        except MalformedNode as error:
            self.malformed.append(str(error))
        return None

    async def names(self, path: str) -> list[str]:
        try:
            return sorted(await self._store.children(self._chroot + path))
        except NoNode:
            return []
        except NotAllowed:
            self.denied.append(path)
            return []

    async def exists(self, path: str) -> bool:
        return await self._store.exists(self._chroot + path) is not None

    async def values(
        self, keys: Iterable[Any], path: Callable[[Any], str], decode: Callable[[Any, bytes | None, int], T]
    ) -> dict[Any, T]:
        """Return the decoded nodes by key, without those that `value` returns None for."""
        found: dict[Any, T] = {}
        keys = list(keys)
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first : first + _AT_ONCE]
            read = await asyncio.gather(*(self.value(path(key), partial(decode, key)) for key in some))
            found |= {key: value for key, value in zip(some, read, strict=True) if value is not None}
        return found


async def read_nodes(store: MetadataStore, chroot: str = "") -> Nodes:
    """Read the nodes under `chroot`, such as /kafka. Raises MetadataStoreError if the store fails."""
    reader = _Reader(store, chroot)
    brokers = await reader.values(
        [int(name) for name in await reader.names(znodes.BROKER_IDS) if name.isdecimal()],
        znodes.broker_path,
        lambda broker_id, data, _: znodes.decode_broker(broker_id, data),
    )
    topics = await reader.values(
        await reader.names(znodes.TOPICS),
        znodes.topic_path,
        lambda name, data, _: znodes.decode_topic(name, data),
    )
    states = await reader.values(
        [(topic.name, index) for topic in topics.values() for index in topic.replicas],
        lambda place: znodes.partition_state_path(place[0], place[1]),
        lambda place, data, version: znodes.decode_partition_state(place[0], place[1], data, version),
    )
    controller = await reader.value(znodes.CONTROLLER, lambda data, _: _controller(data))
    feature = await reader.value(znodes.FEATURE, lambda data, _: znodes.decode_feature(data))
    return Nodes(
        cluster_id=await reader.value(znodes.CLUSTER_ID, lambda data, _: znodes.decode_cluster_id(data)),
        brokers=brokers,
        controller_id=None if controller is None else controller[0],
        kraft_epoch=-1 if controller is None else controller[1],
        has_migration=await reader.exists(MIGRATION),
        features=feature[1] if feature is not None and feature[0] else {},
        own_levels=await reader.value(
            znodes.FEATURE_LEVELS, lambda data, _: znodes.decode_feature_levels(data)
        )
        or {},
        topics=topics,
        states=states,
        deletions=tuple(await reader.names(znodes.DELETE_TOPICS)),
        legacy=tuple(
            [
                path
                for path in (znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_REPLICA_ELECTION)
                if await reader.exists(path)
            ]
        ),
        topic_configs=await _configs(reader, "topics"),
        broker_configs=await _configs(reader, "brokers"),
        malformed=tuple(reader.malformed),
        denied=tuple(reader.denied),
    )


def _controller(data: bytes | None) -> tuple[int, int]:
    """Return the ID of the controller, and the epoch of the KRaft controller or -1."""
    values = NodeObject.parse(znodes.CONTROLLER, data)
    return values.integer("brokerid"), values.integer("kraftControllerEpoch", -1, low=-1)


async def _configs(reader: _Reader, kind: str) -> dict[str, dict[str, str]]:
    names = await reader.names(f"/config/{kind}")
    return await reader.values(
        names,
        lambda name: znodes.config_path(kind, name),
        lambda name, data, _: znodes.decode_config(znodes.config_path(kind, name), data),
    )
