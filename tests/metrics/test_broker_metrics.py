"""Request, error, time, topic and event loop metrics of a broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.api.api import TIMED_PER_S, Requests
from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.metrics.beans import quantile_of
from kafka_compat.metrics.loop_watch import LoopWatch
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.records import build_batch
from kafka_compat.testing import KafkaBroker, KafkaCluster
from tests.conformance.batches import BASE_SEQUENCE_AT, batch, changed, old_message, record
from tests.conformance.wire import Connection
from tests.metrics.groups import produce
from tests.metrics.scraping import Scrape
from tests.support.process import wait_until

TOPIC = "kafka_server_brokertopicmetrics_"
BASE_OFFSET_AT = 0
REQUESTS = "kafka_network_requestmetrics_"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        yield running


@pytest.fixture
def connection(broker: KafkaBroker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers) as made:
        yield made


def write(topic: str, records: bytes, **more: Any) -> dict[str, Any]:
    data = {"name": topic, "partition_data": [{"index": 0, "records": records}]}
    return {"acks": 1, "timeout_ms": 1000, "topic_data": [data]} | more


def read(topic: str, **more: Any) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    wanted = {"topic": topic, "partitions": [partition]}
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
    return limits | {"topics": [wanted]} | more


def test_bytes_and_records_in_and_out_are_counted_by_topic(
    broker: KafkaBroker, connection: Connection
) -> None:
    broker.create_topic("counted")
    data = batch(5)
    before = Scrape(broker.control.url)
    assert before.value(f"{TOPIC}messagesin_total", topic="counted") is None
    for _ in range(3):
        connection.ask(ApiKey.PRODUCE, 9, write("counted", data))
    connection.begin(ApiKey.PRODUCE, 9, write("counted", data, acks=0))
    for version in (4, 12):
        connection.ask(ApiKey.FETCH, version, read("counted"))
    seen = Scrape(broker.control.url)
    size = len(data)
    for name, value in (
        ("messagesin", 20),
        ("bytesin", 4 * size),
        ("totalproducerequests", 4),
        ("totalfetchrequests", 2),
        ("bytesout", 2 * 4 * size),
    ):
        assert seen.value(f"{TOPIC}{name}_total", topic="counted") == value, name
        grown = (seen.value(f"{TOPIC}{name}_total") or 0) - (before.value(f"{TOPIC}{name}_total") or 0)
        assert grown == value, name
    assert seen.value(f"{TOPIC}failedproducerequests_total", topic="counted") is None
    way = {"way": "copied"}
    copied = [scrape.value("kafka_compat_fetched_bytes_total", **way) or 0 for scrape in (before, seen)]
    assert copied[1] - copied[0] == 2 * 4 * size


def test_failed_requests_are_counted_by_topic(broker: KafkaBroker, connection: Connection) -> None:
    broker.create_topic("strict", config={"max.message.bytes": "200"})
    large = batch(20)
    connection.ask(ApiKey.PRODUCE, 9, write("strict", large))
    first = batch(1, producer_id=7, producer_epoch=0, base_sequence=0)
    connection.ask(ApiKey.PRODUCE, 9, write("strict", first))
    connection.ask(ApiKey.PRODUCE, 9, write("strict", changed(first, BASE_SEQUENCE_AT, "i", 5)))
    seen = Scrape(broker.control.url)
    assert seen.value(f"{TOPIC}bytesrejected_total", topic="strict") == len(large)
    assert seen.value(f"{TOPIC}failedproducerequests_total", topic="strict") == 1
    assert seen.value(f"{TOPIC}totalproducerequests_total", topic="strict") == 3
    assert seen.value(f"{TOPIC}messagesin_total", topic="strict") == 1
    for error in ("MESSAGE_TOO_LARGE", "OUT_OF_ORDER_SEQUENCE_NUMBER"):
        assert seen.value(f"{REQUESTS}errors_total", request="Produce", error=error) == 1


def test_invalid_records_are_counted_by_cause(broker: KafkaBroker, connection: Connection) -> None:
    broker.create_topic("wrong", config={"cleanup.policy": "compact"})
    before = Scrape(broker.control.url)
    keyless = build_batch([record(number, key=None) for number in range(3)])
    good = batch(1)
    damaged = good[:-1] + bytes([good[-1] ^ 1])
    for data in (keyless, damaged, changed(batch(2), BASE_OFFSET_AT, "q", 7)):
        connection.ask(ApiKey.PRODUCE, 9, write("wrong", data))
    seen = Scrape(broker.control.url)
    for name, count in (
        ("nokeycompactedtopicrecords", 3),
        ("invalidmessagecrcrecords", 1),
        ("invalidoffsetorsequencerecords", 1),
    ):
        key = f"{TOPIC}{name}_total"
        assert (seen.value(key) or 0) - (before.value(key) or 0) == count, name
        # As in Apache Kafka, these metrics exist only for all topics together.
        assert seen.value(key, topic="wrong") is None


def test_expired_fetches_are_counted(broker: KafkaBroker, connection: Connection) -> None:
    broker.create_topic("silent")
    name, of_consumers = "kafka_server_delayedfetchmetrics_expires_total", {"fetcherType": "consumer"}
    before = Scrape(broker.control.url).value(name, **of_consumers) or 0
    connection.ask(ApiKey.FETCH, 12, read("silent", max_wait_ms=10))
    assert Scrape(broker.control.url).value(name, **of_consumers) == before + 1


def test_message_conversions_for_old_clients_are_counted(broker: KafkaBroker, connection: Connection) -> None:
    broker.create_topic("old")
    connection.ask(ApiKey.PRODUCE, 2, write("old", old_message(1, b"a") + old_message(1, b"b", number=1)))
    connection.ask(ApiKey.FETCH, 3, read("old"))
    seen = Scrape(broker.control.url)
    assert seen.value(f"{TOPIC}producemessageconversions_total") == 2
    assert seen.value(f"{TOPIC}fetchmessageconversions_total") == 2


def test_counts_of_a_deleted_topic_stay_in_the_total(broker: KafkaBroker, connection: Connection) -> None:
    broker.create_topic("going")
    connection.ask(ApiKey.PRODUCE, 9, write("going", batch(4)))
    connection.ask(ApiKey.FETCH, 12, read("going"))
    before = Scrape(broker.control.url)
    connection.ask(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["going"], "timeout_ms": 10_000})
    after = Scrape(broker.control.url)
    for name in ("messagesin", "bytesin", "bytesout", "totalfetchrequests"):
        assert after.value(f"{TOPIC}{name}_total", topic="going") is None
        assert after.value(f"{TOPIC}{name}_total") == before.value(f"{TOPIC}{name}_total")


def test_requests_are_counted_by_error_code(broker: KafkaBroker, connection: Connection) -> None:
    asked = {"topics": [{"name": "nowhere"}, {"name": "not a name"}], "allow_auto_topic_creation": False}
    before = Scrape(broker.control.url)
    for _ in range(3):
        connection.ask(ApiKey.METADATA, 9, asked)

    def grown(name: str, **labels: str) -> float:
        return (seen.value(name, **labels) or 0) - (before.value(name, **labels) or 0)

    seen = Scrape(broker.control.url)
    assert grown(f"{REQUESTS}requests_total", request="Metadata", version="9") == 3
    for error in ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"):
        assert grown(f"{REQUESTS}errors_total", request="Metadata", error=error) == 3
    # Prometheus's text format has the counter's name unchanged; the parser appends _total.
    assert grown(f"{REQUESTS}totaltimems_count_total", request="Metadata") == 3


def test_the_wait_of_a_fetch_counts_as_remote_time(broker: KafkaBroker, connection: Connection) -> None:
    broker.create_topic("empty")
    connection.begin(ApiKey.FETCH, 12, read("empty", max_wait_ms=30_000))

    def parked() -> float | None:
        return Scrape(broker.control.url).value("kafka_compat_parked_requests")

    wait_until(lambda: parked() == 1, 20, "the waiting fetch")
    purgatory = {"delayedOperation": "Fetch"}
    seen = Scrape(broker.control.url)
    assert seen.value("kafka_server_delayedoperationpurgatory_purgatorysize", **purgatory) == 1
    time.sleep(0.3)  # the time in purgatory that is measured
    produce(broker.bootstrap_servers, "empty", [1_000])
    connection.finish(ApiKey.FETCH, 12)
    wait_until(lambda: parked() == 0, 20, "the end of the fetch")
    seen = Scrape(broker.control.url)
    for request in ("Fetch", "FetchConsumer"):
        labels = {"request": request, "quantile": "0.999"}
        remote_ms = seen.value(f"{REQUESTS}remotetimems", **labels) or 0
        assert remote_ms >= 300
        assert (seen.value(f"{REQUESTS}totaltimems", **labels) or 0) >= remote_ms
        assert (seen.value(f"{REQUESTS}localtimems", **labels) or 0) < remote_ms


def test_replication_bytes_are_counted() -> None:
    with KafkaCluster(3) as cluster:
        cluster.create_topic("copied")
        produce(cluster.bootstrap_servers, "copied", [1_000] * 50)

        def value(name: str) -> float:
            return Scrape(cluster.control.url).value(f"{TOPIC}{name}_total") or 0

        produced = Scrape(cluster.control.url).value(f"{TOPIC}bytesin_total", topic="copied") or 0
        assert produced > 0
        wait_until(lambda: value("replicationbytesin") >= 2 * produced, 30, "replication to both followers")
        assert value("replicationbytesout") == value("replicationbytesin")
        seen = Scrape(cluster.control.url)
        followers = [
            count
            for (name, labels), count in seen.samples.items()
            if name == f"{REQUESTS}requests_total" and ("request", "FetchFollower") in labels
        ]
        assert sum(followers) > 0
        assert seen.value("kafka_server_replicamanager_leadercount") == 1
        assert seen.value("kafka_server_replicamanager_partitioncount") == 3
        assert seen.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
        leader = cluster.control.partition("copied", 0)["leader"]
        follower = next(each for each in (1, 2, 3) if each != leader)
        cluster.control.shrink_isr("copied", 0, broker=follower)

        def shrinks() -> float | None:
            return Scrape(cluster.control.url).value("kafka_server_replicamanager_isrshrinks_total")

        wait_until(lambda: (shrinks() or 0) >= 1, 30, "the ISR change")


def settings(folder: Path, **more: str) -> BrokerConfig:
    base = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)}
    return BrokerConfig.from_properties(base | more)


async def test_a_broker_without_an_http_listener_does_not_measure_request_times(tmp_path: Path) -> None:
    broker: Broker = standalone_broker(settings(tmp_path))
    await broker.start()
    await broker.services.topics.ensure("t", 1, 1, {})
    address = "{}:{}".format(*broker.addresses["PLAINTEXT"])
    await asyncio.to_thread(_fetch_once, address)
    assert not broker.calls.counts.times
    await broker.stop()


def _fetch_once(address: str) -> None:
    with Connection(address) as connection:
        connection.ask(ApiKey.FETCH, 12, read("t"))


def test_only_a_sample_of_requests_is_timed() -> None:
    requests = Requests()
    timed = 0
    for second in range(5):
        for _ in range(10_000):
            requests.count += 1
            if requests.count == requests.next_timed:
                requests.timed()
                timed += second > 0
        requests.pace(1.0)
    assert 4 * TIMED_PER_S * 0.9 <= timed <= 4 * TIMED_PER_S * 1.1
    requests.pace(1.0)
    assert requests.every == 1
    assert requests.next_timed == requests.count + 1
    # Many requests arrive at once after a quiet second.
    before = requests.count
    timed = 0
    for _ in range(10_000):
        requests.count += 1
        if requests.count == requests.next_timed:
            requests.timed()
            timed += 1
    assert requests.count == before + 10_000
    assert TIMED_PER_S < timed < 2 * TIMED_PER_S


async def test_event_loop_stalls_are_counted_and_timed() -> None:
    watch = LoopWatch(lambda: [0], lambda second_s: None)
    watch.start()
    await asyncio.sleep(0.1)  # the watch begins
    before = watch.stalls
    # Blocks the event loop.
    time.sleep(0.3)  # noqa: ASYNC251
    await asyncio.sleep(0.1)  # the watch notices
    watch.stop()
    assert watch.stalls > before
    assert watch.stalled_s >= 0.2
    assert 0 <= watch.idle() <= 1


@pytest.mark.parametrize(
    ("values", "quantile", "expected"),
    [
        ([], 0.5, 0),
        ([3.0], 0.99, 3),
        ([1.0, 2.0, 3.0], 0.5, 2),
        ([1.0, 2.0], 0.5, 1.5),
        ([1.0, 9.0], 0.999, 9),
    ],
)
def test_quantiles_match_kafkas(values: list[float], quantile: float, expected: float) -> None:
    assert quantile_of(values, quantile) == expected
