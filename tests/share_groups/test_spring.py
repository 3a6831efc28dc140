"""Spring Kafka's share container sees the same deliveries on our broker as on Apache Kafka 4.4."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.share_groups.load import lag
from tests.share_groups.share_members import configure_group, create_topic, produce
from tests.support import campaign, kafka_jars
from tests.support.java import QUICK_START
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

SOURCE = Path(__file__).with_name("SpringMembers.java")
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
PARTITIONS = 3
RECORDS = 500
LIMIT = 3
ONCE = [(1, "returned")]
ACCEPTED = [(1, "accept")]

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="downloads Spring Kafka: with --campaign")

Delivery = tuple[int, str]
"""The delivery count, and what the listener did."""


def deliver(address: str, directory: Path, mode: str) -> dict[int, list[Delivery]]:
    """Let a container acknowledge all records. Return the deliveries of each."""
    topic = group = f"spring-{mode.lower()}"
    create_topic(address, topic, PARTITIONS)
    limits = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(LIMIT)}
    configure_group(address, group, limits)
    class_path = f"{kafka_jars.spring()}/*:{directory}"
    subprocess.run(["javac", "-cp", class_path, "-d", str(directory), str(SOURCE)], check=True)
    java = ["java", "-Xmx256m", *QUICK_START, "-cp", class_path]
    with open(directory / "spring.log", "ab") as log:
        child = subprocess.Popen(
            [*java, "SpringMembers", address, topic, group, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        produce(address, topic, RECORDS, PARTITIONS)
        wait_until(lambda: lag(address, group, PARTITIONS) == 0, 300, "the end of all deliveries", 0.2)
        output, _ = child.communicate("", timeout=60)
    finally:
        child.kill()
        child.wait()
    found: dict[int, list[Delivery]] = defaultdict(list)
    for line in output.splitlines():
        _, _, number, count, what = line.split()
        found[int(number)].append((int(count), what))
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["ours", "genuine"])
def test_listeners_of_a_share_container_accept_release_and_reject_records(kind: str, tmp_path: Path) -> None:
    server: Server = (
        KafkaCompatBroker(tmp_path, SETTINGS)
        if kind == "ours"
        else GenuineKafka(tmp_path, SETTINGS, version=NEWEST_VERSION, mode="kraft")
    )
    server.start(180)
    try:
        manual = deliver(server.address, tmp_path, "MANUAL")
        implicit = deliver(server.address, tmp_path, "EXPLICIT")
    finally:
        server.stop()
    expected = {
        3: [(count, "release") for count in range(1, LIMIT + 1)],
        5: [(1, "release"), (2, "accept")],
        7: [(1, "reject")],
    }
    assert manual == {number: expected.get(number % 10, ACCEPTED) for number in range(RECORDS)}
    # The container acknowledges: it rejects a record whose listener fails.
    failed = [(1, "failed")]
    assert implicit == {number: failed if number % 10 == 7 else ONCE for number in range(RECORDS)}
