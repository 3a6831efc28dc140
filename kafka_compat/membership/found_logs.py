"""Logs that a broker finds in its folders and its tree does not know: what they are the partitions of."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.nodes.cluster_state import TopicState
from kafka_compat.metadata import topic_rules
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.metadata.topic_nodes import FIRST_EPOCH, new_topic_id
from kafka_compat.storage.directories.log_dirs import LogDirs

log = logging.getLogger(__name__)


def set_strays_aside(log_dirs: LogDirs, topics: Iterable[TopicMetadata], left_alone: Collection[str]) -> None:
    """As genuine Kafka with folders that it finds on its disks and not in its cluster: of topics deleted
    while the disk was away, or copied from elsewhere. Nothing in them is lost. The folders of topics in
    `left_alone`, whose nodes cannot be read, wait until those are mended.
    """
    known = {(topic.name, partition.partition) for topic in topics for partition in topic.partitions}
    for key, held in list(log_dirs.logs.items()):
        if key not in known and key[0] not in left_alone:
            offsets = f"{held.log_start_offset}..{held.log_end_offset}"
            path = log_dirs.set_aside(*key)
            log.warning(
                "%s-%d is a partition of no topic: its folder, with the offsets %s, is now %s. To have "
                "it back, create the topic, stop the broker, and rename the folder",
                *key,
                offsets,
                path,
            )


class Adopted:
    """A topic as its folders tell it."""

    def __init__(
        self,
        config: BrokerConfig,
        log_dirs: LogDirs,
        topic: str,
        partitions: Mapping[int, UUID | None],
        local_id: int,
    ) -> None:
        """`partitions`: the topic ids in the folders."""
        topic_id = next((item for item in partitions.values() if item), None) or new_topic_id()
        replicas: dict[int, tuple[int, ...]] = {index: (local_id,) for index in range(max(partitions) + 1)}
        self.state = TopicState(topic, topic_id, replicas)
        self.epochs = {
            index: max(log_dirs.logs[topic, index].leader_epochs.latest_epoch, FIRST_EPOCH)
            for index in partitions
        }
        self.overrides = topic_rules.internal_configs(config, topic)
        if not self.overrides and any(name == topic for name, _ in log_dirs.clean_offsets):
            # Retention would delete what compaction had kept.
            self.overrides = {"cleanup.policy": "compact"}
