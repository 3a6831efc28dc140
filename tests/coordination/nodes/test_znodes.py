"""Node paths and payloads, compared with those that Kafka 3.9.1 wrote to a ZooKeeper."""

from uuid import UUID

import pytest

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint, PartitionState, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode


def test_a_broker_registration_is_encoded_as_in_kafka() -> None:
    genuine = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://127.0.0.1:19392"],"jmx_port":-1,"port":19392,"host":"127.0.0.1","version":5,'
        b'"timestamp":"1795254550078"}'
    )
    broker = BrokerInfo(1, (Endpoint("PLAINTEXT", "127.0.0.1", 19392),), epoch=25)
    assert znodes.encode_broker(broker, 1795254550078) == genuine
    assert znodes.decode_broker(1, genuine, 25) == broker


def test_broker_registrations_with_racks_and_features_are_decoded() -> None:
    broker = BrokerInfo(
        2,
        (Endpoint("INSIDE", "::1", 9092, "SASL_SSL"), Endpoint("OUT", "host", 9093)),
        rack="r",
        epoch=3,
        features={"f": (1, 2)},
    )
    assert znodes.decode_broker(2, znodes.encode_broker(broker, 5), 3) == broker
    version_1 = b'{"version":1,"host":"localhost","port":9092,"jmx_port":9999,"timestamp":"2233345666"}'
    assert znodes.decode_broker(0, version_1).endpoints == (Endpoint("PLAINTEXT", "localhost", 9092),)


def test_a_topic_assignment_is_encoded_as_in_kafka() -> None:
    genuine = (
        b'{"partitions":{"0":[1],"1":[1]},"topic_id":"ilErGRjwRs6WRag40DTa7A","adding_replicas":{},'
        b'"removing_replicas":{},"version":3}'
    )
    topic = TopicState("t1", UUID("8a512b19-18f0-46ce-9645-a838d034daec"), {0: (1,), 1: (1,)})
    assert znodes.encode_topic(topic) == genuine
    assert znodes.decode_topic("t1", genuine) == topic
    assert znodes.decode_topic("old", b'{"version":1,"partitions":{"10":[2],"9":[1,2]}}') == TopicState(
        "old", None, {9: (1, 2), 10: (2,)}
    )


def test_a_partition_state_is_encoded_as_in_kafka() -> None:
    genuine = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    state = PartitionState(leader=1, leader_epoch=0, isr=(1,), controller_epoch=1, partition_epoch=4)
    assert znodes.encode_partition_state(state) == genuine
    assert znodes.decode_partition_state("t", 0, genuine, 4) == state
    recovering = (
        b'{"controller_epoch":4,"leader":1,"version":1,"leader_recovery_state":1,"leader_epoch":2,"isr":[1]}'
    )
    assert znodes.encode_partition_state(PartitionState(1, 2, (1,), 4, recovering=True)) == recovering
    assert znodes.decode_partition_state("t", 0, recovering, 0).recovering


@pytest.mark.parametrize(
    ("ours", "genuine"),
    [
        (znodes.encode_cluster_id("KLEb2u3tTOaSAkQtDDacQg"), '{"version":"1","id":"KLEb2u3tTOaSAkQtDDacQg"}'),
        (
            znodes.encode_controller(znodes.ControllerInfo(1, 1795254550203)),
            '{"version":2,"brokerid":1,"timestamp":"1795254550203","kraftControllerEpoch":-1}',
        ),
        (
            znodes.encode_config({"cleanup.policy": "compact", "retention.ms": "1000"}),
            '{"version":1,"config":{"cleanup.policy":"compact","retention.ms":"1000"}}',
        ),
        (znodes.encode_config_change("topics/t"), '{"version":2,"entity_path":"topics/t"}'),
        (
            znodes.encode_reassignment({("t", 0): [1, 2]}),
            '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}',
        ),
        (znodes.encode_log_dir_event(1), '{"version":1,"broker":1,"event":1}'),
        (
            znodes.encode_producer_id_block(znodes.ProducerIdBlock(1, 0, 999)),
            '{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
        ),
        (znodes.encode_feature({}), '{"features":{},"version":2,"status":1}'),
    ],
)
def test_payloads_are_byte_identical_to_kafkas(ours: bytes, genuine: str) -> None:
    assert ours.decode() == genuine


def test_encoding_and_decoding_preserve_values() -> None:
    assert znodes.decode_cluster_id(znodes.encode_cluster_id("x")) == "x"
    controller = znodes.ControllerInfo(3, 7)
    assert znodes.decode_controller(znodes.encode_controller(controller)) == controller
    assert znodes.decode_config("/config/topics/t", znodes.encode_config({"a": "ü"})) == {"a": "ü"}
    assert znodes.decode_config("/config/topics/t", None) == {}
    assert znodes.decode_config_change("/c", znodes.encode_config_change("users/u")) == "users/u"
    version_1 = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert znodes.decode_config_change("/c", version_1) == "topics/t"
    assert znodes.decode_partitions("/p", b'{"partitions":[{"topic":"t","partition":3}]}') == [("t", 3)]
    assert znodes.decode_reassignment(znodes.encode_reassignment({("t", 3): [2]})) == {("t", 3): (2,)}
    assert znodes.decode_log_dir_event("/l", znodes.encode_log_dir_event(4)) == 4
    block = znodes.ProducerIdBlock(1, 1000, 1999)
    assert znodes.decode_producer_id_block(znodes.encode_producer_id_block(block)) == block
    assert znodes.decode_producer_id_block(None) is None
    assert znodes.decode_feature(znodes.encode_feature({"metadata.version": 2})) == (
        True,
        {"metadata.version": 2},
    )
    assert znodes.decode_feature(znodes.encode_feature({}, enabled=False)) == (False, {})
    levels = {"group.version": 1, "transaction.version": 0}
    assert znodes.decode_feature_levels(znodes.encode_feature_levels(levels)) == levels


@pytest.mark.parametrize("data", [b"", b"{", b"[]", None, b"\xff"])
def test_an_error_names_the_node_with_unexpected_content(data: bytes | None) -> None:
    with pytest.raises(MalformedNode):
        znodes.decode_topic("t", data)


def test_paths_match_kafkas() -> None:
    assert znodes.partition_state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert znodes.config_path("topics", "t") == "/config/topics/t"
    assert znodes.broker_path(7) == "/brokers/ids/7"
    assert znodes.delete_topic_path("t") == "/admin/delete_topics/t"
