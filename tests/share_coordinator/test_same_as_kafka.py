"""The share coordinator compared with that of Apache Kafka 4.4.0: the same requests get the same responses
and lead to the same records in `__share_group_state`, and Kafka's dump tool reads our log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.share_coordinator.state_requests import (
    INITIALIZE,
    SETTINGS,
    STATE_TOPIC,
    SUMMARY,
    WRITE,
    StateClient,
    part,
    random_requests,
)
from tests.support import java
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker

TOPICS = {"one": 3, "two": 3}
SEEDS = range(4)
REQUESTS = 250


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaCompatBroker, GenuineKafka]]:
    ours = KafkaCompatBroker(tmp_path_factory.mktemp("ours"), SETTINGS)
    genuine = GenuineKafka(tmp_path_factory.mktemp("genuine"), SETTINGS, version=NEWEST_VERSION, mode="kraft")
    genuine.launch()
    ours.start()
    genuine.wait_ready(300)
    yield ours, genuine
    ours.stop()
    genuine.stop()


@pytest.mark.timeout(1200)
def test_the_same_requests_get_the_same_responses_and_records(
    brokers: tuple[KafkaCompatBroker, GenuineKafka],
) -> None:
    ours, genuine = (StateClient(broker, TOPICS) for broker in brokers)
    for client in (ours, genuine):
        client.wait_for_coordinator("g", "one")
    for seed in SEEDS:
        for number, request in enumerate(random_requests(seed, REQUESTS)):
            responses = [_without_words(client.state(*request)) for client in (ours, genuine)]
            assert responses[0] == responses[1], f"seed {seed}, request {number}: {request}"
    records = [client.records() for client in (ours, genuine)]
    assert len(records[0]) > 100
    for number, (mine, its) in enumerate(zip(*records, strict=True)):
        assert mine == its, f"record {number}"
    dumps = [_dump(broker.log_dir) for broker in brokers]
    assert dumps[0] == dumps[1]
    for client in (ours, genuine):
        client.close()


def _without_words(response: Any) -> Any:
    """Replace the error messages in a response, because this broker words them differently from Kafka."""
    if isinstance(response, dict):
        return {
            name: "words" if name == "error_message" and value else _without_words(value)
            for name, value in response.items()
        }
    return [_without_words(each) for each in response] if isinstance(response, list) else response


def _dump(log_dir: Path) -> list[Any]:
    """Return the keys and values that Kafka's tool prints, without topic IDs and times."""
    segment = next((log_dir / f"{STATE_TOPIC}-0").glob("*.log"))
    printed = java.run(
        "kafka-dump-log",
        "--share-group-state-decoder",
        "--files",
        str(segment),
        version=NEWEST_VERSION,
        timeout_s=300,
    ).stdout
    assert "isvalid: false" not in printed
    found = []
    for line in printed.splitlines():
        if " key: " not in line:
            continue
        key, _, value = line.partition(" key: ")[2].partition(" payload: ")
        read = [json.loads(text) if text.startswith("{") else text for text in (key, value)]
        for entry in read:
            if isinstance(entry, dict):
                entry["data"].pop("topicId", None)
                entry["data"].pop("createTimestamp", None)
                entry["data"].pop("writeTimestamp", None)
        found.append(read)
    assert found
    return found


@pytest.mark.timeout(600)
def test_coordinators_of_share_partitions_are_found_as_in_apache_kafka(
    brokers: tuple[KafkaCompatBroker, GenuineKafka],
) -> None:
    ours, genuine = (StateClient(broker, TOPICS) for broker in brokers)
    for client in (ours, genuine):
        client.wait_for_coordinator("g", "one")
    topic = "AAAAAAAAMzMAAAAAAAAAAw"
    for key in (
        f"g:{topic}:0",
        f"a:b:{topic}:+7",
        f"g:{topic}==:0",
        f"g:{topic}:-1",
        f"g:{topic}:0:",
        f" :{topic}:0",
        f":{topic}:0",
        "",
        "g",
        f"g:{topic}",
        f"g:{topic}:x",
        f"g:{topic}:2147483648",
        "g:topic:0",
    ):
        for version in (3, 4, 6):
            mine, its = (client.find(key, version) for client in (ours, genuine))
            assert mine | {"host": "", "port": 0} == its | {"host": "", "port": 0}, (key, version)
    for client in (ours, genuine):
        client.close()


@pytest.mark.timeout(600)
def test_unchanged_states_and_deleted_topics_lead_to_the_records_of_apache_kafka(tmp_path: Path) -> None:
    settings = SETTINGS | {
        "share.coordinator.state.topic.prune.interval.ms": "2000",
        "share.coordinator.cold.partition.snapshot.interval.ms": "2000",
    }
    ours = KafkaCompatBroker(tmp_path / "ours", settings)
    genuine = GenuineKafka(tmp_path / "genuine", settings, version=NEWEST_VERSION, mode="kraft")
    genuine.launch()
    ours.start()
    genuine.wait_ready(300)
    records = []
    for broker in (ours, genuine):
        client = StateClient(broker, TOPICS)
        records.append(_after_pruning(client))
        _delete_a_topic(client)
        client.close()
    assert records[0] == records[1]
    ours.stop()
    genuine.stop()


def _after_pruning(client: StateClient) -> list[Any]:
    """Return the records of two states when the log contains only their snapshots, without times."""
    client.wait_for_coordinator("g", "one")
    for topic in ("one", "two"):
        first = {"partition": 0, "state_epoch": 1, "start_offset": 3}
        client.state(INITIALIZE, 0, part("g", topic, first))
    batch = {"first_offset": 3, "last_offset": 7, "delivery_state": 2, "delivery_count": 1}
    change = {"partition": 0, "state_epoch": 1, "leader_epoch": 0, "start_offset": 4}
    client.state(WRITE, 1, part("g", "one", change | {"state_batches": [batch]}))
    wait_until(lambda: client.start_offset() >= 3 and len(client.records()) == 2, 60, "a pruned log")
    found = client.records()
    assert all(value.written_ms >= 2000 for _, value in found)
    return sorted([(key, value._replace(written_ms=0)) for key, value in found], key=repr)


def _delete_a_topic(client: StateClient) -> None:
    deleted = [{"name": "one", "topic_id": UUID(int=0)}]
    client.ask(ApiKey.DELETE_TOPICS, 6, topics=deleted, timeout_ms=30_000)
    wait_until(lambda: client.records()[-1] == (("g", "one", 0), None), 60, "a tombstone")
    summary = part("g", "two", {"partition": 0, "leader_epoch": 0})
    assert client.state(SUMMARY, 1, summary)["results"][0]["partitions"][0]["start_offset"] == 3
