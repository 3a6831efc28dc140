"""kafka-topics --describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.directories.checkpoints import encode_topic_id
from kafka_compat.tools import show
from kafka_compat.tools.failure import failure_of
from kafka_compat.tools.topic_names import TIMEOUT_MS, ensure_exists, topics

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.tools.options import Options

_TOPIC = 2
_DEFAULT = 5
_PAGE = 2000
_REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)


def describe(cluster: Cluster, options: Options) -> None:
    """Raises Failure."""
    found = _described(cluster, options)
    configs = _configs(cluster, [each.name for each in found]) if found else {}
    moves = _moves(cluster, found) if found else {}
    report = [name for name in _REPORTS if options.has(name)]
    told = []
    for topic in found:
        settings = configs[topic.name]
        told.append(_Topic(topic, settings, moves, cluster))
    if options.as_json:
        show.as_json([each.as_json(report) for each in told])
        return
    for each in told:
        if not report and (each.configs or not options.has("topics-with-overrides")):
            print(each.line())
        if not options.has("topics-with-overrides"):
            for partition in each.partitions:
                if not report or any(each.matches(partition, name) for name in report):
                    print(each.partition_line(partition))


class _Topic:
    """One topic with all that is told of it."""

    def __init__(
        self, topic: Any, settings: Any, moves: dict[tuple[str, int], Any], cluster: Cluster
    ) -> None:
        self.name: str = topic.name
        self.topic_id = topic.topic_id
        self.partitions = sorted(topic.partitions, key=lambda each: each.partition_index)
        values = {each.name: each.value for each in settings.configs}
        own = {each.name for each in settings.configs if not _is_default(each)}
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


def _is_default(config: Any) -> bool:
    return bool(config.is_default or config.config_source == _DEFAULT)


def _described(cluster: Cluster, options: Options) -> list[Any]:
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
    """By DescribeTopicPartitions, which alone tells of eligible leaders (KIP-966)."""
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
            if topic.error_code:
                raise failure_of(topic.error_code)
            if topic.name in found:
                found[topic.name].partitions.extend(topic.partitions)
            else:
                found[topic.name] = topic
        cursor = answer.next_cursor
        if cursor is None:
            return list(found.values())
        names = [name for name in names if name >= cursor.topic_name]


def _configs(cluster: Cluster, names: list[str]) -> dict[str, Any]:
    from kafka_compat.protocol.messages.describe_configs import DescribeConfigsResource

    answer = cluster.ask(
        ApiKey.DESCRIBE_CONFIGS,
        "describeConfigs",
        resources=[
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=None)
            for name in names
        ],
    )
    for result in answer.results:
        if result.error_code:
            raise failure_of(result.error_code, result.error_message)
    return {result.resource_name: result for result in answer.results}


def _moves(cluster: Cluster, found: list[Any]) -> dict[tuple[str, int], Any]:
    from kafka_compat.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsTopics

    try:
        answer = cluster.ask_controller(
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            "listPartitionReassignments",
            lambda answer: [answer.error_code],
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
    if answer.error_code:
        raise failure_of(answer.error_code, answer.error_message)
    return {(topic.name, each.partition_index): each for topic in answer.topics for each in topic.partitions}
