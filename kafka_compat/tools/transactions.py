"""kafka-transactions: list and describe transactions, and abort hanging ones."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from kafka_compat.client import transactions as client
from kafka_compat.client.cluster import Cluster
from kafka_compat.client.partitions import TopicPartition, each_partition
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.tools import show
from kafka_compat.tools.admin import connected
from kafka_compat.tools.arguments import Argument, Arguments, check_required, fail, parse
from kafka_compat.tools.failure import check, log, of_client
from kafka_compat.tools.options import KAFKA_VERSION

_PROGRAM: Final = "kafka-transactions.sh"
_PAGE: Final = "transactions"
_COMMIT: Final = "Commit:26b251a451ce941d"
"""Commit of Kafka's sources, which Kafka's argparse4j commands print with their version."""
_TOPIC: Final = {"topic": Argument("String", True), "partition": Argument("Integer", True)}
_COMMANDS: Final[dict[str, dict[str, Argument]]] = {
    "list": {"duration-filter": Argument("Long"), "transactional-id-pattern": Argument("String")},
    "describe": {"transactional-id": Argument("String", True)},
    "describe-producers": {"broker-id": Argument("Integer"), **_TOPIC},
    "abort": {
        **_TOPIC,
        "start-offset": Argument("Long"),
        "producer-id": Argument("Long"),
        "producer-epoch": Argument("Short"),
        "coordinator-epoch": Argument("Integer"),
    },
    "find-hanging": {
        "broker-id": Argument("Integer"),
        "max-transaction-timeout": Argument("Integer"),
        "topic": Argument("String"),
        "partition": Argument("Integer"),
    },
    "forceTerminateTransaction": {"transactionalId": Argument("String", True)},
}
_BASE: Final = {
    "version": Argument("True"),
    "json": Argument("True"),
    "command-config": Argument("String"),
    "bootstrap-server": Argument("String", True),
}
_LISTING_LOGGER: Final = "org.apache.kafka.clients.admin.internals.ListTransactionsHandler"
_MINUTE_MS: Final = 60_000
_TIMEOUT_MINUTES: Final = 15


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if the client's settings are invalid."""
    if arguments[:1] == ["-v"] or "--version" in arguments or arguments[2:3] == ["-v"]:
        print(f"{KAFKA_VERSION} ({_COMMIT})")
        return 0
    base, rest = parse(_PROGRAM, _PAGE, _BASE, arguments, until=tuple(_COMMANDS))
    if not rest:
        fail(_PROGRAM, _PAGE, "too few arguments")
    command, *more = rest
    page = f"{_PAGE}-{command}"
    known = {**_COMMANDS[command], "json": Argument("True")}
    given, _ = parse(_PROGRAM, page, known, more)
    check_required(_PROGRAM, page, known, given)
    check_required(_PROGRAM, _PAGE, _BASE, base)
    given |= {name: value for name, value in base.items() if name == "json"}
    with connected(base["bootstrap-server"], _settings(base)) as cluster:
        _ACTIONS[command](cluster, Arguments(given))
    return 0


def _settings(base: Arguments) -> dict[str, str]:
    from kafka_compat.client.connection_settings import WrongSettings, read_settings

    if "command-config" not in base:
        return {}
    try:
        return read_settings(base["command-config"])
    except (OSError, WrongSettings) as error:
        reason = base["command-config"] if isinstance(error, FileNotFoundError) else str(error)
        _end(f"Failed to load admin client properties: {reason}. Enable debug logging for additional detail.")


def _end(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(1)


@contextmanager
def _or_end(what: str) -> Iterator[None]:
    """If the `with` block fails, print `what` and the reason, and exit."""
    try:
        yield
    except Exception as error:
        _end(f"{what}: {of_client(error).message}. Enable debug logging for additional detail.")


def _table(headers: str, values: Iterable[Iterable[object]]) -> None:
    rows = [headers.split(), *([str(value) for value in row] for row in values)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)))


def _list(cluster: Cluster, given: Arguments) -> None:
    duration_ms = given.integer("duration-filter")
    with _or_end("Failed to list transactions"):
        try:
            found = client.list_transactions(
                cluster,
                duration_ms=-1 if duration_ms is None else duration_ms,
                pattern=given.get("transactional-id-pattern"),
            )
        except client.ListingFailed as error:
            text = f"`ListTransactions` failed on broker {error.node_id} because of an "
            text += f"unexpected error {ErrorCode(error.code).name}"
            log("ERROR", f"[AdminClient clientId=adminclient-1] {text}", _LISTING_LOGGER)
            raise
    if "json" in given:
        show.as_json([one._asdict() for one in found])
        return
    rows = [(one.transactional_id, one.coordinator_id, one.producer_id, one.state) for one in found]
    _table("TransactionalId Coordinator ProducerId TransactionState", rows)


def _describe(cluster: Cluster, given: Arguments) -> None:
    transactional_id = given["transactional-id"]
    with _or_end(f"Failed to describe transactional-id `{transactional_id}`"):
        found = client.describe_transaction(cluster, transactional_id)
    start_ms = found.start_ms
    duration_ms = None if start_ms is None else int(time.time() * 1000) - start_ms
    if "json" in given:
        places = [{"topic": topic, "partition": number} for topic, number in found.partitions]
        show.as_json(found._asdict() | {"duration_ms": duration_ms, "partitions": places})
        return
    partitions = ",".join(f"{topic}-{number}" for topic, number in found.partitions)
    _table(
        "CoordinatorId TransactionalId ProducerId ProducerEpoch TransactionState TransactionTimeoutMs "
        "CurrentTransactionStartTimeMs TransactionDurationMs TopicPartitions",
        [(*found[:6], start_ms, duration_ms, partitions)],
    )


def _describe_producers(cluster: Cluster, given: Arguments) -> None:
    place, broker_id = _place(given), given.integer("broker-id")
    where = "leader" if broker_id is None else f"broker {broker_id}"
    with _or_end(f"Failed to describe producers for partition {place[0]}-{place[1]} on {where}"):
        found = client.describe_producers(cluster, [place], broker_id)[place]
    if "json" in given:
        show.as_json([one._asdict() for one in found])
        return
    rows = [(*one[:5], None if one.start_offset < 0 else one.start_offset) for one in found]
    _table(
        "ProducerId ProducerEpoch LatestCoordinatorEpoch LastSequence LastTimestamp "
        "CurrentTransactionStartOffset",
        rows,
    )


def _place(given: Arguments) -> TopicPartition:
    return given["topic"], int(given["partition"])


def _abort(cluster: Cluster, given: Arguments) -> None:
    place = _place(given)
    if "start-offset" not in given and "producer-id" not in given:
        _end(
            "Specify the transaction: --start-offset for brokers from 3.0 on, or "
            "--coordinator-epoch, --producer-epoch and --producer-id for older ones"
        )
    if "start-offset" in given:
        producer = _producer_at(cluster, place, int(given["start-offset"]))
    else:
        for name in ("producer-epoch", "coordinator-epoch"):
            if name not in given:
                _end(f"Missing required argument --{name}")
        # Use 0 for an unknown epoch (-1). The epoch is unknown if a producer's first transaction hangs.
        coordinator_epoch = max(int(given["coordinator-epoch"]), 0)
        producer = int(given["producer-id"]), int(given["producer-epoch"]), coordinator_epoch
    spec = (
        f"AbortTransactionSpec(topicPartition={place[0]}-{place[1]}, producerId={producer[0]}, "
        f"producerEpoch={producer[1]}, coordinatorEpoch={producer[2]})"
    )
    with _or_end(f"Failed to abort transaction {spec}"):
        client.abort_transaction(cluster, place, *producer)


def _producer_at(cluster: Cluster, place: TopicPartition, start_offset: int) -> tuple[int, int, int]:
    """Return (producer ID, producer epoch, coordinator epoch) of the transaction starting at this offset."""
    where = f"{place[0]}-{place[1]}"
    with _or_end(f"Failed to validate producer state for partition {where}"):
        found = client.describe_producers(cluster, [place])[place]
    for one in found:
        if one.start_offset == start_offset >= 0:
            return one.producer_id, one.producer_epoch, max(one.coordinator_epoch, 0)
    _end(f"No open transaction starts at offset {start_offset} on partition {where}")


def _find_hanging(cluster: Cluster, given: Arguments) -> None:
    if "topic" not in given and "broker-id" not in given:
        _end("`find-hanging` requires --topic or --broker-id")
    if "partition" in given and "topic" not in given:
        _end("--partition requires --topic")
    minutes = given.integer("max-transaction-timeout")
    longest_ms = (_TIMEOUT_MINUTES if minutes is None else minutes) * _MINUTE_MS
    hanging = _hanging(
        cluster, given.get("topic"), given.integer("partition"), given.integer("broker-id"), longest_ms
    )
    now_ms = int(time.time() * 1000)
    if "json" in given:
        show.as_json(
            [
                {"topic": topic, "partition": number, **producer._asdict()}
                for (topic, number), producer in hanging
            ]
        )
        return
    rows = [
        (
            *place,
            *one[:3],
            one.start_offset,
            one.last_timestamp_ms,
            (now_ms - one.last_timestamp_ms) // _MINUTE_MS,
        )
        for place, one in hanging
    ]
    _table(
        "Topic Partition ProducerId ProducerEpoch CoordinatorEpoch StartOffset LastTimestamp Duration(min)",
        rows,
    )


def _force_terminate(cluster: Cluster, given: Arguments) -> None:
    transactional_id = given["transactionalId"]
    with _or_end(f"Failed to force terminate transactionalId `{transactional_id}`"):
        client.force_terminate(cluster, transactional_id)


_ACTIONS: Final = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _force_terminate,
}


# --- hanging transactions (find-hanging)


Hanging = tuple[TopicPartition, client.ActiveProducer]

_AT_ONCE_MAX: Final = 500


def _hanging(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None, longest_ms: int
) -> list[Hanging]:
    """Return hanging transactions in one partition, in a topic, or on a broker. They have had no records for
    more than `longest_ms`, and are unknown to every coordinator.
    """
    if topic is not None and partition is not None:
        places = [(topic, partition)]
    else:
        places = _places(cluster, topic, broker_id)
    broker = "Optional.empty" if broker_id is None else f"Optional[{broker_id}]"
    candidates: list[Hanging] = []
    now_ms = int(time.time() * 1000)
    for start in range(0, len(places), _AT_ONCE_MAX):
        some = places[start : start + _AT_ONCE_MAX]
        with _or_end(f"Failed to describe producers of {len(some)} partitions of broker {broker}"):
            producers = client.describe_producers(cluster, some, broker_id)
        candidates += [
            (place, one)
            for place in some
            for one in producers[place]
            if one.start_offset >= 0 and now_ms - one.last_timestamp_ms > longest_ms
        ]
    return _without_owner(cluster, candidates) if candidates else []


def _places(cluster: Cluster, topic: str | None, broker_id: int | None) -> list[TopicPartition]:
    answer: Any = cluster.metadata(None if topic is None else [topic], "describeTopics")
    with _or_end(f"Failed to describe {len(answer.topics)} topics"):
        check(*answer.topics, bare=True)
    return [
        place
        for place, part in each_partition(answer.topics)
        if broker_id is None or broker_id in part.replica_nodes
    ]


def _without_owner(cluster: Cluster, candidates: list[Hanging]) -> list[Hanging]:
    """Return the transactions that no coordinator knows. Therefore no coordinator will end them."""
    producer_ids = sorted({producer.producer_id for _, producer in candidates})
    with _or_end(f"Failed to list transactions for {len(producer_ids)} producers"):
        listed = client.list_transactions(cluster, producer_ids=producer_ids)
    known: dict[int, client.Transaction] = {}
    for listing in listed:
        with _or_end(f"Failed to describe {len(listed)} transactions"):
            try:
                known[listing.producer_id] = client.describe_transaction(cluster, listing.transactional_id)
            except KafkaError as error:
                if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
    return [
        (place, producer)
        for place, producer in candidates
        if (owner := known.get(producer.producer_id)) is None or place not in owner.partitions
    ]
