"""Check of a cluster's state in ZooKeeper: what must be finished or changed before brokers are replaced.
No I/O.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafka_compat.config.inter_broker_protocol import SETTING, parse_version
from kafka_compat.config.keys import ConfigError, broker_keys
from kafka_compat.config.topic import ConflictingTopicConfig, UnknownTopicConfig, check_topic_config
from kafka_compat.metadata.features import unsupported_levels
from kafka_compat.migration.findings import CLUSTER, MIRROR, Finding, Level, named
from kafka_compat.migration.settings_check import is_old_format, old_format

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.migration.directories_check import CheckedDirectories
    from kafka_compat.migration.nodes import Nodes
    from kafka_compat.migration.settings_check import CheckedSettings

NODES: Final = "nodes"
PARTITIONS: Final = "partitions"
_TIERED: Final = "remote.storage.enable"


def check_nodes(nodes: Nodes, config: BrokerConfig, where: str) -> list[Finding]:
    """Check the nodes. `config` has the defaults of topics, and `where` is zookeeper.connect."""
    if nodes.cluster_id is None and not nodes.denied:
        text = f"zookeeper.connect={where}: there is no cluster (the node /cluster/id is missing)"
        remedy = "expected the connection string of the brokers, with their chroot, if any"
        return [Finding(CLUSTER, Level.CHANGE, NODES, text, remedy)]
    found = [
        *_readable(nodes),
        *_controller(nodes),
        *_features(nodes),
        *_pending(nodes),
        *_topics(nodes, config),
        *_broker_configs(nodes),
        *_partitions(nodes),
    ]
    text = f"cluster {nodes.cluster_id}: brokers {named(sorted(nodes.brokers))}, {len(nodes.topics)} topics"
    return [*found, Finding(CLUSTER, Level.INFO, NODES, text)]


def _readable(nodes: Nodes) -> Iterator[Finding]:
    for problem in nodes.malformed:
        yield Finding(CLUSTER, Level.CHANGE, NODES, problem, "repair or delete the node")
    if nodes.denied:
        remedy = "run the check with the ZooKeeper login of a broker (kafka.compat.zookeeper.sasl.jaas.file)"
        yield Finding(CLUSTER, Level.UNCHECKED, NODES, f"{named(nodes.denied)}: may not be read", remedy)


def _controller(nodes: Nodes) -> Iterator[Finding]:
    if nodes.kraft_epoch >= 0:
        text = (
            f"/controller has kraftControllerEpoch={nodes.kraft_epoch}: KRaft controllers manage this cluster"
        )
        yield Finding(CLUSTER, Level.CHANGE, NODES, text, f"go back to ZooKeeper, or {MIRROR}")
    elif nodes.has_migration:
        text = "/migration exists: a migration to KRaft was begun"
        remedy = (
            "finish it and mirror the cluster, or undo it as Kafka's documentation says, and delete the node"
        )
        yield Finding(CLUSTER, Level.CHANGE, NODES, text, remedy)
    if nodes.controller_id is None:
        text = "/controller does not exist: no broker is the controller"
        yield Finding(CLUSTER, Level.CHANGE, NODES, text, "find the reason in the brokers' logs")


def _features(nodes: Nodes) -> Iterator[Finding]:
    if nodes.features:
        levels = named(f"{name}={level}" for name, level in sorted(nodes.features.items()))
        text = f"/feature has finalized features: {levels}"
        yield Finding(CLUSTER, Level.CHANGE, NODES, text, "expected none, as in Kafka with ZooKeeper")
    if (unknown := unsupported_levels(nodes.own_levels)) or any(nodes.own_levels.values()):
        levels = named(f"{name}={level}" for name, level in sorted(nodes.own_levels.items()) if level)
        text = f"/kafka_compat/feature_levels: {levels}"
        if unknown:
            yield Finding(
                CLUSTER, Level.CHANGE, NODES, text, "install the version of kafka-compat that set them"
            )
        else:
            remedy = "set them to 0 with `kafka-compat features` before a broker of Apache Kafka returns"
            yield Finding(CLUSTER, Level.DIFFERS, NODES, text, remedy)


def _pending(nodes: Nodes) -> Iterator[Finding]:
    moving = [
        f"{topic.name}-{index}"
        for topic in nodes.topics.values()
        for index in sorted({*topic.adding_replicas, *topic.removing_replicas})
    ]
    if moving:
        text = f"reassignments are pending: {named(moving)}"
        remedy = "wait until kafka-reassign-partitions --list reports none, or cancel them"
        yield Finding(CLUSTER, Level.CHANGE, PARTITIONS, text, remedy)
    for path in nodes.legacy:
        text = f"{path} exists: the controller has not completed a request of an old tool"
        yield Finding(CLUSTER, Level.CHANGE, NODES, text, "wait until the node is gone")
    if nodes.deletions:
        text = f"topics are being deleted: {named(nodes.deletions)}"
        remedy = "start the brokers that have their replicas, and wait until /admin/delete_topics is empty"
        yield Finding(CLUSTER, Level.CHANGE, PARTITIONS, text, remedy)


def _topics(nodes: Nodes, config: BrokerConfig) -> Iterator[Finding]:
    tiered = [name for name, some in nodes.topic_configs.items() if some.get(_TIERED) == "true"]
    if tiered:
        text = f"{_TIERED}=true for topics {named(sorted(tiered))}: their older records are in tiered storage"
        remedy = "mirror these topics to topics without tiered storage, and delete them"
        yield Finding(CLUSTER, Level.CHANGE, NODES, text, remedy)
    for name, overrides in sorted(nodes.topic_configs.items()):
        some = {key: value for key, value in overrides.items() if key != _TIERED}
        try:
            check_topic_config(config, some)
        except (ConfigError, UnknownTopicConfig, ConflictingTopicConfig) as error:
            remedy = "none needed: the broker ignores this setting. To remove it, use kafka-configs"
            yield Finding(CLUSTER, Level.DIFFERS, NODES, f"topic {name}: {error}", remedy)
    formats = defaultdict(list)
    for name, settings in nodes.topic_configs.items():
        if (version := settings.get("message.format.version")) is not None and is_old_format(version):
            formats[version].append(name)
    for version, names in sorted(formats.items()):
        setting = f"message.format.version={version} for topics {named(sorted(names))}"
        yield old_format(CLUSTER, NODES, setting)
    without_id = [topic.name for topic in nodes.topics.values() if topic.topic_id is None]
    if without_id:
        text = f"topics without an ID, created before Kafka 2.8: {named(sorted(without_id))}"
        yield Finding(CLUSTER, Level.DIFFERS, NODES, text, "none needed: the next controller assigns IDs")


def _broker_configs(nodes: Nodes) -> Iterator[Finding]:
    keys = broker_keys()
    for broker, settings in sorted(nodes.broker_configs.items()):
        broker_id = int(broker) if broker.isdecimal() else CLUSTER
        for name, value in sorted(settings.items()):
            key = keys.get(name) or keys.get(_base(name))
            where = f"/config/brokers/{broker}: {name}"
            if key is None:
                text = f"{where}={value}: unknown, and ignored"
                yield Finding(broker_id, Level.DIFFERS, NODES, text, "none needed")
            elif key.sensitive:
                remedy = "set it in server.properties, and delete it with kafka-configs --delete-config"
                text = f"{where}: a password that Kafka encrypted (password.encoder.secret) is not read"
                yield Finding(broker_id, Level.CHANGE, NODES, text, remedy)
            elif not key.has_effect:
                text = f"{where}={value}: has no effect here"
                yield Finding(broker_id, Level.DIFFERS, NODES, text, "none needed: see docs/settings.md")
            else:
                try:
                    key.parse(value)
                except ConfigError as error:
                    text = f"{where}={value}: {error.reason}"
                    yield Finding(broker_id, Level.CHANGE, NODES, text, error.expected)


def _base(name: str) -> str:
    """Return the setting of which `name` is the form for one listener (listener.name.L.SETTING)."""
    parts = name.split(".", 3)
    if name.startswith("listener.name.") and len(parts) == 4:
        return parts[3]
    return name


def _partitions(nodes: Nodes) -> Iterator[Finding]:
    offline, unknown, behind, alone = [], [], defaultdict(list), defaultdict(list)
    for topic in nodes.topics.values():
        for index, replicas in topic.replicas.items():
            place = f"{topic.name}-{index}"
            state = nodes.states.get((topic.name, index))
            if state is None:
                unknown.append(place)
            elif state.leader < 0:
                offline.append(place)
            else:
                for broker_id in replicas:
                    if broker_id not in state.isr:
                        behind[broker_id].append(place)
                if len(replicas) == 1:
                    alone[replicas[0]].append(place)
    if offline:
        remedy = "start the brokers that have their replicas, or elect a leader with kafka-leader-election"
        yield Finding(
            CLUSTER, Level.CHANGE, PARTITIONS, f"partitions without a leader: {named(offline)}", remedy
        )
    if unknown:
        text = f"partitions without a state, whose topics are being created: {named(unknown)}"
        yield Finding(CLUSTER, Level.CHANGE, PARTITIONS, text, "wait until the controller has created them")
    for broker_id, places in sorted(behind.items()):
        text = f"{len(places)} replicas of this broker are not in sync: {named(places)}"
        remedy = "start the broker, or wait: replace a broker only when all replicas are in sync"
        yield Finding(broker_id, Level.CHANGE, PARTITIONS, text, remedy)
    for broker_id, places in sorted(alone.items()):
        text = f"{len(places)} partitions are only on this broker: {named(places)}"
        remedy = "none needed: they are not available while the broker is replaced"
        yield Finding(broker_id, Level.DIFFERS, PARTITIONS, text, remedy)


def check_together(
    nodes: Nodes | None,
    checked: Sequence[CheckedSettings],
    directories: Mapping[int | None, CheckedDirectories],
) -> Iterator[Finding]:
    """Compare the brokers' settings and directories with each other and with the nodes."""
    protocols: dict[str, list[int | None]] = defaultdict(list)
    for each in checked:
        if each.config is not None:
            protocols[each.config.inter_broker_protocol.name].append(each.broker)
    if len(protocols) > 1:
        texts = named(f"{name} on {named(brokers)}" for name, brokers in sorted(protocols.items()))
        remedy = "expected the same on all brokers: complete the change of the protocol first"
        yield Finding(CLUSTER, Level.CHANGE, "settings", f"{SETTING} differs: {texts}", remedy)
    if nodes is None:
        return
    registered = {*nodes.brokers}
    known = {each.broker for each in checked} | {found.broker_id for found in directories.values()}
    if others := sorted(registered - known):
        text = f"brokers {named(others)} are registered, but their server.properties were not given"
        yield Finding(CLUSTER, Level.INFO, "settings", text)
    for broker, found in directories.items():
        yield from _against_nodes(nodes, broker, found)


def check_protocol(checked: Sequence[CheckedSettings], versions: Mapping[int, str]) -> Iterator[Finding]:
    """Compare the brokers' protocol with the Kafka versions of the running brokers."""
    parsed = {broker: parse_version(version) for broker, version in versions.items()}
    oldest, of = min(((each, broker) for broker, each in parsed.items() if each), default=(None, None))
    for each in checked:
        if oldest is None or each.config is None:
            continue
        protocol = parse_version(each.config.inter_broker_protocol.name)
        if protocol is not None and protocol[:2] > oldest[:2]:
            wanted = f"{oldest[0]}.{oldest[1]}"
            is_set = SETTING in each.static
            text = (
                f"{SETTING}={each.static[SETTING]}"
                if is_set
                else f"{SETTING} is not set (3.9 in kafka-compat)"
            )
            text += f", but broker {of} runs Kafka {wanted}"
            yield Finding(
                each.broker, Level.CHANGE, "settings", text, f"set {SETTING}={wanted} on all brokers"
            )


def _against_nodes(nodes: Nodes, broker: int | None, found: CheckedDirectories) -> Iterator[Finding]:
    if found.cluster_id is not None and nodes.cluster_id not in (None, found.cluster_id):
        text = f"meta.properties has cluster.id={found.cluster_id}, but ZooKeeper has {nodes.cluster_id}"
        remedy = "expected the same: check zookeeper.connect and log.dirs"
        yield Finding(broker, Level.CHANGE, "directories", text, remedy)
    other = [
        name
        for name, topic_id in found.topic_ids.items()
        if name in nodes.topics and nodes.topics[name].topic_id not in (None, topic_id)
    ]
    if other:
        text = f"partition.metadata has another topic ID than ZooKeeper: {named(sorted(other))}"
        remedy = (
            "none needed: the broker sets these directories aside (*-stray), and copies the replicas again"
        )
        yield Finding(broker, Level.DIFFERS, "directories", text, remedy)
