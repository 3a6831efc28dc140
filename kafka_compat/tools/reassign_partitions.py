"""kafka-reassign-partitions: move replicas between brokers, and between log directories."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka_compat.client.partitions import by_topic, each_partition
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import json_input, show
from kafka_compat.tools import reassign_plan as plans
from kafka_compat.tools.admin import TIMEOUT_MS, connected, settings_of
from kafka_compat.tools.failure import Failure, check, executed, failure_of, in_background, of_client
from kafka_compat.tools.options import Options
from kafka_compat.tools.reassign_plan import Partition, Plan, Replica, Replicas, failed
from kafka_compat.tools.show import name_of

_FILE: Final = "reassignment-json-file"
_NEEDED: Final = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": (_FILE,),
    "verify": (_FILE,),
    "cancel": (_FILE,),
    "list": (),
}
_ALWAYS: Final = ("bootstrap-server", "command-config", "command-property", "json")
_ALSO: Final = {
    "generate": ("disable-rack-aware",),
    "execute": (
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "verify": ("preserve-throttles",),
    "cancel": ("preserve-throttles", "timeout"),
    "list": (),
}
_BROKER_THROTTLES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
_TOPIC_THROTTLES: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_TIMEOUT_MS: Final = 10_000
_PAUSE_S: Final = 0.1


class _Terse(Exception):
    """Raised for an error that is printed without the name of a Java exception."""


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    options = Options("reassign-partitions", arguments, also="command-property=")
    action = _check(options)
    try:
        settings = {"client.id": "reassign-partitions-tool"} | settings_of(options)
        run_action = {
            "generate": _generate,
            "execute": _execute,
            "verify": _verify,
            "cancel": _cancel,
            "list": _list,
        }[action]
        with connected(options.given("bootstrap-server"), settings) as cluster:
            run_action(cluster, options)
        return 0
    except _Terse as error:
        print(error)
    except Exception as error:
        failure = of_client(error)
        print(f"Error: {failure.message}\n{failure.trace}")
    return 1


def _check(options: Options) -> str:
    options.exit_for_help()
    found = [action for action in _NEEDED if options.has(action)]
    if len(found) != 1:
        actions = ", ".join(f"--{action}" for action in _NEEDED)
        options.usage_error(f"Command must include exactly one action: {actions}")
    (action,) = found
    servers, controllers = options.has("bootstrap-server"), options.has("bootstrap-controller")
    if servers and controllers:
        options.usage_error("--bootstrap-server and --bootstrap-controller exclude each other")
    if not servers and not controllers:
        options.usage_error("Specify --bootstrap-server or --bootstrap-controller")
    if controllers:
        options.usage_error(
            "--bootstrap-controller is not supported by this command: give --bootstrap-server"
        )
    options.require(*_NEEDED[action])
    for flag in options.order:
        if flag not in (action, *_ALWAYS, *_NEEDED[action], *_ALSO[action]):
            options.usage_error(f'Option "[{flag}]" can\'t be used with action "[{action}]"')
    return action


def _plan(options: Options) -> Plan:
    return plans.read_plan(json_input.read_text(options.given(_FILE)))


# --- actions


def _list(cluster: Any, options: Options) -> None:
    found = sorted(list_reassignments(cluster).items())
    if options.as_json:
        show.as_json(
            [
                {
                    "topic": topic,
                    "partition": index,
                    "replicas": each.replicas,
                    "adding": each.adding_replicas,
                    "removing": each.removing_replicas,
                }
                for (topic, index), each in found
            ]
        )
        return
    if not found:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for partition, each in found:
        adding = f" adding: {show.joined(each.adding_replicas)}." if each.adding_replicas else ""
        removing = f" removing: {show.joined(each.removing_replicas)}." if each.removing_replicas else ""
        print(f"{name_of(partition)}: replicas: {show.joined(each.replicas)}.{adding}{removing}")


def _generate(cluster: Any, options: Options) -> None:
    text = json_input.read_text(options.given("topics-to-move-json-file"))
    brokers = plans.read_brokers(options.given("broker-list"))
    topics = plans.read_topics(text)
    current = current_replicas(cluster, topics)
    racks = {node.node_id: node.rack for node in cluster.brokers() if node.node_id in brokers}
    proposed = plans.proposal(current, racks, by_racks=not options.has("disable-rack-aware"))
    as_json = plans.as_json(current, places_of(cluster, current))
    if options.as_json:
        print(f'{{"current": {as_json}, "proposed": {plans.as_json(proposed)}}}')
        return
    print(f"Current partition replica assignment\n{as_json}\n")
    print(f"Proposed partition reassignment configuration\n{plans.as_json(proposed)}")


def _execute(cluster: Any, options: Options) -> None:
    text = json_input.read_text(options.given(_FILE))
    throttle = options.integer("throttle", 64)
    folder_throttle = options.integer("replica-alter-log-dirs-throttle", 64)
    timeout_ms = options.integer("timeout", 64)
    plan = plans.read_plan(text)
    proposed = plans.check_plan(plan)
    ongoing = list_reassignments(cluster)
    if ongoing and not options.has("additional"):
        raise _Terse(
            "Another reassignment is active. Use --additional to start this one as well, or, with the same "
            "plan, to change its throttle."
        )
    alive = {node.node_id for node in cluster.brokers()}
    unknown = sorted({broker for replicas in proposed.values() for broker in replicas} - alive)
    if unknown:
        raise plans.failed(f"Unknown broker id {unknown[0]}")
    current = current_of(cluster, proposed)
    as_json = plans.as_json(current, places_of(cluster, current))
    print(f"Current partition replica assignment\n\n{as_json}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    if throttle is not None or folder_throttle is not None:
        print("Warning: Run --verify until the reassignment is complete; it then removes the throttle.")
    if throttle is not None and throttle >= 0:
        found = plans.moves(ongoing, proposed, current)
        set_topics(
            cluster,
            {
                topic: dict(zip(_TOPIC_THROTTLES, plans.throttled(found, topic), strict=True))
                for topic in dict.fromkeys(topic for topic, _ in found)
            },
        )
        rates = dict.fromkeys(_BROKER_THROTTLES[:2], str(throttle))
        brokers = {broker for move in found.values() for broker in move.sources | move.destinations}
        set_brokers(cluster, sorted(brokers), rates)
        print(f"Set the inter-broker throttle to {throttle} B/s")
    if folder_throttle is not None and folder_throttle >= 0:
        moving = sorted({replica.broker for replica in plan.folders})
        set_brokers(cluster, moving, {_BROKER_THROTTLES[2]: str(folder_throttle)})
        print(f"Set the replica-alter-dir throttle to {folder_throttle} B/s")
    keeps_factor = options.has("disallow-replication-factor-change")
    errors = alter(cluster, dict(proposed), keeps_factor=keeps_factor)
    if errors:
        lines = [f"{name_of(partition)}: {errors[partition].message}" for partition in sorted(errors)]
        raise _Terse("\n".join(["Error reassigning partition(s):", *lines]))
    names = ",".join(map(name_of, sorted(proposed)))
    print(f"Successfully started partition reassignment{'s' if len(proposed) > 1 else ''} for {names}")
    _move_folders(cluster, plan.folders, _TIMEOUT_MS if timeout_ms is None else timeout_ms)


def _move_folders(cluster: Any, wanted: dict[Replica, str], timeout_ms: int) -> None:
    """Move replicas between log directories. Retry if a broker does not have a replica yet."""
    deadline = time.monotonic() + timeout_ms / 1000
    left = dict(wanted)
    while left:
        for replica in move_folders(cluster, left):
            place = f"replica {replica.topic}-{replica.partition} with broker {replica.broker} "
            print(f"Successfully started moving log directory to {left.pop(replica)} for {place}")
        if left and time.monotonic() >= deadline:
            moves = f"log directory move{'s' if len(left) > 1 else ''}"
            raise _Terse(f"Timed out before {moves} could be started for: {','.join(map(str, sorted(left)))}")
        if left:
            time.sleep(_PAUSE_S)


def _verify(cluster: Any, options: Options) -> None:
    plan = _plan(options)
    ongoing = list_reassignments(cluster)
    topics = replicas_of(cluster, (topic for (topic, _), _ in plan.partitions))
    print("Status of partition reassignment:")
    for partition, target in sorted(dict(plan.partitions).items()):
        if partition in ongoing:
            print(f"Reassignment of partition {name_of(partition)} is still in progress.")
            continue
        current = (topics.get(partition[0]) or {}).get(partition, [])
        if current == target:
            print(f"Reassignment of partition {name_of(partition)} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {name_of(partition)}: its replicas are "
                f"{show.joined(current)}, not {show.joined(target)}."
            )
    found = folders_of(cluster, plan.folders)
    lines = [_status(replica, plan.folders[replica], *found[replica]) for replica in sorted(plan.folders)]
    print("\n".join(lines))
    moving = any(future is not None for _, future in found.values())
    if not ongoing and not moving and not options.has("preserve-throttles"):
        _clear_throttles(cluster, plan)


def _status(replica: Replica, target: str, current: str | None, future: str | None) -> str:
    partition = f"{replica.topic}-{replica.partition}"
    if current is None:
        return (
            f"Partition {partition} is in no online log dir on broker {replica.broker}: one may be offline."
        )
    if future is None and current == target:
        return f"Reassignment of replica {replica} completed successfully."
    if future is None:
        return (
            f"Partition {partition} on broker {replica.broker} stays in log dir {current}, "
            f"not moving to {target}."
        )
    if future == target:
        return f"Reassignment of replica {replica} is still in progress."
    return f"Partition {partition} on broker {replica.broker} moves to log dir {future}, not to {target}."


def _clear_throttles(cluster: Any, plan: Plan) -> None:
    brokers = {node.node_id for node in cluster.brokers()}
    brokers |= {broker for _, replicas in plan.partitions for broker in replicas}
    listed = sorted(brokers)
    print(f"Clearing broker-level throttles on broker{'s' if len(listed) != 1 else ''} {show.joined(listed)}")
    set_brokers(cluster, listed, dict.fromkeys(_BROKER_THROTTLES))
    topics = show.java_order({topic for (topic, _), _ in plan.partitions}, show.java_hash)
    print(f"Clearing topic-level throttles on topic{'s' if len(topics) != 1 else ''} {','.join(topics)}")
    set_topics(cluster, {topic: dict.fromkeys(_TOPIC_THROTTLES) for topic in topics})


def _cancel(cluster: Any, options: Options) -> None:
    plan = _plan(options)
    timeout_ms = options.integer("timeout", 64)
    found = list_reassignments(cluster, [partition for partition, _ in plan.partitions])
    active = sorted(
        partition for partition, each in found.items() if each.adding_replicas or each.removing_replicas
    )
    plural = "s" if len(active) > 1 else ""
    if active:
        errors = alter(cluster, dict.fromkeys(active))
        if errors:
            lines = [f"{name_of(partition)}: {errors[partition].message}" for partition in sorted(errors)]
            many = "s" if len(errors) > 1 else ""
            raise _Terse("\n".join([f"Error cancelling partition reassignment{many} for:", *lines]))
        print(f"Successfully cancelled partition reassignment{plural} for: {','.join(map(name_of, active))}")
    else:
        print("The plan has no active reassignment.")
    folders = folders_of(cluster, plan.folders)
    moving = {
        replica: current
        for replica, (current, future) in folders.items()
        if current is not None and future is not None
    }
    if moving:
        _move_folders(cluster, moving, _TIMEOUT_MS if timeout_ms is None else timeout_ms)
    else:
        print("The plan has no active move.", end="")
    if not options.has("preserve-throttles"):
        _clear_throttles(cluster, plan)


# --- requests to brokers


_TOPIC: Final = 2
_BROKER: Final = 4
_SET: Final = 0
_DELETE: Final = 1
_UNKNOWN_TOPIC: Final = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"


def list_reassignments(cluster: Any, partitions: Iterable[Partition] | None = None) -> dict[Partition, Any]:
    """Return ongoing reassignments of these partitions (None: all). Raises Failure if the request fails."""
    from kafka_compat.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsTopics

    asked = None
    if partitions is not None:
        asked = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(sorted(partitions)).items()
        ]
    call = "listPartitionReassignments"
    answer = _controller(cluster, ApiKey.LIST_PARTITION_REASSIGNMENTS, call, topics=asked)
    return dict(each_partition(answer.topics))


def replicas_of(cluster: Any, topics: Iterable[str]) -> dict[str, Replicas | None]:
    """Map each topic to its replicas, or to None if the topic is unknown. Raises Failure for other errors."""
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
    """Return the replicas of all partitions of these topics. Raises Failure if a topic is unknown."""
    found: Replicas = {}
    for topic, replicas in replicas_of(cluster, topics).items():
        if replicas is None:
            raise executed(Failure(_UNKNOWN_TOPIC, f"Topic {topic} not found."))
        found |= replicas
    return found


def current_of(cluster: Any, partitions: Iterable[Partition]) -> Replicas:
    """Return the replicas of these partitions. Raises Failure if a partition is unknown."""
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
    """Start reassignments, or cancel those whose value is None. Return the errors by partition.
    `keeps_factor` rejects changes to the replication factor (KIP-860). Raises Failure if the request fails.
    """
    from kafka_compat.protocol.messages.alter_partition_reassignments import (
        ReassignablePartition,
        ReassignableTopic,
    )

    call = "alterPartitionReassignments"
    key = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    if keeps_factor and cluster.version(cluster.controller_id, key, call) < 1:
        too_old = Failure(
            "org.apache.kafka.common.errors.UnsupportedVersionException",
            "The broker is too old for AllowReplicationFactorChange in AlterPartitionReassignments: update "
            "it, or omit --disallow-replication-factor-change",
        )
        return dict.fromkeys(wanted, too_old)
    topics = [
        ReassignableTopic(
            name=topic,
            partitions=[
                ReassignablePartition(partition_index=index, replicas=wanted[topic, index])
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(sorted(wanted)).items()
    ]
    answer = _controller(cluster, key, call, allow_replication_factor_change=not keeps_factor, topics=topics)
    return {
        place: failure_of(each.error_code, each.error_message)
        for place, each in each_partition(answer.responses)
        if each.error_code
    }


def _controller(cluster: Any, key: ApiKey, call: str, **request: Any) -> Any:
    with in_background():
        answer = cluster.ask_controller(key, call, timeout_ms=TIMEOUT_MS, **request)
    check(answer)
    return answer


def set_topics(cluster: Any, configs: Mapping[str, Mapping[str, str | None]]) -> None:
    """Set topic settings, or remove those whose value is None. Raises Failure if the request fails."""
    if configs:
        request = {"resources": [_resource(_TOPIC, name, values) for name, values in configs.items()]}
        call = "incrementalAlterConfigs"
        check(*cluster.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, call, **request).responses)


def set_brokers(cluster: Any, brokers: Iterable[int], values: Mapping[str, str | None]) -> None:
    """Set broker settings, or remove those whose value is None. Raises Failure if a request fails."""
    for broker in brokers:
        request = {"resources": [_resource(_BROKER, str(broker), values)]}
        call = "incrementalAlterConfigs"
        check(*cluster.ask_broker(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, call, **request).responses)


def _resource(kind: int, name: str, values: Mapping[str, str | None]) -> Any:
    from kafka_compat.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

    configs = [
        AlterableConfig(name=key, value=value, config_operation=_DELETE if value is None else _SET)
        for key, value in values.items()
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def folders_of(cluster: Any, replicas: Iterable[Replica]) -> dict[Replica, tuple[str | None, str | None]]:
    """Return the current and the future log directory of each replica. A missing directory is None."""
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
            for place, each in each_partition(folder.topics):
                replica = Replica(broker, *place)
                here, future = found.get(replica, (None, None))
                if each.is_future_key:
                    found[replica] = here, folder.log_dir
                else:
                    found[replica] = folder.log_dir, future
    return found


def places_of(cluster: Any, replicas: Replicas) -> dict[Replica, str]:
    """Return the log directories of all replicas of these partitions on live brokers."""
    alive = {node.node_id for node in cluster.brokers()}
    wanted = [
        Replica(broker, topic, index)
        for (topic, index), brokers in replicas.items()
        for broker in brokers
        if broker in alive
    ]
    return {each: here for each, (here, _) in folders_of(cluster, wanted).items() if here is not None}


def move_folders(cluster: Any, wanted: Mapping[Replica, str]) -> list[Replica]:
    """Start moving replicas, and return those that are moving. Raises Failure if a move is rejected."""
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
