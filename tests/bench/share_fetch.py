"""Latency and CPU time of share fetches (KIP-932), compared with Apache Kafka 4.4.0 (KRaft).

python -m tests.bench.share_fetch [--fetches 10000] [--pairs 3] [--compiled]

The brokers run in pairs of runs, in the order A B, B A, A B, … Each run uses a new broker. One member of a
share group fetches from one partition, with batches of 10 records of 100 bytes. Each ShareFetch acknowledges
the 10 records of the former one, so its response waits until the share coordinator has stored that. Before
the measurement, 3,000 fetches let the JVM compile its code. The measurement begins when all records have been
written.

The member is a bare socket. Latencies end when the response has arrived; it is decoded later.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from uuid import UUID, uuid4

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tests.bench import in_pairs
from tests.bench.growth_client import Wire, decoded, frame
from tests.bench.progress import Progress
from tests.bench.sides import Side
from tests.hostile.share_groups import await_share_coordinator, initialize, topic_id_of

TOPIC = GROUP = "shared"
RECORDS = 10
"""Number of records in a batch, and in a fetch."""
VALUE = b"v" * 100
WARM_UP = 3_000
ACCEPT = 1
FLEXIBLE_HEADER_BYTES = 5
STEPS = 3
COLUMNS = {"p50_ms": "p50", "p99_ms": "p99", "cpu_us_per_record": "broker CPU per record"}


def write(address: str, count: int) -> None:
    """Write batches."""
    from confluent_kafka import Producer

    settings = {"linger.ms": 1_000, "batch.num.messages": RECORDS, "enable.idempotence": True, "log_level": 2}
    producer = Producer({"bootstrap.servers": address, **settings})
    for _ in range(count * RECORDS):
        while True:
            try:
                producer.produce(TOPIC, VALUE, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(300)
    if left:
        raise RuntimeError(f"{left} records were not written")


def fetches(topic_id: UUID, count: int) -> Iterator[bytes]:
    """Yield the requests of one member, each of which acknowledges what the former one has acquired."""
    member_id = str(uuid4())
    for epoch in range(count):
        first = (epoch - 1) * RECORDS
        acks = AcknowledgementBatch(
            first_offset=first, last_offset=first + RECORDS - 1, acknowledge_types=[ACCEPT]
        )
        partition = FetchPartition(partition_index=0, acknowledgement_batches=[acks] if epoch else [])
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=member_id,
            share_session_epoch=epoch,
            max_wait_ms=5_000,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=RECORDS,
            batch_size=RECORDS,
            topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
        )
        yield frame(ApiKey.SHARE_FETCH, 2, request)


def check(answer: bytearray, number: int) -> None:
    """Raise RuntimeError unless the fetch has acquired exactly the batch with this number."""
    found = decoded(ShareFetchResponse, 2, answer, FLEXIBLE_HEADER_BYTES)
    ranges = [
        (each.first_offset, each.last_offset)
        for topic in found.responses
        for part in topic.partitions
        for each in part.acquired_records
    ]
    first = number * RECORDS
    if ranges != [(first, first + RECORDS - 1)]:
        raise RuntimeError(f"fetch {number} acquired {ranges}, error {found.error_code}")


def run(side: Side, arguments: argparse.Namespace, progress: Progress) -> dict[str, dict[str, float]]:
    """Start a side, and return the figures."""
    progress.step(f"{side.label}: start")
    side.start()
    port = side.servers[0].port
    try:
        await_share_coordinator(port)
        side.create_topic(TOPIC, 1)
        topic_id = topic_id_of(port, TOPIC)
        initialize(port, GROUP, topic_id, 1)
        count = WARM_UP + arguments.fetches
        progress.step(f"{side.label}: write")
        write(side.address, count)
        progress.step(f"{side.label}: fetch")
        requests = list(fetches(topic_id, count))
        wire = Wire(port)
        answers: list[bytearray] = []
        times_s: list[float] = []
        cpu_before_s = 0.0
        for number, request in enumerate(requests):
            if number == WARM_UP:
                cpu_before_s = side.cpu_seconds()
            began_s = time.perf_counter()
            answers.append(wire.ask(request))
            times_s.append(time.perf_counter() - began_s)
        cpu_s = side.cpu_seconds() - cpu_before_s
        wire.close()
        for number, answer in enumerate(answers):
            check(answer, number)
    finally:
        for server in side.servers:
            server.kill()
    measured_ms = sorted(each * 1_000 for each in times_s[WARM_UP:])
    return {
        "share fetch": {
            "p50_ms": measured_ms[len(measured_ms) // 2],
            "p99_ms": measured_ms[len(measured_ms) * 99 // 100],
            "cpu_us_per_record": cpu_s * 1e6 / (arguments.fetches * RECORDS),
        }
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = in_pairs.new_parser("share_fetch", __doc__)
    parser.add_argument("--fetches", type=int, default=10_000)
    arguments = parser.parse_args(argv)
    in_pairs.compare(
        arguments,
        lambda side, progress: run(side, arguments, progress),
        version="4.4.0",
        steps=STEPS,
        columns=COLUMNS,
        title=f"Share groups: {arguments.fetches} fetches of {RECORDS} records",
    )


if __name__ == "__main__":
    main()
