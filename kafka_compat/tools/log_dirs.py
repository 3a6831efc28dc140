"""kafka-log-dirs: show the log directories of brokers, and the sizes of their replicas."""

import json
import sys
from typing import Any

from kafka_compat.client.partitions import each_partition
from kafka_compat.errors import known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.admin import connected, settings_of
from kafka_compat.tools.failure import executed, failure_of, in_background, java_int, of_client, report
from kafka_compat.tools.options import Options


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        options = Options("log-dirs", arguments, also="command-property=")
        options.exit_for_help()
        options.require("bootstrap-server", "describe")
        settings = {"client.id": "log-dirs-tool"} | settings_of(options)
        with connected(options.given("bootstrap-server"), settings) as cluster:
            return _run(cluster, options)
    except Exception as error:
        return report(of_client(error))


def _run(cluster: Any, options: Options) -> int:
    topics = set(filter(None, options.given("topic-list").split(",")))
    with in_background():
        alive = [node.node_id for node in cluster.brokers()]
    wanted = [java_int(item) for item in options.given("broker-list").split(",") if item]
    missing = sorted(set(wanted) - set(alive))
    if missing:
        print(
            f"ERROR: Unknown brokers in --broker-list: {show.joined(missing)}. "
            f"Brokers of the cluster: {show.joined(alive)}",
            file=sys.stderr,
        )
        return 1
    asked = sorted(set(wanted)) or alive
    if not options.as_json:
        print("Querying brokers for log directories information")
    report = {"brokers": [_broker(cluster, broker, topics) for broker in asked], "version": 1}
    if options.as_json:
        show.as_json(report)
        return 0
    print(f"Received log directory information from brokers {show.joined(asked)}")
    print(json.dumps(report, separators=(",", ":"), ensure_ascii=False))
    return 0


def _broker(cluster: Any, broker: int, topics: set[str]) -> dict[str, Any]:
    answer = cluster.ask_broker(broker, ApiKey.DESCRIBE_LOG_DIRS, "describeLogDirs", topics=None)
    if answer.error_code:
        raise executed(failure_of(known_code(answer.error_code)))
    folders = {each.log_dir: each for each in answer.results}
    order = show.java_order(folders, show.java_hash, sized=True)
    return {"broker": broker, "logDirs": [_folder(folders[name], topics) for name in order]}


def _folder(folder: Any, topics: set[str]) -> dict[str, Any]:
    replicas = dict(each_partition(folder.topics))
    # Reproduce the order that results from the two hash tables in Kafka's command.
    listed = show.java_order(replicas, show.partition_hash)
    shown = [partition for partition in listed if not topics or partition[0] in topics]
    return {
        "partitions": [
            {
                "partition": f"{name}-{index}",
                "size": replicas[name, index].partition_size,
                "offsetLag": replicas[name, index].offset_lag,
                "isFuture": replicas[name, index].is_future_key,
            }
            for name, index in show.java_order(shown, show.partition_hash)
        ],
        "error": failure_of(folder.error_code).kind if folder.error_code else None,
        "logDir": folder.log_dir,
    }
