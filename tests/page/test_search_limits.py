"""Limits of a search request: duration, memory, and delay of other requests. A campaign searches a million
small records, a daily run fewer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.page.browsing import WRITING, Asked
from tests.support import campaign
from tests.support.bystander import Bystander
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker
from tests.transactions.programs import create_topic

RECORDS = campaign.rounds(100_000, 1_000_000)
CODECS = ["none", "zstd"] if campaign.enabled() else ["zstd"]
PARTITIONS = 3
REQUEST_S_MAX = campaign.rounds(10, 3)
# Daily runs share the machine with other tests.
STALL_MS_MAX = campaign.rounds(250, 20)
MEMORY_MAX = 200 * 1024 * 1024


@pytest.fixture(scope="module", params=CODECS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[KafkaCompatBroker, Asked]]:
    url = f"http://127.0.0.1:{free_port()}"
    settings = {**WRITING, "kafka.compat.http.listener": url}
    broker = KafkaCompatBroker(tmp_path_factory.mktemp("many"), settings)
    broker.start()
    create_topic(broker.address, "many", PARTITIONS)
    client = Producer(
        {"bootstrap.servers": broker.address, "linger.ms": 20, "compression.type": request.param}
    )
    for number in range(RECORDS):
        client.produce("many", b"value %d of many" % number, b"%d" % (number % 100), number % PARTITIONS)
        if number % 50_000 == 0:
            client.flush(30)
    assert client.flush(60) == 0
    page = Asked(url)
    page.html("messages", name="many")
    yield broker, page
    broker.stop()


@pytest.mark.parametrize(
    ("what", "query"),
    [
        ("absent bytes", {"value": "needle"}),
        ("absent bytes, newest first", {"value": "needle", "order": "newest"}),
        ("a condition on every key", {"key_how": "null"}),
        ("a condition on every key, newest first", {"key_how": "null", "order": "newest"}),
        ("a value in one record of many similar ones", {"value": f"value {RECORDS - 1} of", "key": "9"}),
    ],
)
def test_searching_all_records_uses_bounded_time_and_memory(
    served: tuple[KafkaCompatBroker, Asked], what: str, query: dict[str, object]
) -> None:
    broker, page = served
    before = broker.resident_bytes()
    took_s, seen, cursor = [], 0, None
    found = 0
    with Bystander(broker.port, broker.pid, interval_ms=2) as bystander:
        while True:
            begun_s = time.perf_counter()
            asked = {"order": "oldest", **query, **({"cursor": cursor} if cursor else {})}
            told = page.data("messages", name="many", **asked)
            took_s.append(time.perf_counter() - begun_s)
            assert told["records_seen"] <= 350_000 and told["bytes_read"] <= 48 * 1024 * 1024
            seen, found, cursor = seen + told["records_seen"], found + len(told["records"]), told["cursor"]
            if cursor is None:
                break
    print(
        f"{what}: {seen:,} records in {len(took_s)} requests of {max(took_s):.2f} s at most; others waited "
        f"{bystander.worst_ms:.1f} ms at most, {bystander.worst_wall_ms:.1f} ms with the waiting for a "
        f"processor; memory grew by {(broker.resident_bytes() - before) / 1e6:.0f} MB"
    )
    # A backward search may read some records twice, because it restarts a window that is too large.
    assert RECORDS <= seen <= 1.1 * RECORDS and found == ("value" in query and "key" in query)
    assert max(took_s) < REQUEST_S_MAX
    assert bystander.worst_ms < STALL_MS_MAX
    assert broker.resident_bytes() - before < MEMORY_MAX
