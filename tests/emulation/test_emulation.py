"""A broker that emulates an older Kafka version reports its APIs and features, and rejects all others."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from kafka_compat.config import BrokerConfig
from kafka_compat.config.own_settings import OWN_TABLE
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.emulation import SETTING, Emulation
from kafka_compat.metadata.features import effective_levels
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.kafka_versions import VERSIONS
from kafka_compat.testing import BrokerFailed, KafkaBroker, KafkaCluster
from tests.clients.programs import CLIENTS, ClientProgram
from tests.conformance.wire import Connection, Plain, encode, frame
from tests.emulation import table
from tests.support import campaign
from tests.support.servers import GenuineKafka

REQUIRED = ["0.11.0", "1.1", "2.1", "2.8", "3.3", "3.9", "4.0"]


@pytest.fixture(scope="module", params=list(VERSIONS) if campaign.enabled() else ["0.11.0", "2.8", "4.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def broker(version: str) -> Iterator[KafkaBroker]:
    with KafkaBroker(emulate=version) as broker:
        yield broker


def _reported(address: str, request_version: int) -> tuple[dict[int, tuple[int, int]], Plain]:
    with Connection(address) as connection:
        software = {"client_software_name": "a", "client_software_version": "1"}
        found = connection.ask(ApiKey.API_VERSIONS, request_version, software if request_version >= 3 else {})
    assert found["error_code"] == 0
    return {each["api_key"]: (each["min_version"], each["max_version"]) for each in found["api_keys"]}, found


def test_the_apis_of_that_version_are_reported(broker: KafkaBroker, version: str) -> None:
    expected = Emulation(version)
    _, highest = expected.apis[ApiKey.API_VERSIONS]
    for request_version in range(highest + 1):
        apis, response = _reported(broker.bootstrap_servers, request_version)
        assert list(apis.items()) == list(expected.apis.items())
        if request_version >= 4:
            features = {
                each["name"]: (each["min_version"], each["max_version"])
                for each in response["supported_features"]
            }
            assert features == expected.features
            assert {each["name"] for each in response["finalized_features"]} <= features.keys()


def test_other_versions_of_requests_are_rejected(broker: KafkaBroker, version: str) -> None:
    emulated = Emulation(version)
    for key in (ApiKey.METADATA, ApiKey.LIST_GROUPS):
        _, highest = emulated.apis[key]
        with Connection(broker.bootstrap_servers) as connection:
            connection.send(frame(struct.pack(">hhih", key, highest + 1, 1, -1)))
            assert connection.closed_by_peer()
    with Connection(broker.bootstrap_servers) as connection:
        connection.send(encode(ApiKey.API_VERSIONS, 5, {"client_software_name": "a"}))
        answer = connection.receive()
        error_code, count = struct.unpack_from(">hi", answer, 4)
        if emulated.apis[ApiKey.API_VERSIONS][1] < 5:
            assert error_code == ErrorCode.UNSUPPORTED_VERSION
            assert count == (1 if emulated.lists_versions else 0)
        assert connection.ask(ApiKey.API_VERSIONS, 0, {})["error_code"] == 0


def test_clients_that_adapt_use_the_older_versions(broker: KafkaBroker, version: str) -> None:
    broker.create_topic("flights")
    at = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2}
    with broker.control.record() as recorded:
        producer = Producer(at)
        producer.produce("flights", b"EWR")
        assert producer.flush(20) == 0
        consumer = Consumer({**at, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["flights"])
        message = consumer.poll(20)
        assert message is not None and message.value() == b"EWR"
        consumer.commit(message=message, asynchronous=False)
        consumer.close()
        other = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        other.send("flights", b"JFK").get(20)
        other.close()
    emulated = Emulation(version)
    used = {(ApiKey[_key(entry["api"])], entry["version"]) for entry in recorded()}
    assert {key for key, _ in used} >= {ApiKey.PRODUCE, ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT}
    assert all(emulated.allows("", key, used_version) for key, used_version in used)
    broker.reset()


def _key(api: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in api).strip("_").upper()


def test_every_required_version_is_in_the_table() -> None:
    assert VERSIONS.keys() >= set(REQUIRED)
    (row,) = (line for line in OWN_TABLE.splitlines() if line.startswith(SETTING))
    assert f"one-of:{','.join(VERSIONS)} " in row


def test_features_that_the_version_lacks_are_disabled() -> None:
    def levels(version: str) -> dict[str, int]:
        return effective_levels(BrokerConfig.from_properties({SETTING: version}), {"share.version": 1})

    assert levels("3.9") == {"group.version": 0, "share.version": 0, "transaction.version": 0}
    assert levels("4.0") == {"group.version": 1, "share.version": 0, "transaction.version": 2}


def test_an_unknown_version_is_reported() -> None:
    with pytest.raises(BrokerFailed, match=r"9\.9.*kafka\.compat\.emulated\.version"):
        KafkaBroker(emulate="9.9").start()


def test_a_cluster_and_security_can_be_combined_with_an_emulated_version() -> None:
    with KafkaCluster(2, emulate="2.8", security="plain") as cluster:
        cluster.create_topic("flights", 2, replication_factor=2)
        producer = Producer(cluster.client_settings("confluent-kafka"))
        for partition in range(2):
            producer.produce("flights", b"EWR", partition=partition)
        assert producer.flush(20) == 0


@pytest.mark.skipif(not campaign.enabled(), reason="in campaigns")
@pytest.mark.parametrize("release", table.RELEASES)
def test_the_table_matches_kafkas_jars(release: str) -> None:
    emulated = Emulation(table.version_of(release))
    assert (emulated.apis, emulated.features) == table.read(release)


@pytest.mark.skipif(not campaign.enabled(), reason="in campaigns")
def test_the_responses_match_those_of_apache_kafka(genuine: GenuineKafka, genuine_41: GenuineKafka) -> None:
    for version, server in (("3.9", genuine), ("4.1", genuine_41)):
        with KafkaBroker(emulate=version) as broker:
            ours, our_response = _reported(broker.bootstrap_servers, 4)
        theirs, their_response = _reported(server.address, 4)
        assert {key: ours[key] for key in ours if key not in (71, 72)} == {
            key: theirs[key] for key in theirs if key not in (71, 72)
        }
        assert _sorted(our_response["supported_features"]) == _sorted(their_response["supported_features"])


def _sorted(features: list[Plain]) -> list[Plain]:
    return sorted(features, key=lambda each: str(each["name"]))


@pytest.mark.skipif(not campaign.enabled(), reason="in campaigns")
@pytest.mark.parametrize("client", ["franz-go", "sarama", "aiokafka"])
@pytest.mark.parametrize("version", REQUIRED)
def test_other_clients_adapt_as_well(version: str, client: str, tmp_path: Path) -> None:
    with KafkaBroker(emulate=version) as broker:
        broker.create_topic("flights")
        with broker.control.record() as recorded:
            program = ClientProgram(CLIENTS[client], broker.bootstrap_servers, tmp_path / "log", {})
            program.ask("produce", topic="flights", records=[{"value": "EWR", "partition": 0}])
            program.close()
        assert broker.control.await_records("flights", 1) == 1
        emulated = Emulation(version)
        used = {(ApiKey[_key(entry["api"])], entry["version"]) for entry in recorded()}
        assert used and all(emulated.allows("", key, used_version) for key, used_version in used)
