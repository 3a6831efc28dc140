"""Log directories written by Apache Kafka 3.9.1, with the content that it served from them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from kafka_compat.errors import ErrorCode
from tests.conformance.wire import Connection
from tests.interop import dataset
from tests.interop.contents import read_contents, wait_until_led
from tests.interop.kafka_directories import ALL_TOPICS, FEW_INTERNAL_PARTITIONS, GenuineFolders, is_cleaned
from tests.restart.client import new_producer_id, produce
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, ZooKeeper


@pytest.fixture(scope="package")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """A ZooKeeper for all Apache Kafka brokers of these tests. Each broker uses a different root."""
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="package")
def genuine_folders(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> GenuineFolders:
    """Directories in which Apache Kafka wrote all kinds of data before and after a kill, and then stopped."""
    directory = tmp_path_factory.mktemp("genuine")
    settings = {
        "broker.id": "7",
        "zookeeper.connect": f"{zookeeper.address}/writer",
        "log.cleaner.backoff.ms": "200",
        "log.retention.check.interval.ms": "500",
        **FEW_INTERNAL_PARTITIONS,
    }
    server = GenuineKafka(directory / "broker", settings, zookeeper=zookeeper)
    server.start()
    try:
        dataset.write_everything(server.address)
        opened = dataset.write_transactions(server.address)
        producer = _write_sequence(server.address)
        dataset.create_topics(server.address, {"cleaned": (1, dataset.CLEANED)})
        dataset.write_superseded(server.address, "cleaned")
        wait_until(lambda: is_cleaned(server.log_dir, "cleaned"), 30, "completion of Kafka's log cleaner")
        server.kill()
        shutil.copytree(server.log_dir, directory / "killed")
        _forget_broker(zookeeper, "/writer", "7")
        server.start()
        contents = read_contents(
            server.address, dataset.partition_counts(ALL_TOPICS), dataset.GROUPS, dataset.TIMES
        )
        del opened
    finally:
        server.stop()
    return GenuineFolders(directory / "killed", server.log_dir, contents, 7, producer)


def _write_sequence(address: str) -> tuple[int, int]:
    dataset.create_topics(address, {"sequences": (1, {})})
    wait_until_led(address, {"sequences": 1})
    with Connection(address) as connection:
        producer = new_producer_id(connection)
        for number in range(10):
            written = produce(connection, "sequences", [b"%d" % number], producer=(*producer, number))
            assert written == (ErrorCode.NONE, number)
    return producer


def _forget_broker(zookeeper: ZooKeeper, root: str, broker_id: str) -> None:
    """Delete the ephemeral nodes of the killed broker's session instead of waiting for its timeout."""
    from kazoo.client import KazooClient

    client = KazooClient(zookeeper.address)
    client.start(20)
    for path in (f"{root}/brokers/ids/{broker_id}", f"{root}/controller"):
        client.delete(path)
    client.stop()
    client.close()
