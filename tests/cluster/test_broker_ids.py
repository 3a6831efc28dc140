"""Generated broker ids (broker.id.generation.enable): a broker without broker.id gets an unused id, and keeps
it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.broker import Broker, StartupError, cluster_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.metadata_store import MetadataStore


class Cluster:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tree = EmbeddedMetadataStore(str(directory / "tree.journal"))

    async def connect(self) -> MetadataStore:
        return self.tree.connect()

    async def start(self, folder: str, **settings: str) -> Broker:
        given = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(self.directory / folder),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        broker = cluster_broker(BrokerConfig.from_properties(given), self.connect)
        await broker.start()
        return broker


async def test_generated_broker_ids_are_kept_after_a_restart(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    one = await cluster.start("one")
    two = await cluster.start("two", broker_id="-1")
    try:
        assert (one.broker_id, two.broker_id) == (1001, 1002)
        await two.stop(controlled=False)
        two = await cluster.start("two", broker_id="-1")
        assert two.broker_id == 1002
        assert two.membership.service.controller_id == 1001
    finally:
        await two.stop(controlled=False)
        await one.stop(controlled=False)
        await cluster.tree.close()


async def test_broker_id_is_required_if_id_generation_is_disabled(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with pytest.raises(StartupError, match=r"broker\.id is missing"):
        await cluster.start("one", broker_id_generation_enable="false")
    await cluster.tree.close()
