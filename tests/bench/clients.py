"""The benchmark's Python clients. Each one runs in a separate process that prints one measurement as JSON.

`python -m tests.bench.clients confluent-produce ADDRESS TOPIC RECORDS SIZE_BYTES`
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

RECORDS_PER_TRANSACTION = 1000
NO_BROKER = "no-broker"
"""An address that stands for librdkafka's mock broker: written in C, in the client's process, without a
disk.
"""
_SAMPLE_EVERY = 100
"""Latency is measured for every hundredth record, so that the measurement costs little."""


def confluent_produce(
    address: str, topic: str, records: int, size_bytes: int, settings: Mapping[str, Any] | None = None
) -> dict[str, float]:
    """Produce as fast as librdkafka accepts records, with default settings (acks=all) except for `settings`.

    A first record is sent before the measurement: an idempotent librdkafka producer often has no connection
    for the InitProducerId request, and retries after half a second, which would dominate the mean latency.
    """
    from confluent_kafka import KafkaException, Producer

    latencies_ms: list[float] = []

    def sampled(error: Any, message: Any) -> None:
        if error is not None:
            raise KafkaException(error)
        latencies_ms.append(message.latency() * 1000)

    given = {"bootstrap.servers": address, "queue.buffering.max.messages": 1_000_000, **(settings or {})}
    producer = Producer(given)
    value = b"v" * size_bytes
    producer.produce(topic, value)
    producer.flush(10)
    produce, poll = producer.produce, producer.poll
    began = time.perf_counter()
    for number in range(records):
        while True:
            try:
                if number % _SAMPLE_EVERY:
                    produce(topic, value)
                else:
                    produce(topic, value, on_delivery=sampled)
                    poll(0)
                break
            except BufferError:
                poll(0.01)
    if producer.flush(60):
        raise RuntimeError("records were not acknowledged within 60 s")
    return _measurement(records, time.perf_counter() - began, latencies_ms)


def confluent_tls_produce(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Like `confluent_produce`, but over TLS. The address ends with a comma and the CA file."""
    address, _, authority = address.partition(",")
    return confluent_produce(address, topic, records, size_bytes, _over_tls(authority))


def confluent_tls_consume(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Like `confluent_consume`, but over TLS. The address ends with a comma and the CA file."""
    address, _, authority = address.partition(",")
    return confluent_consume(address, topic, records, size_bytes, _over_tls(authority))


def _over_tls(authority: str) -> dict[str, str]:
    return {"security.protocol": "SSL", "ssl.ca.location": authority}


def confluent_idempotent(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Like `confluent_produce`, but with enable.idempotence."""
    return confluent_produce(address, topic, records, size_bytes, {"enable.idempotence": True})


def confluent_transactions(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Produce transactions of 1,000 records, one after the other.

    The latency is that of the commit alone, because all records of the transaction are acknowledged before
    it.
    """
    from confluent_kafka import Producer

    brokers = {"test.mock.num.brokers": 1} if address == NO_BROKER else {"bootstrap.servers": address}
    producer = Producer({**brokers, "transactional.id": f"bench-{topic}", "log_level": 3})
    producer.init_transactions(60)
    producer.list_topics(topic, timeout=10)
    value = b"v" * size_bytes
    latencies_ms: list[float] = []
    transactions = max(records // RECORDS_PER_TRANSACTION, 1)
    began = time.perf_counter()
    for _ in range(transactions):
        producer.begin_transaction()
        for _ in range(RECORDS_PER_TRANSACTION):
            producer.produce(topic, value)
        if producer.flush(60):
            raise RuntimeError("records were not acknowledged within 60 s")
        asked = time.perf_counter()
        producer.commit_transaction(60)
        latencies_ms.append((time.perf_counter() - asked) * 1000)
    elapsed_s = time.perf_counter() - began
    return _measurement(transactions * RECORDS_PER_TRANSACTION, elapsed_s, latencies_ms)


def confluent_consume(
    address: str, topic: str, records: int, size_bytes: int, settings: Mapping[str, Any] | None = None
) -> dict[str, float]:
    """Consume `records` records from the start. The measurement starts with the first record.

    With its default queue size, librdkafka stops fetching for a second (fetch.queue.backoff.ms) whenever
    100,000 records are queued, so it would be idle most of the time with any broker.
    """
    from confluent_kafka import Consumer, TopicPartition

    given = {
        "bootstrap.servers": address,
        "group.id": "bench",
        "enable.auto.commit": False,
        "queued.min.messages": 10_000_000,
        "queued.max.messages.kbytes": 1_000_000,
        **(settings or {}),
    }
    consumer = Consumer({**given, "auto.offset.reset": "earliest"})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    return _consume(records, lambda: len(consumer.consume(10_000, timeout=0.2)), consumer.close)


def kafka_python_produce(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Produce with kafka-python's default settings."""
    from kafka import KafkaProducer

    latencies_ms: list[float] = []
    producer = KafkaProducer(bootstrap_servers=address)
    producer.partitions_for(topic)
    value = b"v" * size_bytes
    send = producer.send
    began = time.perf_counter()
    for number in range(records):
        future = send(topic, value)
        if number % _SAMPLE_EVERY == 0:
            sent = time.perf_counter()
            future.add_callback(lambda _, sent=sent: latencies_ms.append((time.perf_counter() - sent) * 1000))
    producer.flush(60)
    elapsed_s = time.perf_counter() - began
    future.get(1)
    producer.close()
    return _measurement(records, elapsed_s, latencies_ms)


def kafka_python_consume(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Consume `records` records from the start. The measurement starts with the first record."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False
    )
    partitions = [
        TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic) or ()
    ]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)

    def poll() -> int:
        return sum(len(batch) for batch in consumer.poll(200, max_records=10_000).values())

    return _consume(records, poll, consumer.close)


def aiokafka_produce(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Produce with aiokafka's default settings (acks=1), on the standard asyncio event loop."""
    import asyncio

    from aiokafka import AIOKafkaProducer

    async def produce() -> dict[str, float]:
        latencies_ms: list[float] = []
        producer = AIOKafkaProducer(bootstrap_servers=address)
        await producer.start()
        await producer.partitions_for(topic)
        value = b"v" * size_bytes
        began = time.perf_counter()
        for number in range(records):
            future = await producer.send(topic, value)
            if number % _SAMPLE_EVERY == 0:
                sent = time.perf_counter()

                def told(_: object, sent: float = sent) -> None:
                    latencies_ms.append((time.perf_counter() - sent) * 1000)

                future.add_done_callback(told)
        await producer.flush()
        elapsed_s = time.perf_counter() - began
        await future
        await producer.stop()
        return _measurement(records, elapsed_s, latencies_ms)

    return asyncio.run(produce())


def bare_echo(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Send the requests of EndToEndLatency over plain sockets: Produce of one record with acks=all and, after
    its response, a Fetch of that record. The latency is the sum of both.
    """
    from kafka.record.default_records import DefaultRecordBatchBuilder

    from kafka_compat.protocol import codec
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.protocol.headers import RequestHeader, encode_request_header
    from kafka_compat.protocol.messages import fetch, produce

    def framed(api_key: ApiKey, version: int, request: object) -> bytes:
        payload = encode_request_header(RequestHeader(api_key, version, 1, "bench"))
        payload += codec.encode(request, version)
        return len(payload).to_bytes(4, "big") + payload

    def ask(frame: bytes) -> bytes:
        connection.sendall(frame)
        answer = connection.recv(65536)
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            answer += connection.recv(65536)
        return answer

    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, size_bytes + 1000)
    builder.append(0, int(time.time() * 1000), None, b"v" * size_bytes, [])
    data = produce.PartitionProduceData(index=0, records=bytes(builder.build()))
    topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
    request = produce.ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=topics)
    one = framed(ApiKey.PRODUCE, 9, request)
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    latencies_ms: list[float] = []
    answer = b""
    began = time.perf_counter()
    for number in range(records):
        wanted = fetch.FetchPartition(partition=0, fetch_offset=number, partition_max_bytes=1 << 20)
        asked = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_epoch=-1,
            topics=[fetch.FetchTopic(topic=topic, partitions=[wanted])],
        )
        frame = framed(ApiKey.FETCH, 12, asked)
        sent = time.perf_counter()
        ask(one)
        answer = ask(frame)
        if number >= records // 10:
            latencies_ms.append((time.perf_counter() - sent) * 1000)
    elapsed_s = time.perf_counter() - began
    last = codec.decode(fetch.FetchResponse, 12, answer, 9).responses[0].partitions[0]
    if last.error_code or last.high_watermark != records or not last.records:
        raise RuntimeError(f"the last record was not fetched: {last}")
    return _measurement(records, elapsed_s, latencies_ms)


def confluent_echo(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Produce one record at a time, and measure the time from produce() until a consumer at the log end has
    received it.
    """
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "acks": "all"})
    settings = {"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer({**settings, "fetch.wait.max.ms": 500, "fetch.error.backoff.ms": 10})
    consumer.assign([TopicPartition(topic, 0, 0)])
    value = b"v" * size_bytes
    latencies_ms: list[float] = []
    began = time.perf_counter()
    for number in range(records + records // 10):
        sent = time.perf_counter()
        producer.produce(topic, value, partition=0)
        producer.poll(0)
        message = consumer.poll(10)
        if message is None or message.error() is not None:
            raise RuntimeError("a record was not consumed within 10 s")
        if number >= records // 10:
            latencies_ms.append((time.perf_counter() - sent) * 1000)
    elapsed_s = time.perf_counter() - began
    producer.flush(10)
    consumer.close()
    return _measurement(records + records // 10, elapsed_s, latencies_ms)


def confluent_one_by_one(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Produce one record at a time, and measure the time from produce() until all in-sync replicas have
    acknowledged it.
    """
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "acks": "all"})
    producer.list_topics(topic, timeout=10)
    value = b"v" * size_bytes
    latencies_ms: list[float] = []
    began = time.perf_counter()
    for number in range(records + records // 10):
        sent = time.perf_counter()
        producer.produce(topic, value)
        if producer.flush(10):
            raise RuntimeError("a record was not acknowledged within 10 s")
        if number >= records // 10:
            latencies_ms.append((time.perf_counter() - sent) * 1000)
    return _measurement(records + records // 10, time.perf_counter() - began, latencies_ms)


def bare_at_500(address: str, topic: str, records: int, size_bytes: int) -> dict[str, float]:
    """Return the latencies of `bare_times`. The rate is fixed, so there is no throughput to compare."""
    times = bare_times(address, topic, records, size_bytes)
    found = _measurement(
        records, times[-1][0] - times[0][0], [latency for _, latency in times[records // 10 :]]
    )
    return {name: value for name, value in found.items() if name != "throughput"}


def bare_times(
    address: str, topic: str, records: int, size_bytes: int, stopping: threading.Event | None = None
) -> list[tuple[float, float]]:
    """Send Produce requests of one record with acks=all over a plain socket, to each partition in turn: one
    request at a time, and at most 500 per second, until the deadline.

    No library's threads and queues affect these times. Return for each request its time in seconds since
    1970, and its latency in ms.
    """
    from confluent_kafka.admin import AdminClient
    from kafka.record.default_records import DefaultRecordBatchBuilder

    from kafka_compat.protocol import codec
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.protocol.headers import RequestHeader, encode_request_header
    from kafka_compat.protocol.messages.produce import (
        PartitionProduceData,
        ProduceRequest,
        ProduceResponse,
        TopicProduceData,
    )

    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, size_bytes + 1000)
    builder.append(0, int(time.time() * 1000), None, b"v" * size_bytes, [])
    batch = bytes(builder.build())
    metadata = AdminClient({"bootstrap.servers": address}).list_topics(topic, timeout=10)
    leaders: dict[int, Any] = {}
    ways = []
    for number, partition in sorted(metadata.topics[topic].partitions.items()):
        data = PartitionProduceData(index=number, records=batch)
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=topics)
        header = encode_request_header(RequestHeader(ApiKey.PRODUCE, 9, 1, "bench"))
        payload = header + codec.encode(request, 9)
        if partition.leader not in leaders:
            broker = metadata.brokers[partition.leader]
            leaders[partition.leader] = socket.create_connection((broker.host, broker.port), 10)
            leaders[partition.leader].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ways.append((leaders[partition.leader], len(payload).to_bytes(4, "big") + payload))
    times: list[tuple[float, float]] = []
    answer = b""
    began = time.perf_counter()
    for number in range(records):
        if stopping is not None and stopping.is_set():
            break
        time.sleep(max(began + number / 500 - time.perf_counter(), 0))  # the pace of 500 requests per second
        connection, frame = ways[number % len(ways)]
        sent_at, sent = time.time(), time.perf_counter()
        connection.sendall(frame)
        answer = connection.recv(65536)
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            answer += connection.recv(65536)
        times.append((sent_at, (time.perf_counter() - sent) * 1000))
    last = codec.decode(ProduceResponse, 9, answer, 9).responses[0].partition_responses[0]
    if last.error_code or last.base_offset < len(times) // len(ways) - 1:
        raise RuntimeError(f"the records were not appended: {last}")
    return times


def bare_until_told(address: str, topic: str, records: int, size_bytes: int) -> dict[str, Any]:
    """Run `bare_times` until standard input is closed, and return {"times": …}."""
    stopping = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=listen, daemon=True).start()
    return {"times": bare_times(address, topic, records, size_bytes, stopping)}


def _consume(records: int, poll: Callable[[], int], close: Callable[[], object]) -> dict[str, float]:
    began = deadline = time.perf_counter()
    deadline += 60
    received = 0
    while received == 0 and time.perf_counter() < deadline:
        received = poll()
    first_poll = received
    began = time.perf_counter()
    while received < records:
        count = poll()
        received += count
        if count == 0 and time.perf_counter() > deadline:
            raise RuntimeError(f"only {received} of {records} records were consumed within 60 s")
    elapsed_s = time.perf_counter() - began
    close()
    measurement = _measurement(received - first_poll, elapsed_s, [])
    return measurement | {"records": float(received)}


def _measurement(records: int, elapsed_s: float, latencies_ms: Sequence[float]) -> dict[str, float]:
    found = {"records": float(records), "seconds": elapsed_s, "throughput": records / elapsed_s}
    if latencies_ms:
        ordered = sorted(latencies_ms)
        found["mean_ms"] = sum(ordered) / len(ordered)
        found["p50_ms"] = ordered[len(ordered) // 2]
        found["p99_ms"] = ordered[len(ordered) * 99 // 100]
    return found


_CLIENTS: dict[str, Callable[[str, str, int, int], dict[str, Any]]] = {
    "confluent-produce": confluent_produce,
    "confluent-idempotent": confluent_idempotent,
    "tls-produce": confluent_tls_produce,
    "tls-consume": confluent_tls_consume,
    "confluent-transactions": confluent_transactions,
    "confluent-consume": confluent_consume,
    "confluent-echo": confluent_echo,
    "confluent-one-by-one": confluent_one_by_one,
    "bare-at-500": bare_at_500,
    "bare-echo": bare_echo,
    "aiokafka-produce": aiokafka_produce,
    "bare-until-told": bare_until_told,
    "kafka-python-produce": kafka_python_produce,
    "kafka-python-consume": kafka_python_consume,
}

if __name__ == "__main__":
    name, given_address, given_topic, count, size = sys.argv[1:]
    print(json.dumps(_CLIENTS[name](given_address, given_topic, int(count), int(size))))
