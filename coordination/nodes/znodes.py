"""The ZooKeeper nodes of Kafka 3.9: paths, and encoding of the payloads.

The JSON is identical to Kafka's, including the order of keys where Kafka's order is fixed, so that Kafka's
tools and brokers can share a ZooKeeper ensemble with this broker. Decoders accept any order of keys and the
payloads of older versions. They raise MalformedNode, with the node's path, if a payload is invalid.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote

from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint, PartitionState, TopicState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import (
    INT16_MAX,
    INT32_MAX,
    INT64_MAX,
    NodeObject,
    encode_json,
    is_number,
)

if TYPE_CHECKING:
    from uuid import UUID

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE = "/brokers/seqid"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = "/config/changes/config_change_"
DELETE_TOPICS = "/admin/delete_topics"
UNFINISHED_FORKS = "/kafka_compat/unfinished_forks"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = "/log_dir_event_notification/log_dir_event_"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
CONSUMERS = "/consumers"
CLIENT_METRICS = "/config/client-metrics"
GROUPS = "/config/groups"
FEATURE_LEVELS = "/kafka_compat/feature_levels"

#: The parent nodes that Kafka creates at startup.
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

_NOT_IN_PATHS = r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]"
"""Pattern of characters that ZooKeeper's paths cannot contain. The pattern is not compiled here, because that
would delay startup.
"""

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Security protocols of listeners, in the order of Kafka's numbers."""

_PORT_MAX = 65535
_STATES_KEPT: Final = 1_000
"""Number of partition states that are kept with their encoding: many partitions have the same state."""
_MISSING_PARTITIONS_MAX = 10_000
"""Maximum number of missing partitions in a topic. Brokers keep an entry for each missing partition."""
_PRODUCER_ID_BLOCK_END_MAX = INT64_MAX - 1000
"""Maximum last ID of a block, so that another block can follow."""

#: The entity name under which the defaults for brokers, users, client IDs or IP addresses are stored.
DEFAULT_ENTITY = "<default>"


class ControllerInfo(NamedTuple):
    """The broker ID of the controller and the time of its election."""

    broker_id: int
    timestamp_ms: int


class ProducerIdBlock(NamedTuple):
    """A block of producer IDs that a broker has allocated, from `first` to `last` inclusive."""

    broker_id: int
    first: int
    last: int


def is_name(name: str) -> bool:
    """Whether `name` is a valid node name in ZooKeeper."""
    return name not in ("", ".", "..") and "/" not in name and not re.search(_NOT_IN_PATHS, name)


def broker_path(broker_id: int) -> str:
    """Return the path /brokers/ids/N."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Return the path /brokers/topics/T."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Return the path /brokers/topics/T/partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """Return the path /brokers/topics/T/partitions/P."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    """Return the path /brokers/topics/T/partitions/P/state."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(entity_type: str, entity: str) -> str:
    """Return the path /config/TYPE/NAME. TYPE is topics, brokers, groups, users, clients or ips."""
    return f"/config/{entity_type}/{entity}"


def delete_topic_path(topic: str) -> str:
    """Return the path /admin/delete_topics/T."""
    return f"{DELETE_TOPICS}/{topic}"


def unfinished_fork_path(topic: str) -> str:
    """Return the path of the node that exists while a topic is being forked, for cleanup after a crash."""
    return f"{UNFINISHED_FORKS}/{topic}"


def consumer_offset_path(group: str, topic: str, partition: int) -> str:
    """Return the path /consumers/G/offsets/T/P, where consumers before Kafka 0.8.2 store offsets. Raises
    ValueError if ZooKeeper rejects the group name. As in Kafka, a slash in the name creates a deeper path.
    """
    if not all(map(is_name, group.split("/"))):
        raise ValueError(f"{group!r} cannot be part of a path")
    return f"{CONSUMERS}/{group}/offsets/{topic}/{partition}"


def encode_cluster_id(cluster_id: str) -> bytes:
    """Encode /cluster/id. The ID consists of 22 characters of URL-safe base64."""
    return encode_json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    """Decode /cluster/id."""
    return NodeObject.parse(CLUSTER_ID, data).text("id")


def encode_broker(broker: BrokerInfo, timestamp_ms: int, jmx_port: int = -1) -> bytes:
    """Encode /brokers/ids/N, version 5. The fields host and port contain the first PLAINTEXT endpoint."""
    plaintext = next((end for end in broker.endpoints if end.security_protocol == "PLAINTEXT"), None)
    return encode_json(
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
    """Decode /brokers/ids/N, versions 1 to 5. The node's `czxid` is the broker epoch."""
    values = NodeObject.parse(broker_path(broker_id), data)
    protocols = values.object("listener_security_protocol_map")
    endpoints = []
    for text in values.texts("endpoints"):
        listener, _, address = text.partition("://")
        host, _, port = address.rpartition(":")
        if not is_number(port, _PORT_MAX):
            raise values.wrong("endpoints", f"contains {text!r}, which has no port")
        protocol = protocols.text(listener, listener)
        if protocol not in SECURITY_PROTOCOLS:
            raise values.wrong("endpoints", f"contains {text!r}, whose security protocol is unknown")
        endpoints.append(Endpoint(listener, host.strip("[]"), int(port), protocol))
    if not endpoints:
        endpoints.append(Endpoint("PLAINTEXT", values.text("host"), values.integer("port", high=_PORT_MAX)))
    features = {}
    for name in (spans := values.object("features")):
        span = spans.object(name)
        features[name] = span.integer("min_version", 0), span.integer("max_version", 0)
    rack = values.text("rack") if values.has("rack") else None
    return BrokerInfo(broker_id, tuple(endpoints), rack, czxid, features)


def encode_topic(topic: TopicState) -> bytes:
    """Encode /brokers/topics/T, version 3, or version 2 if the topic has no ID."""
    return encode_json(
        {
            "partitions": _assignment(topic.replicas),
            **({"topic_id": encode_topic_id(topic.topic_id)} if topic.topic_id else {}),
            "adding_replicas": _assignment(topic.adding_replicas),
            "removing_replicas": _assignment(topic.removing_replicas),
            "version": 3 if topic.topic_id else 2,
        }
    )


def decode_topic(name: str, data: bytes | None) -> TopicState:
    """Decode /brokers/topics/T, versions 1 to 3. An empty list of replicas is valid."""
    path = topic_path(name)
    values = NodeObject.parse(path, data)
    replicas = _replicas(values.object("partitions"))
    if not values.has("partitions"):
        raise values.wrong("partitions", "is missing")
    if max(replicas, default=-1) >= len(replicas) + _MISSING_PARTITIONS_MAX:
        raise values.wrong("partitions", f"has {len(replicas)} entries, but one is number {max(replicas)}")
    removing = _replicas(values.object("removing_replicas"))
    for partition, brokers in removing.items():
        if set(replicas.get(partition, (None,))) <= set(brokers):
            raise values.wrong("removing_replicas", f"removes all replicas of partition {partition}")
    return TopicState(
        name,
        _topic_id(path, values.text("topic_id")) if values.has("topic_id") else None,
        replicas,
        _replicas(values.object("adding_replicas")),
        removing,
    )


def encode_partition_state(state: PartitionState) -> bytes:
    """Encode /brokers/topics/T/partitions/P/state, version 1."""
    return _encoded_state(PartitionState(*state[:-1], 0))


@lru_cache(_STATES_KEPT)
def _encoded_state(state: PartitionState) -> bytes:
    return encode_json(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            **({"leader_recovery_state": 1} if state.recovering else {}),
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
    )


def decode_partition_state(
    topic: str, partition: int, data: bytes | None, node_version: int
) -> PartitionState:
    """Decode /brokers/topics/T/partitions/P/state. The node's version is the partition epoch."""
    try:
        state = _decoded_state(data)
    except MalformedNode as error:
        raise MalformedNode(partition_state_path(topic, partition), error.problem) from None
    return PartitionState(*state[:-1], node_version)


@lru_cache(_STATES_KEPT)
def _decoded_state(data: bytes | None) -> PartitionState:
    """Decode a state without its partition epoch, and without a path in errors."""
    values = NodeObject.parse("", data)
    return PartitionState(
        values.integer("leader", low=-2),
        values.integer("leader_epoch"),
        values.brokers("isr"),
        values.integer("controller_epoch", low=-1),
        values.integer("leader_recovery_state", 0, high=1) == 1,
        0,
    )


def encode_controller(controller: ControllerInfo) -> bytes:
    """Encode /controller, version 2."""
    return encode_json(
        {
            "version": 2,
            "brokerid": controller.broker_id,
            "timestamp": str(controller.timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes | None) -> ControllerInfo:
    """Decode /controller."""
    values = NodeObject.parse(CONTROLLER, data)
    since_ms = values.integer_text("timestamp") if values.has("timestamp") else -1
    return ControllerInfo(values.integer("brokerid"), since_ms)


def encode_controller_epoch(epoch: int) -> bytes:
    """Encode /controller_epoch as text."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    """Decode /controller_epoch, the number of controller elections."""
    text = (data or b"").decode(errors="replace")
    if not is_number(text, INT32_MAX - 1):
        raise MalformedNode(CONTROLLER_EPOCH, f"{text!r:.60} is not an epoch")
    return int(text)


def encode_config(settings: Mapping[str, str]) -> bytes:
    """Encode /config/TYPE/NAME."""
    return encode_json({"version": 1, "config": dict(settings)})


def decode_config(path: str, data: bytes | None) -> dict[str, str]:
    """Decode the settings of the entity whose node is `path`. A node without data has no settings."""
    if not data:
        return {}
    settings = NodeObject.parse(path, data).object("config")
    return {name: settings.text(name) for name in settings}


def encode_config_change(entity_path: str) -> bytes:
    """Encode /config/changes/config_change_…, with a path such as `topics/T` or `users/U/clients/C`."""
    return encode_json({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes | None) -> str:
    """Decode the entity path in a config change notification. Version 1 contains a type and a name."""
    values = NodeObject.parse(path, data)
    if values.has("entity_path"):
        return values.text("entity_path")
    return f"{values.text('entity_type')}/{values.text('entity_name')}"


def decode_partitions(path: str, data: bytes | None) -> list[tuple[str, int]]:
    """Decode the partitions in /isr_change_notification/isr_change_… or /admin/preferred_replica_election."""
    items = NodeObject.parse(path, data).objects("partitions")
    return [(item.text("topic"), item.integer("partition")) for item in items]


def encode_reassignment(partitions: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    """Encode /admin/reassign_partitions, which legacy tools also write."""
    items = [
        {"topic": topic, "partition": index, "replicas": list(replicas)}
        for (topic, index), replicas in partitions.items()
    ]
    return encode_json({"version": 1, "partitions": items})


def decode_reassignment(data: bytes | None) -> dict[tuple[str, int], tuple[int, ...]]:
    """Decode /admin/reassign_partitions, the target replicas of each partition."""
    items = NodeObject.parse(REASSIGN_PARTITIONS, data).objects("partitions")
    return {(item.text("topic"), item.integer("partition")): item.brokers("replicas") for item in items}


def encode_log_dir_event(broker_id: int) -> bytes:
    """Encode /log_dir_event_notification/log_dir_event_…, which reports a failed log directory."""
    return encode_json({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(path: str, data: bytes | None) -> int:
    """Decode the ID of the broker that reports a failed log directory."""
    return NodeObject.parse(path, data).integer("broker")


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """Encode /latest_producer_id_block."""
    return encode_json(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock | None:
    """Decode /latest_producer_id_block, the last allocated block. Return None if the node is empty."""
    if not data:
        return None
    values = NodeObject.parse(PRODUCER_ID_BLOCK, data)
    block = ProducerIdBlock(
        values.integer("broker"),
        values.integer_text("block_start"),
        values.integer_text("block_end", high=_PRODUCER_ID_BLOCK_END_MAX),
    )
    if block.last < block.first:
        raise values.wrong("block_end", f"{block.last} is before block_start {block.first}")
    return block


def encode_offset(offset: int) -> bytes:
    """Encode a consumer offset as text."""
    return str(offset).encode()


def decode_offset(path: str, data: bytes | None) -> int | None:
    """Decode a consumer offset. Return None if the node has no data."""
    if not data:
        return None
    text = data.decode(errors="replace")
    if not is_number(text.removeprefix("-"), INT64_MAX):
        raise MalformedNode(path, f"{text!r:.60} is not an offset")
    return int(text)


def encode_feature(max_levels: Mapping[str, int], enabled: bool = True, *, version: int = 2) -> bytes:
    """Encode /feature, version 1 (before Kafka 3.3) or 2, which contains the finalized features."""
    lowest = {"min_version_level": 1} if version == 1 else {}
    features = {name: {**lowest, "max_version_level": level} for name, level in max_levels.items()}
    return encode_json({"features": features, "version": version, "status": 1 if enabled else 0})


def decode_feature(data: bytes | None) -> tuple[bool, dict[str, int]]:
    """Decode /feature, versions 1 and 2: whether finalized features are enabled, and their levels."""
    values = NodeObject.parse(FEATURE, data)
    features = values.object("features")
    levels = {name: features.object(name).integer("max_version_level") for name in features}
    return values.integer("status", 0) == 1, levels


def encode_feature_levels(levels: Mapping[str, int]) -> bytes:
    """Encode /kafka_compat/feature_levels. Kafka does not read this node."""
    return encode_json({"version": 1, "levels": dict(levels)})


def decode_feature_levels(data: bytes | None) -> dict[str, int]:
    """Decode /kafka_compat/feature_levels, the feature levels that an operator has set."""
    levels = NodeObject.parse(FEATURE_LEVELS, data).object("levels")
    return {name: levels.integer(name, high=INT16_MAX) for name in levels}


def encode_topic_id(topic_id: "UUID") -> str:
    """Encode a topic ID as in Kafka: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _assignment(replicas: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(brokers) for partition, brokers in replicas.items()}


def _replicas(values: NodeObject) -> dict[int, tuple[int, ...]]:
    assignment: dict[int, tuple[int, ...]] = {}
    for partition in values:
        if not is_number(partition, INT32_MAX) or int(partition) in assignment:
            raise values.wrong(partition, "is not a partition number, or occurs twice")
        assignment[int(partition)] = values.brokers(partition)
    return dict(sorted(assignment.items()))


def _topic_id(path: str, text: str) -> "UUID":
    from uuid import UUID

    try:
        return UUID(bytes=base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
    except ValueError as error:
        raise MalformedNode(path, f"topic_id {text!r:.60} is not a topic ID") from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def node_name(name: str | None) -> str:
    """Return the node name of an entity, or of the default entity if `name` is None."""
    return DEFAULT_ENTITY if name is None else quote(name, safe="").replace("~", "%7E")


def resource_node_name(name: str) -> str:
    """Return the node name of a group or client-metrics resource, which may have any name, such as `..`."""
    return node_name(name).replace(".", "%2E")


def entity_name(node: str) -> str | None:
    """Return the name of the entity with this node name, or None for the default entity."""
    return None if node == DEFAULT_ENTITY else unquote(node)
