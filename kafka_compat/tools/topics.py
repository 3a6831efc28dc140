"""kafka-topics: topics are made, listed, described, given more partitions, deleted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.directories.checkpoints import encode_topic_id
from kafka_compat.tools import show
from kafka_compat.tools.admin import cluster_of
from kafka_compat.tools.failure import Failure, failure_of, illegal_argument, log, of_client, report
from kafka_compat.tools.options import Options
from kafka_compat.tools.topic_names import TIMEOUT_MS, ensure_exists, topics

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster

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
_CONFIGS_CLI: Final = " (To alter topic configurations, the kafka-configs tool can be used.)"


def run(arguments: list[str]) -> int:
    """The exit code."""
    try:
        options = Options("topics", arguments, also="command-property=")
        _check(options)
        cluster = cluster_of(options)
    except Failure as failure:
        return report(failure)
    try:
        if options.has("create"):
            create(cluster, options)
        elif options.has("alter"):
            alter(cluster, options)
        elif options.has("list"):
            list_topics(cluster, options)
        elif options.has("describe"):
            from kafka_compat.tools.described_topics import describe

            describe(cluster, options)
        else:
            delete(cluster, options)
    except Exception as error:
        found = of_client(error)
        print(f"Error while executing topic command : {found.message}")
        log("ERROR", found.trace, LOGGER)
        return 1
    finally:
        cluster.close()
    return 0


def _check(options: Options) -> None:
    options.exit_for_help(None if options.arguments else "Create, delete, describe, or change a topic.")
    if sum(map(options.has, _ACTIONS)) != 1:
        options.usage_error(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    if options.has("delete-config"):
        print(
            "delete-config option is no longer supported and deprecated since version 4.0. The config will "
            "be fully removed in future releases.",
            file=sys.stderr,
        )
    if not options.has("bootstrap-server"):
        raise illegal_argument("--bootstrap-server must be specified")
    if options.has("describe") and options.has("if-exists"):
        if not options.has("topic") and not options.has("topic-id"):
            options.usage_error("--topic or --topic-id is required to describe a topic")
        if options.has("topic") and options.has("topic-id"):
            print(
                "Only topic id will be used when both --topic and --topic-id are specified and "
                "topicId is not Uuid.ZERO_UUID"
            )
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


# --- the actions


def create(cluster: Cluster, options: Options) -> None:
    """--create. Raises Failure."""
    from kafka_compat.protocol.messages import create_topics as wire

    name = options.given("topic")
    partitions, replicas = options.integer("partitions"), options.integer("replication-factor")
    assignment = replica_assignment(options)
    configs = _configs(options)
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
            "could collide. To avoid issues it is best to use either, but not both."
        )
    if replicas is not None and not 1 <= replicas <= _REPLICAS_MAX:
        raise illegal_argument(f"The replication factor must be between 1 and {_REPLICAS_MAX} inclusive")
    if partitions is not None and partitions < 1:
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
    answer = cluster.ask_controller(
        ApiKey.CREATE_TOPICS,
        "createTopics",
        lambda answer: [each.error_code for each in answer.topics],
        topics=[topic],
        timeout_ms=TIMEOUT_MS,
    )
    (made,) = answer.topics
    if made.error_code:
        if made.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and options.has("if-not-exists"):
            return
        raise failure_of(made.error_code, made.error_message)
    if options.as_json:
        show.as_json({"created": name, "topic_id": encode_topic_id(made.topic_id)})
    else:
        print(f"Created topic {name}.")


def list_topics(cluster: Cluster, options: Options) -> None:
    """--list. Raises Failure."""
    names = topics(cluster, options)
    if options.as_json:
        show.as_json(names)
    else:
        print("\n".join(names))


def alter(cluster: Cluster, options: Options) -> None:
    """--alter: more partitions. Raises Failure."""
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
        ApiKey.CREATE_PARTITIONS,
        "createPartitions",
        lambda answer: [each.error_code for each in answer.results],
        topics=wanted,
        timeout_ms=TIMEOUT_MS,
    )
    for result in answer.results:
        if result.error_code:
            raise failure_of(result.error_code, result.error_message)
    if options.as_json:
        show.as_json({"partitions": dict.fromkeys(names, count)})


def delete(cluster: Cluster, options: Options) -> None:
    """--delete. Raises Failure."""
    from kafka_compat.protocol.messages.delete_topics import DeleteTopicState

    names = topics(cluster, options)
    ensure_exists(names, options)
    if names:
        answer = cluster.ask_controller(
            ApiKey.DELETE_TOPICS,
            "deleteTopics",
            lambda answer: [each.error_code for each in answer.responses],
            topics=[DeleteTopicState(name=name) for name in names],
            topic_names=names,
            timeout_ms=TIMEOUT_MS,
        )
        for result in answer.responses:
            if result.error_code:
                raise failure_of(result.error_code, result.error_message)
    if options.as_json:
        show.as_json({"deleted": names})


# --- what they share


def replica_assignment(options: Options) -> list[list[int]]:
    """The brokers of each partition, by --replica-assignment. Raises Failure."""
    text = options.value("replica-assignment")
    found: list[list[int]] = []
    for part in filter(None, (text or "").split(",")):
        brokers = [_broker(item.strip()) for item in part.split(":")]
        twice = list(dict.fromkeys(broker for broker in brokers if brokers.count(broker) > 1))
        if twice:
            raise Failure(
                "org.apache.kafka.tools.AdminCommandFailedException",
                f"Partition replica lists may not contain duplicate entries: {show.joined(twice)}",
            )
        found.append(brokers)
        if len(brokers) != len(found[0]):
            raise Failure(
                "org.apache.kafka.tools.AdminOperationException",
                f"Partition {len(found) - 1} has different replication factor: {brokers}",
            )
    return found


def _broker(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Failure("java.lang.NumberFormatException", f'For input string: "{text}"') from None


def _configs(options: Options) -> dict[str, str]:
    """Those of --config; they are checked before a broker is asked. Raises Failure."""
    given = options.values("config")
    if not given:
        return {}
    pairs = [item.split("=") for item in given]
    if any(len(pair) != 2 or not pair[1] for pair in pairs):
        raise illegal_argument(
            "requirement failed: Invalid topic config: all configs to be added must be in the format "
            '"key=val".'
        )
    configs = {name.strip(): value.strip() for name, value in pairs}
    check_values(configs)
    return configs


def check_values(configs: dict[str, str]) -> None:
    """Kafka's command checks values of topics' settings itself; of names that are unknown here the broker
    judges, which may be newer. Raises Failure.
    """
    from kafka_compat.config.keys import ConfigError, topic_keys

    for name, value in configs.items():
        if (key := topic_keys().get(name)) is not None:
            try:
                key.parse(value)
            except ConfigError as error:
                raise Failure("org.apache.kafka.common.config.ConfigException", str(error)) from None
