"""Metrics of followers and of the controller in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kafka_compat.cluster.controller_times import ControllerTimes, TimedQueue
from kafka_compat.coordination.controller.events import RebalanceTick, UncleanConfigChanged
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.testing import KafkaCluster
from tests.conformance.wire import Connection
from tests.metrics.groups import produce
from tests.metrics.scraping import Scrape
from tests.support.process import wait_until

FETCHERS = "kafka_server_replicafetchermanager_"
STATS = "kafka_controller_controllerstats_"
REPLICA = {"clientId": "Replica"}
FAST = "100000000"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    # A fetch returns one batch at a time.
    with KafkaCluster(3, {"replica.fetch.max.bytes": 100}) as running:
        yield running


def set_config(cluster: KafkaCluster, kind: ResourceType, name: str, **settings: str) -> None:
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    resource = ConfigResource(kind, name, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def test_a_lagging_follower_is_counted(cluster: KafkaCluster) -> None:
    url = cluster.control.url
    cluster.create_topic("followed")
    known = cluster.control.partition("followed", 0)
    leader = known["leader"]
    follower = next(each for each in known["replicas"] if each != leader)

    def lag() -> float:
        return Scrape(url).value(f"{FETCHERS}maxlag", **REPLICA) or 0

    cluster.control.shrink_isr("followed", 0, broker=follower)
    seen = Scrape(url)
    # The follower does not fetch this partition.
    assert seen.value(f"{FETCHERS}failedpartitionscount", **REPLICA) == 1
    each_alone = {"batch.num.messages": "1"}
    produce(cluster.bootstrap_servers, "followed", [1_000] * 60, partition=0, keys=None, **each_alone)
    set_config(
        cluster, ResourceType.TOPIC, "followed", follower_replication_throttled_replicas=f"0:{follower}"
    )
    set_config(cluster, ResourceType.BROKER, str(follower), follower_replication_throttled_rate="1")
    assert lag() == 0
    with ThreadPoolExecutor() as pool:
        restored = pool.submit(cluster.control.restore_isr, "followed", 0, broker=follower)
        wait_until(lambda: lag() > 0, 20, "a lagging follower")
        seen = Scrape(url)
        at = {"clientId": f"ReplicaFetcherThread-0-{leader}", "topic": "followed", "partition": "0"}
        told = seen.value("kafka_server_fetcherlagmetrics_consumerlag", **at)
        assert told == seen.value(f"{FETCHERS}maxlag", **REPLICA)
        assert told is not None and 1 <= told < 60
        set_config(cluster, ResourceType.BROKER, str(follower), follower_replication_throttled_rate=FAST)
        restored.result(20)
    wait_until(lambda: lag() == 0, 20, "a follower without lag")
    assert Scrape(url).value(f"{FETCHERS}failedpartitionscount", **REPLICA) == 0


def test_follower_fetches_are_counted(cluster: KafkaCluster) -> None:
    url = cluster.control.url
    cluster.create_topic("asked")
    leader = cluster.control.partition("asked", 0)["leader"]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    known = admin.list_topics(timeout=20).brokers[leader]
    address = f"{known.host}:{known.port}"
    of_fetcher = {"clientId": f"ReplicaFetcherThread-0-{leader}", "broker": address}

    def value(name: str) -> float:
        return Scrape(url).value(f"kafka_server_fetcherstats_{name}_total", **of_fetcher) or 0

    before = value("bytes")
    produce(cluster.bootstrap_servers, "asked", [1_000] * 5)
    written = Scrape(url).value("kafka_server_brokertopicmetrics_bytesin_total", topic="asked") or 0
    assert written > 0
    wait_until(lambda: value("bytes") - before >= 2 * written, 20, "replication to both followers")
    assert value("requests") > 0

    def rate() -> float:
        return Scrape(url).value(f"{FETCHERS}minfetchrate", **REPLICA) or 0

    # The fetch rate is updated once per second.
    wait_until(lambda: rate() > 0, 20, "a fetch rate")
    seen = Scrape(url)
    assert seen.value(f"{FETCHERS}deadthreadcount", **REPLICA) == 0


def test_controller_events_are_counted(cluster: KafkaCluster) -> None:
    url = cluster.control.url

    def count(what: str) -> float:
        return Scrape(url).value(f"{STATS}{what}rateandtimems_count_total") or 0

    before = {what: count(what) for what in ("topicchange", "topicdeletion", "isrchange")}
    cluster.create_topic("controlled")
    wait_until(lambda: count("topicchange") > before["topicchange"], 20, "the topic change")
    known = cluster.control.partition("controlled", 0)
    follower = next(each for each in known["replicas"] if each != known["leader"])
    cluster.control.shrink_isr("controlled", 0, broker=follower)
    wait_until(lambda: count("isrchange") > before["isrchange"], 20, "the ISR change")
    cluster.control.restore_isr("controlled", 0, broker=follower)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.delete_topics(["controlled"]).values():
        future.result(30)
    wait_until(lambda: count("topicdeletion") > before["topicdeletion"], 20, "the topic deletion")
    seen = Scrape(url)
    took_ms = seen.value(f"{STATS}topicchangerateandtimems", quantile="0.99")
    assert took_ms is not None and took_ms > 0
    assert count("controllerchange") == 1
    assert (seen.value("kafka_controller_controllereventmanager_eventqueuetimems_count_total") or 0) > 0
    assert seen.value("kafka_controller_controllereventmanager_eventqueuesize") is not None
    for broker in (1, 2, 3):
        at = {"broker_id": str(broker)}
        channels = "kafka_controller_controllerchannelmanager_"
        assert seen.value(f"{channels}queuesize", **at) is not None
        assert (seen.value(f"{channels}requestrateandqueuetimems_count_total", **at) or 0) > 0
    metadata = admin.list_topics(timeout=20)
    assert seen.value("kafka_server_metadataloader_currentcontrollerid") == metadata.controller_id

    def to_delete() -> list[float | None]:
        names = ("topicstodelete", "replicastodelete")
        return [Scrape(url).value(f"kafka_controller_kafkacontroller_{name}count") for name in names]

    wait_until(lambda: to_delete() == [0, 0], 20, "the end of all deletions")


def test_a_reassignment_is_counted_by_the_partition_leader(cluster: KafkaCluster) -> None:
    url, address = cluster.control.url, cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": address})
    throttled = {"follower.replication.throttled.replicas": "*"}
    topic = NewTopic("moved", 1, replica_assignment=[[1, 2]], config=throttled)
    for future in admin.create_topics([topic]).values():
        future.result(30)
    produce(address, "moved", [1_000] * 60, partition=0, keys=None, **{"batch.num.messages": "1"})

    def moving() -> float | None:
        return Scrape(url).value("kafka_server_replicamanager_reassigningpartitions")

    assert moving() == 0
    set_config(cluster, ResourceType.BROKER, "3", follower_replication_throttled_rate="1")
    partition = {"partition_index": 0, "replicas": [1, 3]}
    asked = {"timeout_ms": 10_000, "topics": [{"name": "moved", "partitions": [partition]}]}
    controller = admin.list_topics(timeout=20).controller_id
    known = admin.list_topics(timeout=20).brokers[controller]
    with Connection(f"{known.host}:{known.port}") as connection:
        answer = connection.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, asked)
    assert answer["error_code"] == 0
    wait_until(lambda: moving() == 1, 20, "the added replica")
    set_config(cluster, ResourceType.BROKER, "3", follower_replication_throttled_rate=FAST)
    wait_until(lambda: moving() == 0, 20, "the end of the reassignment")
    assert (Scrape(url).value("kafka_server_followerreplication_byte_rate") or 0) > 0
    assert Scrape(url).value("kafka_server_leaderreplication_byte_rate") == 0


async def test_controller_event_times_are_recorded_by_state() -> None:
    times = ControllerTimes()
    assert times.state == "Idle"
    with times.at(RebalanceTick()):
        assert times.state == "AutoLeaderBalance"
    with times.at(UncleanConfigChanged(True, {})):
        assert times.state == "UncleanLeaderElectionEnable"
    with times.at(UncleanConfigChanged(True, {"t": False})):
        assert times.state == "TopicUncleanLeaderElectionEnable"
    assert times.by_state["AutoLeaderBalance"].count == 1
    with pytest.raises(ValueError, match="it fails"), times.at(RebalanceTick()):
        raise ValueError("it fails")
    assert times.state == "Idle" and times.by_state["AutoLeaderBalance"].count == 1
    waited_ms: list[float] = []
    queue: TimedQueue[str] = TimedQueue(waited_ms.append)
    queue.put_nowait("first")
    await queue.put("second")
    assert [await queue.get(), queue.get_nowait()] == ["first", "second"]
    assert len(waited_ms) == 2 and all(each >= 0 for each in waited_ms)
