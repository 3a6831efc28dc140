"""Decoders of node payloads: for any payload, they return a value or raise MalformedNode with the node's
path.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint, PartitionState, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes

_TOPIC = TopicState("t", None, {0: (1, 2), 1: (2, 1)}, {0: (2,)}, {1: (1,)})
_BROKER = BrokerInfo(1, (Endpoint("PLAINTEXT", "localhost", 9092),), "r", features={"f": (1, 2)})

DECODERS: dict[str, tuple[Callable[[bytes | None], Any], bytes]] = {
    "/cluster/id": (znodes.decode_cluster_id, znodes.encode_cluster_id("x")),
    "/brokers/ids/1": (lambda data: znodes.decode_broker(1, data), znodes.encode_broker(_BROKER, 5)),
    "/brokers/topics/t": (lambda data: znodes.decode_topic("t", data), znodes.encode_topic(_TOPIC)),
    "/brokers/topics/t/partitions/0/state": (
        lambda data: znodes.decode_partition_state("t", 0, data, 3),
        znodes.encode_partition_state(PartitionState(1, 2, (1, 2), 3, recovering=True)),
    ),
    "/controller": (znodes.decode_controller, znodes.encode_controller(znodes.ControllerInfo(1, 5))),
    "/controller_epoch": (znodes.decode_controller_epoch, b"17"),
    "/config/topics/t": (
        lambda data: znodes.decode_config("/config/topics/t", data),
        znodes.encode_config({"retention.ms": "1"}),
    ),
    "/config/changes/config_change_0000000001": (
        lambda data: znodes.decode_config_change("/config/changes/config_change_0000000001", data),
        znodes.encode_config_change("topics/t"),
    ),
    "/isr_change_notification/isr_change_0": (
        lambda data: znodes.decode_partitions("/isr_change_notification/isr_change_0", data),
        b'{"version":1,"partitions":[{"topic":"t","partition":0}]}',
    ),
    "/admin/reassign_partitions": (
        znodes.decode_reassignment,
        znodes.encode_reassignment({("t", 0): [1, 2]}),
    ),
    "/log_dir_event_notification/log_dir_event_0": (
        lambda data: znodes.decode_log_dir_event("/log_dir_event_notification/log_dir_event_0", data),
        znodes.encode_log_dir_event(1),
    ),
    "/latest_producer_id_block": (
        znodes.decode_producer_id_block,
        znodes.encode_producer_id_block(znodes.ProducerIdBlock(1, 0, 999)),
    ),
    "/consumers/g/offsets/t/0": (
        lambda data: znodes.decode_offset("/consumers/g/offsets/t/0", data),
        znodes.encode_offset(5),
    ),
    "/feature": (znodes.decode_feature, znodes.encode_feature({"f": 1})),
}

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 2**31, 2**63, 10**30]),
    st.floats(),
    st.text(),
    st.sampled_from(["\ud800", "1" * 5000, "²", "A" * 22, "PLAINTEXT://h:99999", "FOO://h:1", "h:-1"]),
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


def _decoded(path: str, data: bytes | None) -> bool:
    """Return whether the payload was decoded. Fail the test on any exception except MalformedNode with the
    node's path.
    """
    decode, _ = DECODERS[path]
    try:
        decode(data)
    except MalformedNode as error:
        assert error.path == path
        assert str(error).startswith(f"{path}: ")
        return False
    return True


def _fields(values: Any, so_far: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the key paths of all nested values."""
    inside = (
        values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    )
    ways = [so_far] if so_far else []
    for key, value in inside:
        ways += _fields(value, (*so_far, key))
    return ways


@pytest.mark.parametrize("path", DECODERS)
@example(data=b"[" * 100_000)
@example(data=b'{"version":' + b"9" * 5000 + b"}")
@example(data=b'{"a":"\\ud800"}')
@example(data="{}".encode("utf-16"))
@example(data=None)
@example(data=b"")
@given(data=st.binary())
@settings(max_examples=50, deadline=None)
def test_any_bytes_are_decoded_or_reported_as_malformed(path: str, data: bytes | None) -> None:
    _decoded(path, data)


@pytest.mark.parametrize("path", DECODERS)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_payload_with_one_changed_value_is_decoded_or_reported_as_malformed(
    path: str, data: st.DataObject
) -> None:
    values = json.loads(DECODERS[path][1])
    if not isinstance(values, dict):
        values = {"in place of": values}
    *way, last = data.draw(st.sampled_from(_fields(values)))
    inside = values
    for key in way:
        inside = inside[key]
    if data.draw(st.booleans()):
        inside[last] = data.draw(_VALUES)
    else:
        del inside[last]
    _decoded(path, json.dumps(values).encode())


@pytest.mark.parametrize("path", DECODERS)
def test_payloads_of_newer_versions_of_kafka_are_accepted(path: str) -> None:
    genuine = DECODERS[path][1]
    assert _decoded(path, genuine)
    if genuine.startswith(b"{"):
        assert _decoded(path, json.dumps(json.loads(genuine) | {"version": 99, "new": [1]}).encode())


@pytest.mark.parametrize(
    ("path", "data", "problem"),
    [
        ("/brokers/topics/t", b"{", "b'{' is not JSON"),
        ("/brokers/topics/t", b'{"version":3}', "partitions is missing"),
        ("/brokers/topics/t", b'{"partitions":{"0":"x"}}', "partitions.0 is 'x', not a list"),
        ("/brokers/topics/t", b'{"partitions":{"0":[1,1]}}', "which contains a broker twice"),
        ("/brokers/topics/t", b'{"partitions":{"2000000000":[1]}}', "one is number 2000000000"),
        ("/brokers/topics/t", b'{"partitions":{"0":[true]}}', "contains True, which is not a broker ID"),
        ("/brokers/ids/1", b'{"endpoints":["PLAINTEXT://h:70000"]}', "which has no port"),
        ("/brokers/ids/1", b'{"endpoints":["FOO://h:1"]}', "whose security protocol is unknown"),
        ("/controller_epoch", b"4294967296", "is not an epoch"),
    ],
)
def test_the_error_states_why_a_node_is_malformed(path: str, data: bytes, problem: str) -> None:
    with pytest.raises(MalformedNode) as caught:
        DECODERS[path][0](data)
    assert problem in str(caught.value)


def test_each_version_of_a_malformed_node_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    nodes = MalformedNodes()
    for version in (0, 0, 1, 1, 1):
        nodes.report(MalformedNode("/brokers/topics/t", "it is bad"), version, "the topic is left as it is")
    assert [record.getMessage() for record in caplog.records] == [
        "Found an invalid node: /brokers/topics/t: it is bad; the topic is left as it is until the node is "
        "repaired"
    ] * 2
