"""kafka-leader-election: elect preferred leaders, or unclean leaders (replicas that are not in sync)."""

from typing import Any, Final

from kafka_compat.client.cluster import TimedOut
from kafka_compat.client.partitions import TopicPartition, by_topic
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import json_input, show
from kafka_compat.tools.admin import connected, settings_of
from kafka_compat.tools.failure import Failure, executed, failure_of, of_client, report
from kafka_compat.tools.options import Options

_FAILED: Final = "org.apache.kafka.tools.AdminCommandFailedException"
_KINDS: Final = ("PREFERRED", "UNCLEAN")
_WAYS: Final = ("topic", "all-topic-partitions", "path-to-json-file")


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        options = Options("leader-election", arguments, also="command-property=")
        options.exit_for_help()
        kind = _check(options)
        partitions = _partitions(options)
        config = "command-config"
        if options.has("admin.config"):
            print("Option --admin.config is deprecated: use --command-config.")
            config = "admin.config"
        settings = {"default.api.timeout.ms": "30000", "request.timeout.ms": "15000"}
        settings |= settings_of(options, config)
        with connected(options.given("bootstrap-server"), settings) as cluster:
            _elect(cluster, options, kind, partitions)
    except Exception as error:
        return report(of_client(error))
    return 0


def _check(options: Options) -> int:
    missing = [name for name in ("bootstrap-server", "election-type") if not options.has(name)]
    if missing:
        raise Failure(_FAILED, f"Missing required option(s): {', '.join(missing)}")
    options.forbid("admin.config", "command-config")
    if sum(map(options.has, _WAYS)) != 1:
        text = "Specify one of these options: "
        raise Failure(_FAILED, text + ", ".join(_WAYS))
    if options.has("topic") and not options.has("partition"):
        raise Failure(_FAILED, "Missing required option(s): partition")
    if not options.has("topic") and options.has("partition"):
        raise Failure(_FAILED, "Option partition is only allowed if topic is used")
    kind = options.given("election-type")
    if kind.upper() not in _KINDS:
        text = f"Value [{kind}] is not one of [[PREFERRED,UNCLEAN]]"
        raise Failure(
            "joptsimple.OptionArgumentConversionException",
            f"Cannot parse argument '{kind}' of option election-type",
            Failure("joptsimple.ValueConversionException", text),
        )
    return _KINDS.index(kind.upper())


def _partitions(options: Options) -> list[TopicPartition] | None:
    if options.has("topic"):
        index = options.integer("partition")
        assert index is not None
        return [(options.given("topic"), index)]
    if not options.has("path-to-json-file"):
        return None
    try:
        value = json_input.parsed(json_input.read_text(options.given("path-to-json-file")))
    except Failure as failure:
        raise Failure("java.lang.RuntimeException", str(failure), failure) from None
    if value is None:
        raise json_input.admin_error("Replica election data is empty")
    top = json_input.fields(value)
    if "partitions" not in top:
        raise json_input.admin_error('Replica election data is missing "partitions" field')
    found = [
        (json_input.field(item, "topic", str), json_input.field(item, "partition", int))
        for item in map(json_input.fields, json_input.items(top["partitions"]))
    ]
    twice = {each for each in found if found.count(each) > 1}
    if twice:
        names = ", ".join(f"{topic}-{index}" for topic, index in show.java_order(twice, show.partition_hash))
        raise json_input.admin_error(f"Replica election data contains duplicate partitions: [{names}]")
    return found


def _elect(cluster: Any, options: Options, kind: int, partitions: list[TopicPartition] | None) -> None:
    from kafka_compat.protocol.messages.elect_leaders import TopicPartitions

    asked = [
        TopicPartitions(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(partitions or ()).items()
    ]
    try:
        answer = cluster.ask_controller(
            ApiKey.ELECT_LEADERS,
            "electLeaders",
            election_type=kind,
            topic_partitions=None if partitions is None else asked,
            timeout_ms=int(cluster.timeout_s * 1000),
        )
    except TimedOut as error:
        text = "Timeout waiting for election results"
        print(text)
        raise Failure(_FAILED, text, of_client(error)) from None
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        text = "Not authorized to perform leader election"
        print(text)
        raise Failure(_FAILED, text)
    if answer.error_code:
        failure = executed(failure_of(answer.error_code))
        raise Failure("java.lang.RuntimeException", str(failure), failure)
    _show(options, _KINDS[kind], answer.replica_election_results)


def _show(options: Options, kind: str, topics: list[Any]) -> None:
    found = {(topic.topic, each.partition_id): each for topic in topics for each in topic.partition_result}
    order = show.java_order(found, show.partition_hash)
    elected = [each for each in order if not found[each].error_code]
    needless = [each for each in order if found[each].error_code == ErrorCode.ELECTION_NOT_NEEDED]
    failed = {
        each: failure_of(found[each].error_code, found[each].error_message)
        for each in order
        if each not in elected and each not in needless
    }
    if options.as_json:
        show.as_json(
            {
                "elected": [show.name_of(each) for each in elected],
                "not_needed": [show.name_of(each) for each in needless],
                "failed": {show.name_of(each): str(failure) for each, failure in failed.items()},
            }
        )
    else:
        if elected:
            names = ", ".join(map(show.name_of, elected))
            print(f"Successfully completed leader election ({kind}) for partitions {names}")
        if needless:
            print(f"Valid replica already elected for partitions {', '.join(map(show.name_of, needless))}")
        for each, failure in failed.items():
            print(f"Error completing leader election ({kind}) for partition: {show.name_of(each)}: {failure}")
    if failed:
        whole = Failure(_FAILED, f"{len(failed)} replica(s) could not be elected")
        whole.suppressed = list(failed.values())
        raise whole
