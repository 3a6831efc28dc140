"""Kafka's own tools for share groups print the same for our broker as for Apache Kafka 4.4."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.batches import batch
from tests.share_groups.side import ShareSide
from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server
from tests.tools.compare import lines_of, neutral_lines

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
VARIABLE = {
    r"\b[\w/+-]{22}\b|[\w/+-]{20,22}==?": "ID",
    r"127\.0\.0\.1:\d+": "ADDRESS",
    r"GroupCoordinator\(.*\)|\(id: \d+ .*?\)": "COORDINATOR",
    r"CreateTime:\d+": "TIME",
    r" +": " ",
}
LINES = """
kafka-share-groups @ --list
kafka-share-groups @ --list --state
kafka-share-groups @ --list --state stable,empty
kafka-share-groups @ --describe --group live
kafka-share-groups @ --describe --group live --verbose
kafka-share-groups @ --describe --group live --members
kafka-share-groups @ --describe --group live --members --verbose
kafka-share-groups @ --describe --group live --state
kafka-share-groups @ --describe --group live --state --verbose
kafka-share-groups @ --describe --group absent
kafka-share-groups @ --describe --all-groups --state
kafka-share-groups @ --reset-offsets --group live --topic alpha --to-earliest --dry-run
kafka-share-groups @ --delete --group live
kafka-share-groups @ --delete --group absent
kafka-share-groups @ --delete-offsets --group live --topic alpha
kafka-groups @ --list
kafka-groups @ --list --share
kafka-configs @ --alter --entity-type groups --entity-name queue --add-config share.auto.offset.reset=earliest
kafka-console-share-consumer @ --topic alpha --group queue --max-messages 30 --timeout-ms 60000 \
--property print.partition=true --property print.offset=true --property print.delivery=true
kafka-share-groups @ --describe --group queue --state
kafka-share-groups @ --describe --group queue --members
kafka-share-groups @ --describe --group queue
kafka-share-groups @ --reset-offsets --group queue --topic alpha --to-earliest --execute
kafka-share-groups @ --describe --group queue
kafka-console-share-consumer @ --topic alpha --group queue --max-messages 30 --timeout-ms 60000 --reject
kafka-share-groups @ --describe --group queue --verbose
kafka-share-groups @ --reset-offsets --group queue --all-topics --to-latest --execute
kafka-share-groups @ --reset-offsets --group queue --all-topics --execute \
--to-datetime 2020-01-01T00:00:00.000
kafka-share-groups @ --reset-offsets --group queue --topic missing --to-earliest --execute
kafka-share-groups @ --reset-offsets --group fresh --topic alpha --to-earliest --execute
kafka-share-groups @ --describe --all-groups
kafka-share-groups @ --delete-offsets --group queue --topic alpha
kafka-share-groups @ --delete-offsets --group queue --topic missing
kafka-share-groups @ --describe --group queue
kafka-share-groups @ --delete --group queue --group fresh
kafka-share-groups @ --list
"""


def _started(kind: str, directory: Path) -> Server:
    server: Server = (
        KafkaCompatBroker(directory, SETTINGS)
        if kind == "ours"
        else GenuineKafka(directory, SETTINGS, version=NEWEST_VERSION, mode="kraft")
    )
    server.start(180)
    return server


def _live_group(address: str) -> ShareSide:
    """Return a group with a member. Its topic has three partitions with 10 records each."""
    group = ShareSide(address, "live", "")
    group.create("alpha", 3)
    for partition in range(3):
        group.produce(("alpha", partition), batch(10))
    group.configure({"share.session.timeout.ms": "60000"})
    request = {"member_id": "member", "member_epoch": 0, "subscribed_topic_names": ["alpha"]}
    assert not group.heartbeat(request)["error_code"]
    wait_until(lambda: len(group.initialized()) == 3, 60, "the initialization of the states", 0.1)
    return group


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    found = JavaTools(NEWEST_VERSION)
    yield found
    found.close()


@pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
@pytest.mark.timeout(1200)
def test_kafkas_tools_for_share_groups_print_the_same_output_as_for_kafka(
    tools: JavaTools, tmp_path: Path
) -> None:
    printed: dict[str, list[list[str]]] = {}
    for kind in ("genuine", "ours"):
        running = _started(kind, tmp_path / kind)
        group = _live_group(running.address)
        printed[kind] = []
        for line in lines_of(LINES):
            group.heartbeat({"member_id": "member", "member_epoch": group.describe()["group_epoch"]})
            words = [word.replace("{broker}", running.address) for word in line.arguments]
            result = tools.run(line.tool, *words)
            output = neutral_lines(result.out + result.err, replaced=VARIABLE)
            printed[kind].append([str(line), str(result.code), *sorted(output)])
        group.close()
        running.stop()
    for ours, theirs in zip(printed["ours"], printed["genuine"], strict=True):
        assert ours == theirs
