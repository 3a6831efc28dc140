"""kafka-delete-records: delete records before given offsets."""

from typing import Any

from kafka_compat.client.leaders import ask_leaders
from kafka_compat.client.partitions import TopicPartition, each_partition
from kafka_compat.errors import KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import json_input, show
from kafka_compat.tools.admin import TIMEOUT_MS, cluster_of
from kafka_compat.tools.failure import Failure, executed, log, of_client, report
from kafka_compat.tools.options import Options


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        options = Options("delete-records", arguments, also="command-property=")
        options.exit_for_help()
        options.require("bootstrap-server", "offset-json-file")
        with cluster_of(options) as cluster:
            _run(cluster, options)
    except Exception as error:
        return report(of_client(error))
    return 0


def _run(cluster: Any, options: Options) -> None:
    offsets = _wanted(json_input.read_text(options.given("offset-json-file")))
    if not options.as_json:
        print("Executing records delete operation")
        print("Records delete operation completed:")
    found = _deleted(cluster, offsets)
    rows: list[dict[str, Any]] = []
    for topic, partition in show.java_order(found, show.partition_hash):
        outcome = found[topic, partition]
        failed = isinstance(outcome, Exception)
        if isinstance(outcome, KafkaError):
            log(
                "ERROR",
                f"[AdminClient clientId={cluster.client_id}] DeleteRecords failed for "
                f"{topic}-{partition}: {outcome.code.name}",
                "org.apache.kafka.clients.admin.internals.DeleteRecordsHandler",
            )
        shown = executed(of_client(outcome)).message if failed else outcome
        name = "error" if failed else "low_watermark"
        rows.append({"topic": topic, "partition": partition, name: shown})
        if not options.as_json:
            print(f"partition: {topic}-{partition}\t{name}: {shown}")
    if options.as_json:
        show.as_json(rows)


def _wanted(text: str) -> dict[TopicPartition, int]:
    value = json_input.parsed(text)
    if value is None:
        raise json_input.admin_error("The file is not valid JSON")
    top = json_input.first_version(value)
    if "partitions" not in top:
        raise json_input.admin_error("Missing partitions field")
    found: dict[TopicPartition, int] = {}
    twice = []
    for item in map(json_input.fields, json_input.items(top["partitions"])):
        partition = json_input.field(item, "topic", str), json_input.field(item, "partition", int)
        offset = json_input.field(item, "offset", int, "Long")
        if partition in found:
            twice.append(partition)
        found[partition] = offset
    if twice:
        names = ",".join(f"{topic}-{index}" for topic, index in show.java_order(twice, show.partition_hash))
        raise Failure(
            "org.apache.kafka.tools.AdminCommandFailedException",
            f"Offset json file contains duplicate topic partitions: {names}",
        )
    return found


def _deleted(cluster: Any, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, Any]:
    from kafka_compat.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic

    return ask_leaders(
        cluster,
        ApiKey.DELETE_RECORDS,
        "deleteRecords",
        offsets,
        lambda topics: {
            "timeout_ms": TIMEOUT_MS,
            "topics": [
                DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsPartition(partition_index=index, offset=offsets[name, index])
                        for index in indexes
                    ],
                )
                for name, indexes in topics.items()
            ],
        },
        lambda answer: (
            (place, each.error_code, each.low_watermark) for place, each in each_partition(answer.topics)
        ),
    )
