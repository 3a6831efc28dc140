"""Java's share consumers (kafka-clients 4.4; in campaigns also 4.2 and 4.3) see the same deliveries on our
broker as on Apache Kafka: each record is accepted or rejected once, or archived at the delivery count limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.share_groups.share_members import (
    EXPLICIT,
    IMPLICIT,
    Deliveries,
    ShareMembers,
    configure_group,
    create_topic,
    produce,
)
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION, SHARE_CLIENT_VERSION, TOOLS_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
PARTITIONS = 3
RECORDS = 500
LIMIT = 3
VERSIONS = (SHARE_CLIENT_VERSION, TOOLS_VERSION, NEWEST_VERSION) if campaign.enabled() else (NEWEST_VERSION,)


@pytest.fixture(scope="module", params=campaign.sides())
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("broker")
    running: Server = (
        KafkaCompatBroker(directory, SETTINGS)
        if request.param == "ours"
        else GenuineKafka(directory, SETTINGS, version=NEWEST_VERSION, mode="kraft")
    )
    running.start(180)
    yield running
    running.stop()


def deliver(
    server: Server, directory: Path, version: str, mode: str, acquire_mode: str = "batch_optimized"
) -> Deliveries:
    """Write records, and let two members acknowledge them. Return when all are finished."""
    name = f"{version}-{mode}-{acquire_mode}"
    deliveries = Deliveries(LIMIT)
    create_topic(server.address, name, PARTITIONS)
    configure_group(
        server.address,
        name,
        {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(LIMIT)},
    )
    with ShareMembers(
        server.address,
        name,
        name,
        directory / "members.log",
        deliveries,
        mode=mode,
        acquire_mode=acquire_mode,
        max_poll_records=50,
        version=version,
    ) as members:
        produce(server.address, name, RECORDS, PARTITIONS)
        wanted = set(range(RECORDS))

        def is_finished() -> bool:
            if mode == IMPLICIT:
                # The last records are acknowledged when the members leave.
                with deliveries.lock:
                    return {*deliveries.numbers.values()} == wanted
            return deliveries.finished() == wanted

        wait_until(is_finished, 300, "the acknowledgement of all records", 0.2)
        members.stop()
        assert members.has_ended
    return deliveries


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acquire_mode", ["batch_optimized", "record_limit"])
def test_records_are_delivered_until_they_are_accepted_rejected_or_at_the_limit(
    server: Server, tmp_path: Path, acquire_mode: str, version: str
) -> None:
    found = deliver(server, tmp_path, version, EXPLICIT, acquire_mode)
    assert not found.findings
    assert not found.failures
    assert not found.refused
    assert {found.numbers[each] % 10 for each in found.accepted} == {0, 1, 2, 4, 5, 6, 8, 9}
    assert {found.numbers[each] % 10 for each in found.rejected} == {7}
    assert {found.numbers[each] % 10 for each in found.released} == {3}
    expected = {3: [1, 2, 3], 5: [1, 2]}
    for record, counts in found.counts.items():
        last_digit = found.numbers[record] % 10
        assert counts == expected.get(last_digit, [1]), (record, last_digit, counts)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_accepted_once_by_members_that_acknowledge_implicitly(
    server: Server, tmp_path: Path, version: str
) -> None:
    found = deliver(server, tmp_path, version, IMPLICIT)
    assert not found.findings
    assert not found.failures
    assert not found.refused
    assert len(found.accepted) == RECORDS
    assert set(found.accepted.values()) == {1}
    assert all(counts == [1] for counts in found.counts.values())
