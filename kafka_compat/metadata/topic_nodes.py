"""Nodes in the metadata store for new topics, and the resulting metadata values. No I/O."""

import base64
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import PartitionState, TopicState
from kafka_compat.coordination.store.metadata_store import Create, Operation, SetData
from kafka_compat.metadata.cache import PartitionMetadata
from kafka_compat.storage.directories.checkpoints import decode_topic_id

if TYPE_CHECKING:
    from uuid import UUID

FIRST_EPOCH = 0
FIRST_CONTROLLER_EPOCH = 1


def creation(state: TopicState, configs: Mapping[str, str], has_config: bool) -> list[Operation]:
    """Return the operations of the transaction that creates a topic. `has_config` is true if the store
    contains settings from an earlier topic with the same name.
    """
    config_path = znodes.config_path("topics", state.name)
    config = znodes.encode_config(configs)
    return [
        SetData(config_path, config) if has_config else Create(config_path, config),
        Create(znodes.topic_path(state.name), znodes.encode_topic(state)),
        Create(znodes.partitions_path(state.name)),
    ]


def partition_nodes(
    topic: str, replicas: Mapping[int, Sequence[int]], epochs: Mapping[int, int]
) -> list[Operation]:
    """Return the operations that create partitions, each led by its first replica, with all replicas in sync.

    `epochs` contains the leader epochs of partitions whose first epoch is not FIRST_EPOCH.
    """
    operations: list[Operation] = []
    for index, brokers in replicas.items():
        initial = PartitionState(
            brokers[0], epochs.get(index, FIRST_EPOCH), tuple(brokers), FIRST_CONTROLLER_EPOCH
        )
        operations.append(Create(znodes.partition_path(topic, index)))
        operations.append(
            Create(znodes.partition_state_path(topic, index), znodes.encode_partition_state(initial))
        )
    return operations


def describe_partitions(replicas: Mapping[int, tuple[int, ...]]) -> tuple[PartitionMetadata, ...]:
    """Return metadata of the partitions that the operations of `partition_nodes` create, sorted by number."""
    return tuple(
        PartitionMetadata(index, brokers[0], FIRST_EPOCH, brokers, brokers)
        for index, brokers in sorted(replicas.items())
    )


def new_id() -> str:
    """Return a random ID for a topic, cluster or group member as text: a version 4 UUID in URL-safe base64,
    as in Kafka. It never begins with a dash, which tools would parse as an option.
    """
    while True:
        data = bytearray(os.urandom(16))
        data[6], data[8] = data[6] & 0x0F | 0x40, data[8] & 0x3F | 0x80
        text = base64.urlsafe_b64encode(data).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def new_topic_id() -> "UUID":
    """Return a random topic ID."""
    return decode_topic_id(new_id())
