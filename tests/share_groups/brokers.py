"""Our brokers with the feature of share groups."""

from __future__ import annotations

from typing import Self
from uuid import UUID
from zlib import crc32

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import TopicState
from kafka_compat.tools import registry
from tests.faults.cluster import BROKER_IDS
from tests.groups.consumer.brokers import ZooKeeperBrokers

SHARE_LEVEL = ("--feature", "share.version=2")


class ShareBrokers(ZooKeeperBrokers):
    """Three brokers on ZooKeeper. One broker leads all partitions of topics with the same prefix, because a
    share session is with one broker.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            assert (
                registry.run("features", ["--bootstrap-server", self.address, "upgrade", *SHARE_LEVEL]) == 0
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def leader_of(self, name: str) -> int:
        """Return the broker of a topic, which depends on its name without the last letter."""
        return BROKER_IDS[crc32(name[:-1].encode()) % len(BROKER_IDS)]

    def create(self, name: str, topic_id: UUID, size: int) -> None:
        leader = self.leader_of(name)
        state = TopicState(name, topic_id, dict.fromkeys(range(size), (leader,)))
        transaction = self._nodes.transaction()
        transaction.create(znodes.config_path("topics", name), znodes.encode_config({}))
        transaction.create(znodes.topic_path(name), znodes.encode_topic(state))
        results = transaction.commit()
        assert all(isinstance(each, str) for each in results), results
