"""Kafka 3.9's nodes: their paths, and their payloads to and from values.

The JSON is Kafka's to the byte, as far as Kafka's own order of keys is fixed, so that Kafka's tools and
brokers can share a ZooKeeper with us. Decoders take any order and what older versions wrote.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from .model import BrokerInfo, Endpoint, PartitionState, TopicState

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE = "/brokers/seqid"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = "/config/changes/config_change_"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGES = "/isr_change_notification"
ISR_CHANGE_PREFIX = "/isr_change_notification/isr_change_"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = "/log_dir_event_notification/log_dir_event_"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
CONSUMERS = "/consumers"

#: The nodes that Kafka makes at its start, so that everything else finds its parent.
PERSISTENT_PATHS = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)

_NOT_IN_PATHS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")

#: The entity name of a config that holds for every broker, user, client or address without its own.
DEFAULT_ENTITY = "<default>"


class BadPayload(ValueError):
    """A node does not hold what its path promises."""


class ControllerInfo(NamedTuple):
    """Who is the controller, since when."""

    broker_id: int
    timestamp_ms: int


class ProducerIdBlock(NamedTuple):
    """The producer ids that a broker has taken: first to last, both included."""

    broker_id: int
    first: int
    last: int


def broker_path(broker_id: int) -> str:
    """/brokers/ids/N"""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """/brokers/topics/T"""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """/brokers/topics/T/partitions"""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """/brokers/topics/T/partitions/P"""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    """/brokers/topics/T/partitions/P/state"""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(entity_type: str, entity: str) -> str:
    """/config/TYPE/NAME; TYPE is topics, brokers, users, clients or ips."""
    return f"/config/{entity_type}/{entity}"


def delete_topic_path(topic: str) -> str:
    """/admin/delete_topics/T"""
    return f"{DELETE_TOPICS}/{topic}"


def consumer_offset_path(group: str, topic: str, partition: int) -> str:
    """/consumers/G/offsets/T/P: where clients of Kafka before 0.8.2 keep their positions. ValueError for a
    group whose name ZooKeeper does not take; a slash in it makes a deeper path, as in Kafka.
    """
    if any(name in ("", ".", "..") for name in group.split("/")) or _NOT_IN_PATHS.search(group):
        raise ValueError(f"{group!r} cannot be part of a path")
    return f"{CONSUMERS}/{group}/offsets/{topic}/{partition}"


def encode_cluster_id(cluster_id: str) -> bytes:
    """/cluster/id: the id is 22 characters of URL-safe base64."""
    return _json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    """The cluster's id."""
    return str(_object(data)["id"])


def encode_broker(broker: BrokerInfo, timestamp_ms: int, jmx_port: int = -1) -> bytes:
    """/brokers/ids/N, version 5. Host and port are those of the first PLAINTEXT endpoint, for the oldest
    readers."""
    plaintext = next((end for end in broker.endpoints if end.security_protocol == "PLAINTEXT"), None)
    return _json(
        {
            "features": {
                name: {"min_version": low, "max_version": high}
                for name, (low, high) in broker.features.items()
            },
            "listener_security_protocol_map": {
                end.listener: end.security_protocol for end in broker.endpoints
            },
            "endpoints": [f"{end.listener}://{_bracketed(end.host)}:{end.port}" for end in broker.endpoints],
            **({"rack": broker.rack} if broker.rack is not None else {}),
            "jmx_port": jmx_port,
            "port": plaintext.port if plaintext else -1,
            "host": plaintext.host if plaintext else None,
            "version": 5,
            "timestamp": str(timestamp_ms),
        }
    )


def decode_broker(broker_id: int, data: bytes | None, czxid: int = -1) -> BrokerInfo:
    """A broker's registration, versions 1 to 5. `czxid` of its node is the broker's epoch."""
    values = _object(data)
    protocols = values.get("listener_security_protocol_map") or {}
    endpoints = []
    for text in values.get("endpoints") or [f"PLAINTEXT://{values.get('host')}:{values.get('port')}"]:
        listener, _, address = text.partition("://")
        host, _, port = address.rpartition(":")
        endpoints.append(Endpoint(listener, host.strip("[]"), int(port), protocols.get(listener, listener)))
    features = {
        name: (int(span.get("min_version", 0)), int(span.get("max_version", 0)))
        for name, span in (values.get("features") or {}).items()
    }
    return BrokerInfo(broker_id, tuple(endpoints), values.get("rack"), czxid, features)


def encode_topic(topic: TopicState) -> bytes:
    """/brokers/topics/T, version 3; version 2 without a topic id."""
    return _json(
        {
            "partitions": _assignment(topic.replicas),
            **({"topic_id": encode_topic_id(topic.topic_id)} if topic.topic_id else {}),
            "adding_replicas": _assignment(topic.adding_replicas),
            "removing_replicas": _assignment(topic.removing_replicas),
            "version": 3 if topic.topic_id else 2,
        }
    )


def decode_topic(name: str, data: bytes | None) -> TopicState:
    """A topic's assignment, versions 1 to 3."""
    values = _object(data)
    topic_id = values.get("topic_id")
    return TopicState(
        name,
        decode_topic_id(topic_id) if topic_id else None,
        _replicas(values["partitions"]),
        _replicas(values.get("adding_replicas") or {}),
        _replicas(values.get("removing_replicas") or {}),
    )


def encode_partition_state(state: PartitionState) -> bytes:
    """/brokers/topics/T/partitions/P/state, version 1."""
    return _json(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            **({"leader_recovery_state": 1} if state.recovering else {}),
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
    )


def decode_partition_state(data: bytes | None, node_version: int) -> PartitionState:
    """A partition's leader and ISR; the node's version is the partition epoch."""
    values = _object(data)
    return PartitionState(
        int(values["leader"]),
        int(values["leader_epoch"]),
        tuple(int(broker) for broker in values["isr"]),
        int(values["controller_epoch"]),
        values.get("leader_recovery_state", 0) == 1,
        node_version,
    )


def encode_controller(controller: ControllerInfo) -> bytes:
    """/controller, version 2."""
    return _json(
        {
            "version": 2,
            "brokerid": controller.broker_id,
            "timestamp": str(controller.timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes | None) -> ControllerInfo:
    """Who the controller is."""
    values = _object(data)
    return ControllerInfo(int(values["brokerid"]), int(values.get("timestamp", -1)))


def encode_config(settings: Mapping[str, str]) -> bytes:
    """/config/TYPE/NAME"""
    return _json({"version": 1, "config": dict(settings)})


def decode_config(data: bytes | None) -> dict[str, str]:
    """The settings of an entity; none when the node is empty."""
    return (
        {} if not data else {name: str(value) for name, value in (_object(data).get("config") or {}).items()}
    )


def encode_config_change(entity_path: str) -> bytes:
    """/config/changes/config_change_…: `topics/T`, `brokers/1`, `users/U/clients/C`."""
    return _json({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes | None) -> str:
    """The entity's path, also from version 1, which names type and entity apart."""
    values = _object(data)
    if values.get("version") == 1:
        return f"{values['entity_type']}/{values['entity_name']}"
    return str(values["entity_path"])


def encode_partitions(partitions: Sequence[tuple[str, int]]) -> bytes:
    """/isr_change_notification/isr_change_… and /admin/preferred_replica_election."""
    return _json(
        {"version": 1, "partitions": [{"topic": topic, "partition": index} for topic, index in partitions]}
    )


def decode_partitions(data: bytes | None) -> list[tuple[str, int]]:
    """The partitions that were named."""
    return [(str(item["topic"]), int(item["partition"])) for item in _object(data)["partitions"]]


def encode_reassignment(partitions: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    """/admin/reassign_partitions, as the tools of old write it."""
    items = [
        {"topic": topic, "partition": index, "replicas": list(replicas)}
        for (topic, index), replicas in partitions.items()
    ]
    return _json({"version": 1, "partitions": items})


def decode_reassignment(data: bytes | None) -> dict[tuple[str, int], tuple[int, ...]]:
    """The replicas wanted for each partition."""
    return {
        (str(item["topic"]), int(item["partition"])): tuple(int(broker) for broker in item["replicas"])
        for item in _object(data)["partitions"]
    }


def encode_log_dir_event(broker_id: int) -> bytes:
    """/log_dir_event_notification/log_dir_event_…: a broker lost a log directory."""
    return _json({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(data: bytes | None) -> int:
    """Which broker lost a log directory."""
    return int(_object(data)["broker"])


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """/latest_producer_id_block"""
    return _json(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock | None:
    """The block that was taken last; None while the node is empty."""
    if not data:
        return None
    values = _object(data)
    return ProducerIdBlock(int(values["broker"]), int(values["block_start"]), int(values["block_end"]))


def encode_offset(offset: int) -> bytes:
    """A position of a group, as text."""
    return str(offset).encode()


def decode_offset(data: bytes | None) -> int | None:
    """The reverse; None for a node without data. BadPayload."""
    if not data:
        return None
    try:
        return int(data)
    except ValueError as error:
        raise BadPayload(f"{data!r} is no offset") from error


def encode_feature(max_levels: Mapping[str, int], enabled: bool = True) -> bytes:
    """/feature, version 2: the finalized features."""
    features = {name: {"max_version_level": level} for name, level in max_levels.items()}
    return _json({"features": features, "version": 2, "status": 1 if enabled else 0})


def decode_feature(data: bytes | None) -> tuple[bool, dict[str, int]]:
    """Whether finalized features are enabled, and their levels, from versions 1 and 2."""
    values = _object(data)
    levels = {name: int(span["max_version_level"]) for name, span in (values.get("features") or {}).items()}
    return values.get("status") == 1, levels


def encode_topic_id(topic_id: UUID) -> str:
    """A topic id as Kafka writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_topic_id(text: str) -> UUID:
    """A topic id from its 22 characters; BadPayload when they are none."""
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as error:
        raise BadPayload(f"{text!r} is no topic id") from error


def _json(values: dict[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()


def _object(data: bytes | None) -> dict[str, Any]:
    try:
        values = json.loads(data or b"")
    except ValueError as error:
        raise BadPayload(f"{data!r} is not JSON") from error
    if not isinstance(values, dict):
        raise BadPayload(f"{data!r} is not a JSON object")
    return values


def _assignment(replicas: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(brokers) for partition, brokers in replicas.items()}


def _replicas(values: Mapping[str, Sequence[Any]]) -> dict[int, tuple[int, ...]]:
    assignment = {
        int(partition): tuple(int(broker) for broker in brokers) for partition, brokers in values.items()
    }
    return dict(sorted(assignment.items()))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
