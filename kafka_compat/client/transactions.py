"""List, describe and abort transactions, as Kafka's admin client does."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from kafka_compat.client.cluster import Cluster, TimedOut
from kafka_compat.client.leaders import ask_leaders, without_errors
from kafka_compat.client.partitions import TopicPartition, by_topic, each_partition
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey

_BACKOFF_S: Final = 0.1
_FENCING_MS: Final = 30_000
_WHY_NOT_FENCED: Final = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "due to cluster authorization failure",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "due to transactional ID authorization failure",
}


class Listing(NamedTuple):
    """A listed transactional ID, with its coordinator, producer ID and state."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


class ListingFailed(KafkaError):
    """Raised if a broker fails to list its transactions."""

    def __init__(self, code: ErrorCode, node_id: int) -> None:
        super().__init__(code, f"ListTransactions failed on broker {node_id}")
        self.node_id = node_id


class Transaction(NamedTuple):
    """The state of a transactional ID. `start_ms` is None if no transaction is open."""

    coordinator_id: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


class ActiveProducer(NamedTuple):
    """An active producer, as reported by a replica of a partition. Unknown values are -1."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int


def list_transactions(
    cluster: Cluster, *, producer_ids: Sequence[int] = (), duration_ms: int = -1, pattern: str | None = None
) -> list[Listing]:
    """List the transactions of `producer_ids` (empty: all) that have been open for more than `duration_ms`
    and whose transactional IDs match the regular expression `pattern`. Raises KafkaError if a broker is too
    old or fails, and the same errors as `Cluster.ask`.
    """
    call = "listTransactions"
    found = []
    for node in cluster.brokers(call):
        version = cluster.version(node.node_id, ApiKey.LIST_TRANSACTIONS, call)
        if duration_ms >= 0 and version < 1:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "The broker is too old for a duration filter: omit it, or set it to -1.",
            )
        if pattern and version < 2:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "The broker is too old for a pattern of transactional IDs: omit it.",
            )
        answer = _until_loaded(
            cluster,
            node.node_id,
            call,
            {
                "producer_id_filters": list(producer_ids),
                "duration_filter": duration_ms,
                "transactional_id_pattern": pattern,
            },
        )
        found += [
            Listing(one.transactional_id, node.node_id, one.producer_id, one.transaction_state)
            for one in answer.transaction_states
        ]
    return found


def _until_loaded(cluster: Cluster, node_id: int, call: str, request: dict[str, Any]) -> Any:
    deadline = time.monotonic() + cluster.timeout_s
    while True:
        answer = cluster.ask_broker(node_id, ApiKey.LIST_TRANSACTIONS, call, **request)
        if answer.error_code not in (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ):
            if answer.error_code:
                raise ListingFailed(known_code(answer.error_code), node_id)
            return answer
        if time.monotonic() > deadline:
            raise TimedOut(f"Timed out waiting for a node assignment. Call: {call}")
        time.sleep(_BACKOFF_S)


def describe_transaction(cluster: Cluster, transactional_id: str) -> Transaction:
    """Return a transactional ID's state. Raises KafkaError if unknown, and the errors of `Cluster.ask`."""
    call = "describeTransactions"
    answer = cluster.ask_coordinator(
        transactional_id,
        ApiKey.DESCRIBE_TRANSACTIONS,
        call,
        of_transactions=True,
        transactional_ids=[transactional_id],
    )
    (one,) = answer.transaction_states
    if one.error_code:
        text = ""
        if one.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            text = f"Unknown transactional ID `{transactional_id}`"
        raise KafkaError(known_code(one.error_code), text)
    return Transaction(
        cluster.coordinator(transactional_id, call, of_transactions=True),
        transactional_id,
        one.producer_id,
        one.producer_epoch,
        one.transaction_state,
        one.transaction_timeout_ms,
        one.transaction_start_time_ms if one.transaction_start_time_ms >= 0 else None,
        tuple((topic.topic, number) for topic in one.topics for number in topic.partitions),
    )


def force_terminate(cluster: Cluster, transactional_id: str) -> None:
    """Abort the open transaction of a transactional ID by fencing its producer, as a new producer would.
    Raises KafkaError if the coordinator rejects the request, and the same errors as `Cluster.ask`.
    """
    what = f"InitProducerId request for transactionalId `{transactional_id}` failed "
    answer = cluster.ask_coordinator(
        transactional_id,
        ApiKey.INIT_PRODUCER_ID,
        "fenceProducer",
        of_transactions=True,
        transactional_id=transactional_id,
        transaction_timeout_ms=_FENCING_MS,
        producer_id=-1,
        producer_epoch=-1,
    )
    if answer.error_code:
        why = _WHY_NOT_FENCED.get(answer.error_code, "due to unexpected error")
        raise KafkaError(known_code(answer.error_code), what + why)


def describe_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], broker_id: int | None = None
) -> dict[TopicPartition, list[ActiveProducer]]:
    """Return the active producers of partitions, as reported by the leaders or by one broker. Raises
    KafkaError if a partition has an error, and the same errors as `Cluster.ask`.
    """
    from kafka_compat.protocol.messages.describe_producers import TopicRequest

    call = "describeProducers"
    wanted = list(partitions)

    def request(topics: dict[str, list[int]]) -> dict[str, Any]:
        asked = [TopicRequest(name=name, partition_indexes=some) for name, some in topics.items()]
        return {"topics": asked}

    if broker_id is None:
        found = ask_leaders(cluster, ApiKey.DESCRIBE_PRODUCERS, call, wanted, request, _producers)
    else:
        asked = request(by_topic(wanted))
        answer = cluster.ask_broker(broker_id, ApiKey.DESCRIBE_PRODUCERS, call, **asked)
        found = {
            place: KafkaError(known_code(code)) if code else value
            for place, code, value in _producers(answer)
        }
    return without_errors(found)


def _producers(answer: Any) -> Iterator[tuple[TopicPartition, int, list[ActiveProducer]]]:
    for place, one in each_partition(answer.topics):
        producers = [
            ActiveProducer(
                each.producer_id,
                each.producer_epoch,
                each.coordinator_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.current_txn_start_offset,
            )
            for each in one.active_producers
        ]
        yield place, one.error_code, producers


def abort_transaction(
    cluster: Cluster, place: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """Write the missing abort marker to a partition. Raises the same errors as `describe_producers`."""
    from kafka_compat.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic

    def request(topics: dict[str, list[int]]) -> dict[str, Any]:
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[
                WritableTxnMarkerTopic(name=name, partition_indexes=some) for name, some in topics.items()
            ],
            coordinator_epoch=coordinator_epoch,
        )
        return {"markers": [marker]}

    def results(answer: Any) -> Iterator[tuple[TopicPartition, int, None]]:
        for place, one in each_partition(answer.markers[0].topics):
            yield place, one.error_code, None

    try:
        call = "abortTransaction"
        without_errors(ask_leaders(cluster, ApiKey.WRITE_TXN_MARKERS, call, [place], request, results))
    except KafkaError as error:
        why = ""
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            where = f"partition {place[0]}-{place[1]}"
            why = f"WriteTxnMarkers request for {where} failed due to cluster authorization error"
        raise KafkaError(error.code, why) from None
