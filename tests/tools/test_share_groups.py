"""kafka-share-groups and kafka-console-share-consumer. On one broker, this project's commands print the same
output as Kafka's.
"""

from __future__ import annotations

import shutil
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.share_groups.side import ShareSide
from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker
from tests.tools.compare import Comparison, table

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
HEARTBEAT_S = 5.0
Broker = KafkaCompatBroker | GenuineKafka
VARIABLE = {
    # Messages of the parts of Kafka's consumer.
    r"(WARN|ERROR) \[ShareConsumer ": None,
    r"^\d\.\d\.\d$": "VERSION",
    # Records in internal topics name the groups of both kinds of commands.
    "xhers|xmine": "MINE",
    r"\.? \(org\.apache\.kafka\.tools\.(GroupOffsetsResetter|OffsetsUtils)\)": "",
    r" +": " ",
}


class Groups:
    """The share groups `live`, which has a member, and `empty`; and the consumer group `consumers`."""

    def __init__(self, address: str) -> None:
        admin = AdminClient({"bootstrap.servers": address})
        topics = [NewTopic("alpha", 3, 1), NewTopic("numbers", 1, 1)]
        for future in admin.create_topics(topics).values():
            future.result(60)
        producer = Producer({"bootstrap.servers": address})
        for number in range(30):
            producer.produce("alpha", f"value {number}", f"key {number}", number % 3, headers={"h": "v"})
        for value in (struct.pack(">i", 7), b"bad", struct.pack(">i", 8), struct.pack(">i", 9)):
            producer.produce("numbers", value)
        assert producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": address, "group.id": "consumers"})
        consumer.commit(offsets=[TopicPartition("alpha", 0, 4)], asynchronous=False)
        consumer.close()
        self._live = _joined(address, "live")
        empty = _joined(address, "empty")
        empty.heartbeat({"member_id": "member", "member_epoch": -1})
        empty.close()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._stay, daemon=True)
        self._thread.start()

    def _stay(self) -> None:
        while not self._ended.wait(HEARTBEAT_S):
            self._live.heartbeat(
                {"member_id": "member", "member_epoch": self._live.describe()["group_epoch"]}
            )

    def close(self) -> None:
        self._ended.set()
        self._thread.join(60)
        self._live.close()


def _joined(address: str, group_id: str) -> ShareSide:
    group = ShareSide(address, group_id, "")
    request = {"member_id": "member", "member_epoch": 0, "subscribed_topic_names": ["alpha"]}
    assert not group.heartbeat(request)["error_code"]
    wait_until(lambda: len(group.initialized()) == 3, 60, "the initialization of the states", 0.1)
    group.heartbeat({"member_id": "member", "member_epoch": group.describe()["group_epoch"]})
    return group


def _started(kind: str, directory: Path) -> Broker:
    server = (
        KafkaCompatBroker(directory, SETTINGS)
        if kind == "ours"
        else GenuineKafka(directory, SETTINGS, version=NEWEST_VERSION, mode="kraft")
    )
    server.start(180)
    return server


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    found = JavaTools(NEWEST_VERSION)
    yield found
    found.close()


@pytest.fixture(scope="module", params=campaign.sides())
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    running = _started(request.param, tmp_path_factory.mktemp(request.param))
    groups = Groups(running.address)
    yield running
    groups.close()
    running.stop()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("files")
    (found / "client.properties").write_text("client.id=someone\n")
    (found / "offsets.csv").write_text("alpha,0,3\nalpha,1,99\n")
    return str(found)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["share-groups", "console-share-consumer"][: campaign.rounds(1, 2)])
def test_commands_print_the_same_output_as_kafka(
    server: Broker, tools: JavaTools, files: str, name: str
) -> None:
    found = Comparison(tools, server.address, files).differences(table(name), VARIABLE)
    assert not found, "\n".join(found)


def test_records_of_share_groups_are_dumped_as_by_kafka(
    server: Broker, tools: JavaTools, tmp_path: Path
) -> None:
    """Copies are compared, because members write to the logs."""
    for name, topic in (("offsets", "__consumer_offsets"), ("states", "__share_group_state")):
        (tmp_path / name).mkdir()
        file = f"{0:020}.log"
        shutil.copy(server.log_dir / f"{topic}-0" / file, tmp_path / name / file)
    found = Comparison(tools, server.address, str(tmp_path)).differences(table("dump-share-groups"), VARIABLE)
    assert not found, "\n".join(found)
