"""kafka-topics: create, list, describe, alter and delete topics."""

import sys
from typing import Any, Final

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.partitions import each_partition
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.directories.checkpoints import encode_topic_id
from kafka_compat.tools import show
from kafka_compat.tools.admin import TIMEOUT_MS, cluster_of
from kafka_compat.tools.failure import (
    Failure,
    check,
    failure_of,
    illegal_argument,
    java_int,
    log,
    of_client,
    report,
)
from kafka_compat.tools.options import Options

LOGGER: Final = "org.apache.kafka.tools.TopicCommand"
_ACTIONS: Final = ("delete", "describe", "list", "alter", "create")
_REPORTS: Final = (
    "under-min-isr-partitions",
    "under-replicated-partitions",
    "unavailable-partitions",
    "at-min-isr-partitions",
)
_OVERRIDES: Final = "topics-with-overrides"
_REPLICAS_MAX: Final = 32767
_CONFIGS_CLI: Final = " (kafka-configs changes settings of topics.)"


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        options = Options("topics", arguments, also="command-property=")
        _check(options)
        cluster = cluster_of(options)
    except Failure as failure:
        return report(failure)
    try:
        actions = {"create": create, "alter": alter, "list": list_topics, "describe": describe}
        (action,) = filter(options.has, _ACTIONS)
        actions.get(action, delete)(cluster, options)
    except Exception as error:
        found = of_client(error)
        print(f"Error while executing topic command : {found.message}", file=options.errors)
        log("ERROR", found.trace, LOGGER)
        return 1
    finally:
        cluster.close()
    return 0


def _check(options: Options) -> None:
    options.exit_for_help(None if options.arguments else "Create, delete, describe, or change a topic.")
    if sum(map(options.has, _ACTIONS)) != 1:
        options.usage_error("Specify one action: --create, --alter, --delete, --describe or --list")
    if options.has("delete-config"):
        print("delete-config is not supported since Kafka 4.0: use kafka-configs.", file=sys.stderr)
    if not options.has("bootstrap-server"):
        raise illegal_argument("--bootstrap-server must be specified")
    if options.has("describe") and options.has("if-exists"):
        if not options.has("topic") and not options.has("topic-id"):
            options.usage_error("--describe requires --topic or --topic-id")
        if options.has("topic") and options.has("topic-id"):
            print("--topic-id overrides --topic")
    if not options.has("list") and not options.has("describe"):
        options.require("topic")
    if options.has("alter"):
        if options.has("config"):
            options.usage_error(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
                f'"[alter]"{_CONFIGS_CLI}'
            )
        options.require("partitions")
    only = {
        "config": ("alter", "create"),
        "partitions": ("alter", "create"),
        "replication-factor": ("create",),
        "replica-assignment": ("alter", "create"),
    }
    for flag, actions in only.items():
        options.forbid(flag, *_but(actions))
    if options.has("create"):
        options.forbid("replica-assignment", "partitions", "replication-factor")
    for flag in (_REPORTS[1], _REPORTS[0], _REPORTS[3], _REPORTS[2]):
        options.forbid(flag, *_but(("describe",)), _OVERRIDES)
    options.forbid(_OVERRIDES, *_but(("describe",)), *_REPORTS)
    options.forbid("if-exists", *_but(("alter", "delete", "describe")))
    options.forbid("if-not-exists", *_but(("create",)))
    options.forbid("exclude-internal", *_but(("list", "describe")))


def _but(actions: tuple[str, ...]) -> list[str]:
    return [action for action in _ACTIONS if action not in actions]


# --- actions


def create(cluster: Cluster, options: Options) -> None:
    """Run --create. Raises Failure if an argument is invalid or the topic cannot be created."""
    from kafka_compat.protocol.messages import create_topics as wire

    name = options.given("topic")
    partitions, replicas = options.integer("partitions"), options.integer("replication-factor")
    assignment = replica_assignment(options)
    configs = _configs(options)
    if replicas is not None and not 1 <= replicas <= _REPLICAS_MAX:
        _warn_of_periods(name)
        raise illegal_argument(f"The replication factor must be from 1 to {_REPLICAS_MAX}")
    if partitions is not None and partitions < 1:
        _warn_of_periods(name)
        raise illegal_argument("The partitions must be greater than 0")
    topic = wire.CreatableTopic(
        name=name,
        num_partitions=-1 if partitions is None else partitions,
        replication_factor=-1 if replicas is None else replicas,
        assignments=[
            wire.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(assignment)
        ],
        configs=[wire.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    try:
        answer = cluster.ask_controller(
            ApiKey.CREATE_TOPICS, "createTopics", topics=[topic], timeout_ms=TIMEOUT_MS
        )
    except Exception:
        _warn_of_periods(name)
        raise
    (made,) = answer.topics
    if made.error_code != ErrorCode.INVALID_CONFIG:
        # Kafka's command checks the settings itself, before it warns.
        _warn_of_periods(name)
    if made.error_code:
        if made.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and options.has("if-not-exists"):
            return
        raise failure_of(made.error_code, made.error_message)
    if options.as_json:
        show.as_json({"created": name, "topic_id": encode_topic_id(made.topic_id)})
    else:
        print(f"Created topic {name}.")


def _warn_of_periods(name: str) -> None:
    if "." in name or "_" in name:
        print("WARNING: Names of metrics have '_' for both '.' and '_': use only one in names of topics.")


def list_topics(cluster: Cluster, options: Options) -> None:
    """Run --list. Raises Failure if --topic is not a valid pattern."""
    names = topics(cluster, options)
    if options.as_json:
        show.as_json(names)
    else:
        print("\n".join(names))


def alter(cluster: Cluster, options: Options) -> None:
    """Run --alter, which adds partitions. Raises Failure if they cannot be added."""
    from kafka_compat.protocol.messages import create_partitions as wire

    count = options.integer("partitions")
    assert count is not None
    assignment = replica_assignment(options)
    names = topics(cluster, options)
    ensure_exists(names, options)
    if not names:
        return
    wanted = []
    sizes = {}
    if assignment:
        sizes = {each.name: len(each.partitions) for each in cluster.metadata(names).topics}
    for name in names:
        first = sizes.get(name, 0)
        added = assignment[first:]
        new = [wire.CreatePartitionsAssignment(broker_ids=brokers) for brokers in added]
        wanted.append(
            wire.CreatePartitionsTopic(name=name, count=count, assignments=new if assignment else None)
        )
    answer = cluster.ask_controller(
        ApiKey.CREATE_PARTITIONS, "createPartitions", topics=wanted, timeout_ms=TIMEOUT_MS
    )
    check(*answer.results, bare=True)
    if options.as_json:
        show.as_json({"partitions": dict.fromkeys(names, count)})


def delete(cluster: Cluster, options: Options) -> None:
    """Run --delete. Raises Failure if a topic cannot be deleted."""
    from kafka_compat.protocol.messages.delete_topics import DeleteTopicState

    names = topics(cluster, options)
    ensure_exists(names, options)
    if names:
        answer = cluster.ask_controller(
            ApiKey.DELETE_TOPICS,
            "deleteTopics",
            topics=[DeleteTopicState(name=name) for name in names],
            topic_names=names,
            timeout_ms=TIMEOUT_MS,
        )
        check(*answer.responses, bare=True)
    if options.as_json:
        show.as_json({"deleted": names})


# --- helpers


def replica_assignment(options: Options) -> list[list[int]]:
    """Parse the brokers of each partition in --replica-assignment. Raises Failure if they are invalid."""
    text = options.value("replica-assignment")
    found: list[list[int]] = []
    for part in filter(None, (text or "").split(",")):
        brokers = [java_int(item.strip()) for item in part.split(":")]
        twice = list(dict.fromkeys(broker for broker in brokers if brokers.count(broker) > 1))
        if twice:
            raise Failure(
                "org.apache.kafka.tools.AdminCommandFailedException",
                f"Duplicate replicas of a partition: {show.joined(twice)}",
            )
        found.append(brokers)
        if len(brokers) != len(found[0]):
            raise Failure(
                "org.apache.kafka.tools.AdminOperationException",
                f"Partition {len(found) - 1} has different replication factor: {brokers}",
            )
    return found


def _configs(options: Options) -> dict[str, str]:
    given = options.values("config")
    if not given:
        return {}
    pairs = [item.split("=") for item in given]
    if any(len(pair) != 2 or not pair[1] for pair in pairs):
        raise illegal_argument('requirement failed: Invalid --config: expected "key=value".')
    configs = {name.strip(): value.strip() for name, value in pairs}
    check_values(configs)
    return configs


def check_values(configs: dict[str, str]) -> None:
    """Check the values of topic settings, as Kafka's command does. Unknown settings are left to the broker,
    which may be newer. Raises Failure if a value is invalid.
    """
    from kafka_compat.config.keys import ConfigError, topic_keys

    for name, value in configs.items():
        if (key := topic_keys().get(name)) is not None:
            try:
                key.parse(value)
            except ConfigError as error:
                raise Failure("org.apache.kafka.common.config.ConfigException", str(error)) from None


# --- topic descriptions (--describe)


_TOPIC = 2
_DEFAULT = 5
_PAGE = 2000


def describe(cluster: Cluster, options: Options) -> None:
    """Run --describe. Raises Failure if a topic does not exist or a request fails."""
    found = _descriptions(cluster, options)
    configs = _settings_of(cluster, [each.name for each in found]) if found else {}
    moves = _moves(cluster, found) if found else {}
    report = [name for name in _REPORTS if options.has(name)]
    described = [_Topic(topic, configs[topic.name], moves, cluster) for topic in found]
    if options.as_json:
        show.as_json([each.as_json(report) for each in described])
        return
    for each in described:
        if not report and (each.configs or not options.has("topics-with-overrides")):
            print(each.line())
        if not options.has("topics-with-overrides"):
            for partition in each.partitions:
                if not report or any(each.matches(partition, name) for name in report):
                    print(each.partition_line(partition))


class _Topic:
    """A topic, with the properties that --describe shows."""

    def __init__(
        self, topic: Any, settings: Any, moves: dict[tuple[str, int], Any], cluster: Cluster
    ) -> None:
        self.name: str = topic.name
        self.topic_id = topic.topic_id
        self.partitions = sorted(topic.partitions, key=lambda each: each.partition_index)
        values = {each.name: each.value for each in settings.configs}
        own = {
            each.name for each in settings.configs if not (each.is_default or each.config_source == _DEFAULT)
        }
        self.configs = {name: values[name] for name in show.java_order(values, show.java_hash) if name in own}
        self._in_sync_min = int(values.get("min.insync.replicas") or 1)
        self._moves = moves
        self._alive = [node.node_id for node in cluster.nodes.values()]

    def replication_factor(self, partition: Any) -> int:
        move = self._moves.get((self.name, partition.partition_index))
        if move is None or not {*move.adding_replicas, *move.removing_replicas} & {*partition.replica_nodes}:
            return len(partition.replica_nodes)
        return len(move.replicas) - len(move.adding_replicas)

    def leader(self, partition: Any) -> int | None:
        return partition.leader_id if partition.leader_id in self._alive else None

    def matches(self, partition: Any, report: str) -> bool:
        in_sync = len(partition.isr_nodes)
        if report == "under-replicated-partitions":
            return self.replication_factor(partition) > in_sync
        if report == "unavailable-partitions":
            return self.leader(partition) is None
        if report == "under-min-isr-partitions":
            return self.leader(partition) is None or in_sync < self._in_sync_min
        return in_sync == self._in_sync_min

    def line(self) -> str:
        topic_id = f"\tTopicId: {encode_topic_id(self.topic_id)}" if self.topic_id.int else ""
        configs = ",".join(
            f"{name}={'null' if value is None else value}" for name, value in self.configs.items()
        )
        return (
            f"Topic: {self.name}{topic_id}\tPartitionCount: {len(self.partitions)}"
            f"\tReplicationFactor: {self.replication_factor(self.partitions[0])}\tConfigs: {configs}"
        )

    def partition_line(self, partition: Any) -> str:
        leader = self.leader(partition)
        move = self._moves.get((self.name, partition.partition_index))
        moving = ""
        if move is not None:
            moving = f"\tAdding Replicas: {show.joined(move.adding_replicas)}"
            moving += f"\tRemoving Replicas: {show.joined(move.removing_replicas)}"
        eligible = getattr(partition, "eligible_leader_replicas", None)
        last = getattr(partition, "last_known_elr", None)
        return (
            f"\tTopic: {self.name}\tPartition: {partition.partition_index}"
            f"\tLeader: {'none' if leader is None else leader}"
            f"\tReplicas: {show.joined(partition.replica_nodes)}"
            f"\tIsr: {show.joined(partition.isr_nodes)}{moving}"
            f"\tElr: {'N/A' if eligible is None else show.joined(eligible)}"
            f"\tLastKnownElr: {'N/A' if last is None else show.joined(last)}"
        )

    def as_json(self, report: list[str]) -> dict[str, Any]:
        return {
            "topic": self.name,
            "topic_id": encode_topic_id(self.topic_id),
            "partition_count": len(self.partitions),
            "replication_factor": self.replication_factor(self.partitions[0]),
            "configs": self.configs,
            "partitions": [
                {
                    "partition": each.partition_index,
                    "leader": self.leader(each),
                    "replicas": list(each.replica_nodes),
                    "isr": list(each.isr_nodes),
                }
                for each in self.partitions
                if not report or any(self.matches(each, name) for name in report)
            ],
        }


def _descriptions(cluster: Cluster, options: Options) -> list[Any]:
    wanted = options.value("topic-id")
    if wanted is not None:
        topic_id = show.uuid_of(wanted)
        if topic_id.int:
            answer = cluster.metadata(None, "listTopics")
            found = [each for each in answer.topics if each.topic_id == topic_id]
            ensure_exists(found, options, "topic-id")
            return found
    names = topics(cluster, options)
    ensure_exists(names, options)
    if not names:
        return []
    cluster.brokers()
    try:
        return _pages(cluster, names, options.integer("partition-size-limit-per-response") or _PAGE)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
    return sorted(cluster.metadata(names, "describeTopics").topics, key=lambda each: str(each.name))


def _pages(cluster: Cluster, names: list[str], limit: int) -> list[Any]:
    """Return topics from DescribeTopicPartitions, the only API with eligible leader replicas (KIP-966)."""
    from kafka_compat.protocol.messages.describe_topic_partitions import TopicRequest

    found: dict[str, Any] = {}
    cursor = None
    while True:
        answer = cluster.ask(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            "describeTopics",
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        for topic in answer.topics:
            check(topic, bare=True)
            if topic.name in found:
                found[topic.name].partitions.extend(topic.partitions)
            else:
                found[topic.name] = topic
        cursor = answer.next_cursor
        if cursor is None:
            return list(found.values())
        names = [name for name in names if name >= cursor.topic_name]


def _settings_of(cluster: Cluster, names: list[str]) -> dict[str, Any]:
    from kafka_compat.protocol.messages.describe_configs import DescribeConfigsResource

    answer = cluster.ask(
        ApiKey.DESCRIBE_CONFIGS,
        "describeConfigs",
        resources=[
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=None)
            for name in names
        ],
    )
    check(*answer.results, bare=True)
    return {result.resource_name: result for result in answer.results}


def _moves(cluster: Cluster, found: list[Any]) -> dict[tuple[str, int], Any]:
    from kafka_compat.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsTopics

    try:
        answer = cluster.ask_controller(
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            "listPartitionReassignments",
            timeout_ms=TIMEOUT_MS,
            topics=[
                ListPartitionReassignmentsTopics(
                    name=topic.name, partition_indexes=[each.partition_index for each in topic.partitions]
                )
                for topic in found
            ],
        )
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {}
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return {}
    check(answer, bare=True)
    return dict(each_partition(answer.topics))


def topics(cluster: Cluster, options: Options) -> list[str]:
    """Return the existing topics that match --topic (default: all), sorted by name."""
    answer = cluster.metadata(None, "listTopics")
    hidden = show.INTERNAL_TOPICS if options.has("exclude-internal") else ()
    found = sorted(each.name for each in answer.topics if each.name not in hidden)
    wanted = options.value("topic")
    if wanted is None:
        return found
    matches = show.topic_filter(wanted).fullmatch
    return [name for name in found if matches(name)]


def ensure_exists(found: list[Any], options: Options, flag: str = "topic") -> None:
    """Raise Failure if the requested topic does not exist, unless --if-exists is set."""
    wanted = options.value(flag)
    if wanted and not found and not options.has("if-exists"):
        if flag == "topic-id":
            raise illegal_argument(f"TopicId '{wanted}' does not exist as expected")
        raise illegal_argument(f"Topic '{wanted}' does not exist as expected")
