"""Delivery counts after the broker was killed and after a clean stop: acquired records are not stored, but
the broker releases them when it stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.wire import Plain
from tests.share_groups.side import ShareSide, kafka_id
from tests.share_groups.wire_histories import WIRE_SETTINGS
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

PARTITION = ("a", 0)


@pytest.fixture(params=campaign.sides())
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    running: Server = (
        KafkaCompatBroker(tmp_path, WIRE_SETTINGS)
        if request.param == "ours"
        else GenuineKafka(tmp_path, WIRE_SETTINGS, version=NEWEST_VERSION, mode="kraft")
    )
    running.start(180)
    yield running
    running.stop()


def _fetch(side: ShareSide, number: int, epoch: int, batches: list[Plain], **more: object) -> Plain:
    """Fetch as the member with this number on a connection of its own, and return the partition."""
    request = {
        "group_id": side.group_id,
        "member_id": kafka_id(UUID(int=number)),
        "share_session_epoch": epoch,
        "max_wait_ms": 5_000,
        "min_bytes": 1,
        "max_records": 100,
        "batch_size": 100,
        "topics": [
            {
                "topic_id": side.ids[PARTITION[0]],
                "partitions": [{"partition_index": PARTITION[1], "acknowledgement_batches": batches}],
            }
        ],
        **more,
    }
    answer = side.shown_fetch(side.to_leader().ask(ApiKey.SHARE_FETCH, 2, request))
    assert not answer["error"], answer
    found: Plain = answer["responses"][0] if answer["responses"] else {"acquired": [], "error": 0}
    return found


def _acquired(side: ShareSide, number: int) -> list[tuple[int, int, int]]:
    """Return what a new session acquires, as soon as it acquires something."""
    found: Plain = {}

    def has_acquired() -> bool:
        found.update(_fetch(side, number, 0, []))
        return bool(found["acquired"])

    wait_until(has_acquired, 120, "acquired records", 0.1)
    ranges: list[tuple[int, int, int]] = found["acquired"]
    return ranges


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_records_in_flight_are_delivered_again_with_the_next_count_only_after_a_clean_stop(
    server: Server, is_killed: bool
) -> None:
    side = ShareSide(server.address, "restarted", "restarted-")
    side.create(PARTITION[0], 1)
    side.configure({"share.auto.offset.reset": "earliest"})
    joined = side.heartbeat({"member_id": "m", "member_epoch": 0, "subscribed_topic_names": [PARTITION[0]]})
    assert not joined["error_code"]
    wait_until(lambda: side.initialized() == {PARTITION}, 120, "the initialization of the state", 0.1)
    side.produce(PARTITION, batch(10))
    assert _acquired(side, 1) == [(0, 9, 1)]
    acks = [
        {"first_offset": 0, "last_offset": 2, "acknowledge_types": [1]},
        {"first_offset": 3, "last_offset": 4, "acknowledge_types": [2]},
        {"first_offset": 5, "last_offset": 5, "acknowledge_types": [3]},
    ]
    # It acquires the released records again.
    assert _fetch(side, 1, 1, acks)["acquired"] == [(3, 4, 2)]
    side.produce(PARTITION, batch(2))
    assert _fetch(side, 1, 2, [])["acquired"] == [(10, 11, 1)]
    ids = dict(side.ids)
    side.close()
    server.restart(kill=is_killed)
    side = ShareSide(server.address, "restarted", "restarted-")
    side.know(ids)
    try:
        expected = [(3, 4, 2), (6, 11, 1)] if is_killed else [(3, 4, 3), (6, 11, 2)]
        assert _acquired(side, 2) == expected
    finally:
        side.close()
