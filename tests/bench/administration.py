"""Speed of administration: topics of 10,000 partitions, and the first group and transaction of a new broker.

python -m tests.bench.administration [--partitions 10000] [--pairs 3] [--only NAME ...] [--compiled] [--json]

This broker and Apache Kafka 3.9.1 (KRaft, the heap of its start script) are compared in pairs of runs, in the
order A B, B A, A B, … Each run uses a new broker, and these measurements, in this order:

- first-group: from FindCoordinator, which creates the 50 partitions of __consumer_offsets, over JoinGroup and
  SyncGroup, until the first records are fetched. There is no initial rebalance delay.
- first-transaction: from FindCoordinator, which creates the 50 partitions of __transaction_state, until a
  transaction with one record is committed.
- create-one-topic: CreateTopics of one topic with half of the partitions (KRaft permits at most 9,999), until
  every partition has accepted a record. Apache Kafka responds before the logs exist, so the response alone
  would not be comparable.
- create-partitions: CreatePartitions of the other half, until every new partition has accepted a record.
- metadata, metadata-again: Metadata for that topic, for the first and for the tenth time.
- delete-one-topic: DeleteTopics, until Metadata does not contain the topic and no directory has its name.
- create-many-topics, metadata-of-many, delete-many-topics: the same with ten partitions per topic.

Before the measurements that follow first-transaction, the same operations run once with a tenth of the
partitions, so that the JVM has compiled a part of its code. Times are those of the client, which
sends its requests over a plain socket, and CPU times are the broker's user and system time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafka_compat.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafka_compat.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafka_compat.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_compat.protocol.messages.fetch import FetchResponse
from kafka_compat.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka_compat.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka_compat.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.bench import growth_client as client
from tests.bench import in_pairs
from tests.bench.growth_client import Wire, decoded, frame
from tests.bench.progress import Progress
from tests.bench.sides import Side

PARTITIONS_PER_TOPIC = 10
TOPICS_PER_REQUEST = 500
PRODUCED_AT_ONCE = 500
"""Number of partitions in one Produce request."""
STEPS = 12
"""Number of operations with one broker, including the warm-up."""
POLL_S = 0.002
WITHIN_S = 300.0
COLUMNS = {"seconds": "time", "cpu_seconds": "broker CPU"}
WIDE = "wide"
_COORDINATOR_STARTS = (14, 15, 16)
"""Error codes of a coordinator that loads its partition: Apache Kafka responds to FindCoordinator earlier."""

Partition = tuple[str, int]
Named = tuple[str, Callable[[], object]]


def records() -> bytes:
    """A batch with one record of 100 bytes."""
    from kafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 4096)
    builder.append(0, int(time.time() * 1000), None, b"v" * 100, [])
    return bytes(builder.build())


def poll(done: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not done():
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{what}: not within {WITHIN_S:.0f} s")
        time.sleep(POLL_S)  # interval of polling


class Administrator:
    """A client of one broker that measures administrative operations."""

    def __init__(self, side: Side, partitions: int) -> None:
        self._side = side
        self._partitions = partitions
        self._wire = Wire(side.servers[0].port)
        self._records = records()

    def close(self) -> None:
        self._wire.close()

    def operations(self) -> list[Named]:
        """All measurements, in their order."""
        return [
            ("first-group", self.first_group),
            ("first-transaction", self.first_transaction),
            ("", self._warm_up),
            *self._repeated(self._partitions),
        ]

    def _repeated(self, partitions: int) -> list[Named]:
        half = partitions // 2
        many = [f"many-{number:05}" for number in range(partitions // PARTITIONS_PER_TOPIC)]
        all_of_many = [(name, number) for name in many for number in range(PARTITIONS_PER_TOPIC)]
        return [
            ("create-one-topic", lambda: self._create([WIDE], half, [(WIDE, n) for n in range(half)])),
            ("create-partitions", lambda: self._grow(WIDE, half, partitions)),
            ("metadata", lambda: self._metadata([WIDE], partitions)),
            ("", lambda: self._metadata([WIDE], partitions, times=8)),
            ("metadata-again", lambda: self._metadata([WIDE], partitions)),
            ("delete-one-topic", lambda: self._delete([WIDE])),
            ("create-many-topics", lambda: self._create(many, PARTITIONS_PER_TOPIC, all_of_many)),
            ("metadata-of-many", lambda: self._metadata(None, len(all_of_many))),
            ("delete-many-topics", lambda: self._delete(many)),
        ]

    def measured(self, operation: Callable[[], object]) -> dict[str, float]:
        """Run an operation, and return its time and the broker's CPU time."""
        cpu_before_s = self._side.cpu_seconds()
        began_s = time.perf_counter()
        operation()
        elapsed_s = time.perf_counter() - began_s
        return {"seconds": elapsed_s, "cpu_seconds": self._side.cpu_seconds() - cpu_before_s}

    def prepare(self) -> None:
        """Create the topic of the first group and transaction, with one record."""
        client.create_topics(self._wire, ["first"], 1)
        self._write([("first", 0)])

    def _warm_up(self) -> None:
        for _, operation in self._repeated(self._partitions // 10):
            operation()

    # --- the first group and transaction

    def first_group(self) -> None:
        self._find_coordinator("group", 0)
        poll(self._joined, "JoinGroup")
        fetched = decoded(FetchResponse, 11, self._wire.ask(client.fetch("first")))
        if not fetched.responses[0].partitions[0].records:
            raise RuntimeError("fetched no record")

    def _joined(self) -> bool:
        try:
            client.join(self._wire, ["group"])
        except client.Refused as error:
            if error.code not in _COORDINATOR_STARTS:
                raise
            return False
        return True

    def first_transaction(self) -> None:
        name = "transaction"
        self._find_coordinator(name, 1)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        producer_id = producer_epoch = -1

        def initialized() -> bool:
            nonlocal producer_id, producer_epoch
            answer = self._wire.ask(frame(ApiKey.INIT_PRODUCER_ID, 1, request))
            found = decoded(InitProducerIdResponse, 1, answer)
            producer_id, producer_epoch = found.producer_id, found.producer_epoch
            return not found.error_code

        poll(initialized, "InitProducerId")
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="first", partitions=[0])],
        )

        def added() -> bool:
            answer = self._wire.ask(frame(ApiKey.ADD_PARTITIONS_TO_TXN, 1, add))
            found = decoded(AddPartitionsToTxnResponse, 1, answer)
            codes = [
                item.partition_error_code
                for topic in found.results_by_topic_v3_and_below
                for item in topic.results_by_partition
            ]
            return codes == [0]

        poll(added, "AddPartitionsToTxn")
        self._write_in_transaction(name, producer_id, producer_epoch)
        end = EndTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=producer_epoch, committed=True
        )
        poll(
            lambda: not decoded(EndTxnResponse, 1, self._wire.ask(frame(ApiKey.END_TXN, 1, end))).error_code,
            "EndTxn",
        )

    def _write_in_transaction(self, name: str, producer_id: int, producer_epoch: int) -> None:
        from kafka.record.default_records import DefaultRecordBatchBuilder

        builder = DefaultRecordBatchBuilder(2, 0, True, producer_id, producer_epoch, 0, 4096)
        builder.append(0, int(time.time() * 1000), None, b"v" * 100, [])
        data = PartitionProduceData(index=0, records=bytes(builder.build()))
        request = ProduceRequest(
            transactional_id=name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name="first", partition_data=[data])],
        )
        found = decoded(ProduceResponse, 8, self._wire.ask(frame(ApiKey.PRODUCE, 8, request)))
        code = found.responses[0].partition_responses[0].error_code
        if code:
            raise RuntimeError(f"Produce failed with error {code}")

    def _find_coordinator(self, key: str, key_type: int) -> None:
        asking = frame(ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key=key, key_type=key_type))
        poll(
            lambda: not decoded(FindCoordinatorResponse, 1, self._wire.ask(asking)).error_code,
            "FindCoordinator",
        )

    # --- topics

    def _create(self, names: Sequence[str], partitions: int, expected: Sequence[Partition]) -> None:
        for first in range(0, len(names), TOPICS_PER_REQUEST):
            client.create_topics(self._wire, names[first : first + TOPICS_PER_REQUEST], partitions)
        self._write(expected)

    def _write(self, partitions: Sequence[Partition]) -> None:
        """Append a record to each partition. Retry partitions whose log does not exist yet."""
        left = list(partitions)
        deadline_s = time.monotonic() + WITHIN_S
        while left:
            some, left = left[:PRODUCED_AT_ONCE], left[PRODUCED_AT_ONCE:]
            refused = list(self._produce(some))
            left += refused
            if refused:
                if time.monotonic() > deadline_s:
                    raise RuntimeError(f"{len(left)} partitions accept no record")
                time.sleep(POLL_S)  # interval of polling

    def _produce(self, partitions: Sequence[Partition]) -> Iterator[Partition]:
        """Append a record to each partition, and yield those that refused it."""
        topics: dict[str, list[PartitionProduceData]] = {}
        for name, index in partitions:
            topics.setdefault(name, []).append(PartitionProduceData(index=index, records=self._records))
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )
        found = decoded(ProduceResponse, 8, self._wire.ask(frame(ApiKey.PRODUCE, 8, request)))
        for topic in found.responses:
            for item in topic.partition_responses:
                if item.error_code:
                    yield topic.name, item.index

    def _metadata(self, names: Sequence[str] | None, partitions: int, *, times: int = 1) -> None:
        """Request Metadata for topics, or for all topics, and check the number of partitions."""
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        for _ in range(times):
            answer = self._wire.ask(frame(ApiKey.METADATA, 8, request))
            # A partition has at least 30 bytes, and decoding it here would take longer than the response.
            if len(answer) < 30 * partitions:
                raise RuntimeError(f"Metadata of {len(answer)} bytes cannot contain {partitions} partitions")

    def _grow(self, name: str, before: int, count: int) -> None:
        grown = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[grown], timeout_ms=int(WITHIN_S * 1000))
        answer = self._wire.ask(frame(ApiKey.CREATE_PARTITIONS, 1, request))
        for result in decoded(CreatePartitionsResponse, 1, answer).results:
            if result.error_code:
                raise RuntimeError(f"CreatePartitions failed with error {result.error_code}")
        self._write([(name, index) for index in range(before, count)])

    def _delete(self, names: Sequence[str]) -> None:
        for first in range(0, len(names), TOPICS_PER_REQUEST):
            some = list(names[first : first + TOPICS_PER_REQUEST])
            request = DeleteTopicsRequest(topic_names=some, timeout_ms=int(WITHIN_S * 1000))
            answer = self._wire.ask(frame(ApiKey.DELETE_TOPICS, 3, request))
            for result in decoded(DeleteTopicsResponse, 3, answer).responses:
                if result.error_code:
                    raise RuntimeError(f"DeleteTopics failed with error {result.error_code}")
        log_dir = self._side.servers[0].log_dir
        prefix = names[0].split("-")[0] + "-"

        def gone() -> bool:
            known = decoded(MetadataResponse, 8, self._wire.ask(client.metadata(None)))
            if any(topic.name in wanted for topic in known.topics):
                return False
            return not any(
                path.name.startswith(prefix) and not path.name.endswith("-delete")
                for path in log_dir.iterdir()
            )

        wanted = frozenset(names)
        poll(gone, "deletion")


def run(side: Side, partitions: int, only: Sequence[str], progress: Progress) -> dict[str, dict[str, float]]:
    """Start a side, and return the figures of all selected measurements."""
    figures: dict[str, dict[str, float]] = {}
    side.start()
    administrator = Administrator(side, partitions)
    try:
        administrator.prepare()
        for name, operation in administrator.operations():
            progress.step(f"{side.label}: {name or 'warm up'}")
            found = administrator.measured(operation)
            if name and (not only or name in only):
                figures[name] = found
    finally:
        administrator.close()
        for server in side.servers:
            server.kill()
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    parser = in_pairs.new_parser("administration", __doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="print only this one")
    arguments = parser.parse_args(argv)
    in_pairs.compare(
        arguments,
        lambda side, progress: run(side, arguments.partitions, arguments.only, progress),
        version="3.9.1",
        steps=STEPS,
        columns=COLUMNS,
        title=f"Administration, {arguments.partitions} partitions",
    )


if __name__ == "__main__":
    main()
