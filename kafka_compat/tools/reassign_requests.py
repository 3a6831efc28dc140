"""What kafka-reassign-partitions asks of brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka_compat.client.partitions import by_topic
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools.failure import Failure, check, executed, failure_of, in_background
from kafka_compat.tools.reassign_plan import Partition, Replica, Replicas, failed, name_of
from kafka_compat.tools.topic_names import TIMEOUT_MS

_TOPIC: Final = 2
_BROKER: Final = 4
_SET: Final = 0
_DELETE: Final = 1
_UNKNOWN_TOPIC: Final = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"


def ongoing(cluster: Any, partitions: Iterable[Partition] | None = None) -> dict[Partition, Any]:
    """The moves between brokers that are under way, of all partitions with None. Raises Failure."""
    from kafka_compat.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsTopics

    asked = None
    if partitions is not None:
        asked = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(sorted(partitions)).items()
        ]
    answer = _controller(
        cluster,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        "listPartitionReassignments",
        {"topics": asked, "timeout_ms": TIMEOUT_MS},
    )
    return {(topic.name, each.partition_index): each for topic in answer.topics for each in topic.partitions}


def replicas_of(cluster: Any, topics: Iterable[str]) -> dict[str, Replicas | None]:
    """The replicas of the partitions of these topics; None for topics that are not there. Raises Failure."""
    names = sorted(set(topics))
    found: dict[str, Replicas | None] = {}
    if not names:
        return found
    for topic in cluster.metadata(names, "describeTopics").topics:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            found[topic.name] = None
        elif topic.error_code:
            raise executed(failure_of(topic.error_code))
        else:
            ordered = sorted(topic.partitions, key=lambda each: each.partition_index)
            found[topic.name] = {(topic.name, each.partition_index): each.replica_nodes for each in ordered}
    return found


def current_replicas(cluster: Any, topics: Iterable[str]) -> Replicas:
    """As `replicas_of`, all in one. Raises Failure also for topics that are not there."""
    found: Replicas = {}
    for topic, replicas in replicas_of(cluster, topics).items():
        if replicas is None:
            raise executed(Failure(_UNKNOWN_TOPIC, f"Topic {topic} not found."))
        found |= replicas
    return found


def current_of(cluster: Any, partitions: Iterable[Partition]) -> Replicas:
    """The replicas of these partitions. Raises Failure."""
    wanted = list(partitions)
    found = current_replicas(cluster, (topic for topic, _ in wanted))
    missing = [partition for partition in wanted if partition not in found]
    if missing:
        text = f"Unable to find partition: {', '.join(map(name_of, missing))}"
        raise executed(Failure(_UNKNOWN_TOPIC, text))
    return {partition: found[partition] for partition in wanted}


def alter(
    cluster: Any, wanted: Mapping[Partition, list[int] | None], *, keeps_factor: bool = False
) -> dict[Partition, Failure]:
    """Start moves, or cancel those with None; what did not go. `keeps_factor`: only with as many
    replicas as before (KIP-860). Raises Failure.
    """
    from kafka_compat.protocol.messages.alter_partition_reassignments import (
        ReassignablePartition,
        ReassignableTopic,
    )

    call = "alterPartitionReassignments"
    if (
        keeps_factor
        and cluster.version(cluster.controller_id, ApiKey.ALTER_PARTITION_REASSIGNMENTS, call) < 1
    ):
        return dict.fromkeys(wanted, _no_such_option())
    answer = _controller(
        cluster,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        call,
        {
            "timeout_ms": TIMEOUT_MS,
            "allow_replication_factor_change": not keeps_factor,
            "topics": [
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(partition_index=index, replicas=wanted[topic, index])
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(sorted(wanted)).items()
            ],
        },
    )
    return {
        (topic.name, each.partition_index): failure_of(each.error_code, each.error_message)
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code
    }


def _no_such_option() -> Failure:
    return Failure(
        "org.apache.kafka.common.errors.UnsupportedVersionException",
        "The broker does not support the AllowReplicationFactorChange option for the "
        "AlterPartitionReassignments API. Consider re-sending the request without the option or updating the "
        "server version",
    )


def _controller(cluster: Any, key: ApiKey, call: str, request: dict[str, Any]) -> Any:
    with in_background():
        answer = cluster.ask_controller(key, call, lambda answer: [answer.error_code], **request)
    check(answer)
    return answer


def set_topics(cluster: Any, configs: Mapping[str, Mapping[str, str | None]]) -> None:
    """Settings of topics; None removes one. Raises Failure."""
    if configs:
        request = {"resources": [_resource(_TOPIC, name, values) for name, values in configs.items()]}
        call = "incrementalAlterConfigs"
        _configured(cluster.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, call, **request))


def set_brokers(cluster: Any, brokers: Iterable[int], values: Mapping[str, str | None]) -> None:
    """The same settings of several brokers; None removes one. Raises Failure."""
    for broker in brokers:
        request = {"resources": [_resource(_BROKER, str(broker), values)]}
        call = "incrementalAlterConfigs"
        _configured(cluster.ask_broker(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, call, **request))


def _resource(kind: int, name: str, values: Mapping[str, str | None]) -> Any:
    from kafka_compat.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

    configs = [
        AlterableConfig(name=key, value=value, config_operation=_DELETE if value is None else _SET)
        for key, value in values.items()
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def _configured(answer: Any) -> None:
    for result in answer.responses:
        check(result)


def folders_of(cluster: Any, replicas: Iterable[Replica]) -> dict[Replica, tuple[str | None, str | None]]:
    """The log directories where replicas are, and those where they are going. Raises Failure."""
    from kafka_compat.protocol.messages.describe_log_dirs import DescribableLogDirTopic

    wanted = list(replicas)
    found: dict[Replica, tuple[str | None, str | None]] = dict.fromkeys(wanted, (None, None))
    for broker in sorted({each.broker for each in wanted}):
        mine = by_topic(sorted((each.topic, each.partition) for each in wanted if each.broker == broker))
        answer = cluster.ask_broker(
            broker,
            ApiKey.DESCRIBE_LOG_DIRS,
            "describeReplicaLogDirs",
            topics=[DescribableLogDirTopic(topic=topic, partitions=parts) for topic, parts in mine.items()],
        )
        for folder in answer.results:
            for topic in folder.topics:
                for each in topic.partitions:
                    replica = Replica(broker, topic.name, each.partition_index)
                    here, future = found.get(replica, (None, None))
                    if each.is_future_key:
                        found[replica] = here, folder.log_dir
                    else:
                        found[replica] = folder.log_dir, future
    return found


def places_of(cluster: Any, replicas: Replicas) -> dict[Replica, str]:
    """The log directories of all replicas of these partitions that are on living brokers. Raises Failure."""
    alive = {node.node_id for node in cluster.brokers()}
    wanted = [
        Replica(broker, topic, index)
        for (topic, index), brokers in replicas.items()
        for broker in brokers
        if broker in alive
    ]
    return {each: here for each, (here, _) in folders_of(cluster, wanted).items() if here is not None}


def move_folders(cluster: Any, wanted: Mapping[Replica, str]) -> list[Replica]:
    """Start moves between log directories; those that are started. Raises Failure."""
    from kafka_compat.protocol.messages.alter_replica_log_dirs import (
        AlterReplicaLogDir,
        AlterReplicaLogDirTopic,
    )

    started = []
    for broker in sorted({each.broker for each in wanted}):
        folders: dict[str, list[Partition]] = {}
        for each, folder in wanted.items():
            if each.broker == broker:
                folders.setdefault(folder, []).append((each.topic, each.partition))
        answer = cluster.ask_broker(
            broker,
            ApiKey.ALTER_REPLICA_LOG_DIRS,
            "alterReplicaLogDirs",
            dirs=[
                AlterReplicaLogDir(
                    path=folder,
                    topics=[
                        AlterReplicaLogDirTopic(name=topic, partitions=indexes)
                        for topic, indexes in by_topic(sorted(partitions)).items()
                    ],
                )
                for folder, partitions in folders.items()
            ],
        )
        for topic in answer.results:
            for result in topic.partitions:
                replica = Replica(broker, topic.topic_name, result.partition_index)
                if not result.error_code:
                    started.append(replica)
                elif result.error_code != ErrorCode.REPLICA_NOT_AVAILABLE:
                    failure = failed(f"Failed to alter dir for {replica}")
                    failure.cause = executed(failure_of(result.error_code))
                    raise failure
    return sorted(started)
