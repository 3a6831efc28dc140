"""The members of a group move to the consumer protocol and back one after another, under load. No record is
read again after it was committed, and none is missed, as on Apache Kafka 4.4. The campaign compares the
pauses of the partitions.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from tests.groups.consumer.migrating_group import (
    CLASSIC,
    CONSUMER,
    SETTINGS,
    History,
    create_topic,
    migrate_and_return,
)
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, StartBroker

PAIRS = 4
INTERVAL = "group.consumer.assignment.interval.ms"

membership = pytest.mark.parametrize("is_static", [False, True], ids=["dynamic", "static"])


@membership
@pytest.mark.skipif(campaign.enabled(), reason="the campaign runs this with ten members")
def test_a_group_moves_to_the_consumer_protocol_and_back_without_losing_its_position(
    start_broker: StartBroker, tmp_path: Path, is_static: bool
) -> None:
    broker = start_broker({**SETTINGS, INTERVAL: "0"})
    create_topic(broker.address, 8)
    history = migrate_and_return(
        broker.address, tmp_path / "group", members=4, partitions=8, is_static=is_static
    )
    print(history.summary())
    assert not history.findings


@membership
@pytest.mark.skipif(not campaign.enabled(), reason="takes minutes: with --campaign")
@pytest.mark.parametrize("interval_ms", [0, 1000])
@pytest.mark.timeout(1800)
def test_partitions_of_a_migrating_group_pause_no_longer_than_on_apache_kafka(
    tmp_path: Path, is_static: bool, interval_ms: int
) -> None:
    """In every other pair, Apache Kafka is first. With the default interval of 1000 ms, a pause mostly
    consists of the rest of this interval. The pauses of both brokers then differ by less than they vary, so
    they are only printed.
    """
    settings = {**SETTINGS, INTERVAL: str(interval_ms)}
    ours: list[History] = []
    theirs: list[History] = []
    for number in range(PAIRS):
        directory = tmp_path / str(number)
        sides = [
            (ours, KafkaCompatBroker(directory / "ours", settings)),
            (
                theirs,
                GenuineKafka(directory / "genuine", settings, version=NEWEST_VERSION, mode="kraft"),
            ),
        ]
        for histories, server in sides if number % 2 == 0 else reversed(sides):
            histories.append(_moved(server, directory / f"{server.name}-group", is_static))
            print(f"{server.name}: {histories[-1].summary()}", flush=True)
            assert not histories[-1].findings
    for protocol in (CONSUMER, CLASSIC):
        mine, other = (_pauses(histories, protocol) for histories in (ours, theirs))
        print(
            f"to {protocol}, interval {interval_ms} ms, ours/Apache Kafka: "
            f"median {median(mine):.0f}/{median(other):.0f} ms ({median(mine) / median(other):.2f}), "
            f"worst {max(mine):.0f}/{max(other):.0f} ms ({max(mine) / max(other):.2f})"
        )
        if interval_ms == 0:
            assert median(mine) <= median(other)


def _moved(server: Server, directory: Path, is_static: bool) -> History:
    server.start()
    try:
        create_topic(server.address, 20)
        return migrate_and_return(server.address, directory, members=10, partitions=20, is_static=is_static)
    finally:
        server.stop()


def _pauses(histories: list[History], protocol: str) -> list[float]:
    return [
        pause_ms
        for history in histories
        for phase in history.phases
        if phase.name == protocol
        for pause_ms in history.pauses_ms(phase).values()
    ]


def _events(text: str) -> History:
    lines = [f"{time_us} {event.strip()}" for time_us, event in enumerate(text.split(";"))]
    return History.of(lines)


_STORED = "stored 0 0 0; stored 0 1 1; stored 0 2 2"


def test_a_history_accepts_records_that_are_read_again_before_their_commit() -> None:
    history = _events(f"{_STORED}; read 1 0 0:0 1:1; rejected 1 X; read 2 0 0:0 1:1 2:2; committed 2 0:3")
    assert not history.findings
    assert history.read_again == 2


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("read 1 0 0:0 1:1; committed 1 0:2; read 2 0 1:1 2:2", "0-1 was read again by member 2"),
        (
            "read 1 0 0:0; committed 1 0:1; read 2 0 2:2; committed 2 0:3",
            "0-1 was missed before a commit of 3",
        ),
        ("read 1 0 0:0; committed 1 0:1", "0-2 was missed"),
        ("read 1 0 0:0 1:1 2:2; committed 1 0:3; committed 2 0:2", "went back from 3 to 2"),
        ("read 1 0 0:0 1:2 2:2", "0-1 is not record 2"),
        ("read 1 0 0:0 1:1 2:2; failed member-1 X", "failed member-1 X"),
    ],
)
def test_a_history_reports_inconsistent_reads_and_commits(text: str, finding: str) -> None:
    findings = _events(f"{_STORED}; {text}").findings
    assert any(finding in found for found in findings), findings


def test_a_history_measures_the_longest_pause_that_begins_in_a_phase() -> None:
    reads = ["0 read 1 0 0:0", "1000 mark a", "3000 read 1 0 1:1", "8000 read 1 0 2:2", "8500 mark b"]
    history = History.of([*reads, "9000 read 1 0 3:3", "9000 stored 0 3 3"])
    assert history.pauses_ms(history.phases[0]) == {0: 5.0}
