"""Gain from a second process: `serve --processes 2` compared with one broker, with limited CPU for the
brokers.

`python -m tests.bench.processes [--pairs N] [--cores C] [--seconds S]`

Each broker process is limited to `--cores` of a core, so that the brokers are the bottleneck even on a
machine with two cores that also runs the clients. The supervisor process is not limited, but its CPU time
counts. A run lasts for some seconds and has one or two clients, which use little CPU: plain sockets, one for
each of four partitions, that repeatedly write batches of 100-byte records with acks=all or fetch 64 KiB, and
do not decode the responses. The runs of a pair are in the order A B B A.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.bench.cpu_limit import CpuLimit
from tests.bench.report import Pairs, cell
from tests.bench.sides import compile_sources
from tests.processes.command import Command, cpu_seconds
from tests.support.servers import PROJECT, KafkaCompatBroker

if TYPE_CHECKING:
    from kafka_compat.protocol.api_keys import ApiKey

PARTITIONS = 4
_SIZE_BYTES = 100
_FETCH_BYTES = 64 * 1024
_FILL_RECORDS = 40_000
_IDLE_S = 20.0
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
_METRICS = {"throughput": "throughput", "cpu": "brokers' CPU per record"}


@dataclass(frozen=True)
class Side:
    """One broker, or two brokers of one command. `pids` are all its processes; `limits` are those of its
    brokers.
    """

    name: str
    bootstrap_servers: str
    pids: Sequence[int]
    limits: Sequence[CpuLimit]

    def cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, self.pids))

    def periods(self) -> tuple[int, int]:
        found = [limit.periods() for limit in self.limits]
        return sum(all_of for all_of, _ in found), sum(held for _, held in found)


@dataclass(frozen=True)
class Leg:
    """The result of several concurrent clients."""

    records: int
    seconds: float
    cpu_seconds: float
    held_back: float
    """The share of CPU periods in which the brokers were throttled."""

    def figures(self) -> dict[str, float]:
        return {"throughput": self.records / self.seconds, "cpu": self.cpu_seconds / self.records}


@contextmanager
def one_process(directory: Path, cores: float) -> Iterator[Side]:
    broker = KafkaCompatBroker(directory / "one", _SETTINGS)
    broker.start()
    try:
        with CpuLimit("one", cores) as limit:
            limit.add(broker.pid)
            yield Side("one", broker.address, [broker.pid], [limit])
    finally:
        broker.stop()


@contextmanager
def processes(directory: Path, cores: float, count: int) -> Iterator[Side]:
    with ExitStack() as stack:
        command = stack.enter_context(Command(directory / "several", count, _SETTINGS))
        limits = []
        for number in range(1, count + 1):
            limit = stack.enter_context(CpuLimit(f"several-{number}", cores))
            limit.add(command.pid_of(number))
            limits.append(limit)
        yield Side("several", command.bootstrap_servers, [command.pid, *command.processes()], limits)


def start_seconds(directory: Path, option: str, count: int) -> float:
    """Return the seconds from the command until each broker lists all brokers and a controller, with an empty
    directory.
    """
    command = Command(directory, count, _SETTINGS, option=option)
    began = time.monotonic()
    with command.launched():
        command.wait_registered(set(range(1, count + 1)), ports=range(command.port, command.port + count))
        took = time.monotonic() - began
        command.stop()
    return took


def idle_share(side: Side, seconds: float) -> float:
    """Return the CPU usage of all processes without requests, as a share of a core."""
    before = side.cpu_seconds()
    time.sleep(seconds)  # the period over which idle CPU time is measured
    return (side.cpu_seconds() - before) / seconds


def create_topic(side: Side, name: str, replicas: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": side.bootstrap_servers, "log_level": 2})
    admin.create_topics([NewTopic(name, PARTITIONS, replicas)])[name].result(60)


def leg(side: Side, client: str, clients: int, seconds: float, batch_records: int) -> Leg:
    """Run several clients that start at the same time."""
    command = [sys.executable, "-m", "tests.bench.processes", "--client", client]
    command += ["--batch-records", str(batch_records)]
    started = [
        subprocess.Popen(
            [*command, "--servers", side.bootstrap_servers, "--seconds", str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
        )
        for _ in range(clients)
    ]
    for each in started:
        assert each.stdout is not None and each.stdout.readline() == "ready\n"
    cpu_before, periods_before = side.cpu_seconds(), side.periods()
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    found = [json.loads(each.communicate(timeout=120)[0]) for each in started]
    periods = [after - before for before, after in zip(periods_before, side.periods(), strict=True)]
    return Leg(
        sum(each["records"] for each in found),
        max(each["ended"] for each in found) - min(each["began"] for each in found),
        side.cpu_seconds() - cpu_before,
        periods[1] / max(1, periods[0]),
    )


def _checked(side: Side, client: str, clients: int, seconds: float, batch_records: int) -> Leg:
    """Run the clients, and check that all acknowledged records are stored."""
    before = end_offsets(side)
    done = leg(side, client, clients, seconds, batch_records)
    written = end_offsets(side) - before
    assert client != "produce" or done.records <= written, (done.records, written)
    return done


# --- clients, each in a separate process


def produce(servers: str, seconds: float, batch_records: int) -> dict[str, float]:
    """Write a batch of records to each partition, and the next one after its acknowledgment (acks=all)."""
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
    from kafka_compat.storage.records.records import Record, build_batch

    records = [Record(timestamp=1, key=None, value=b"v" * _SIZE_BYTES)] * batch_records
    batch = memoryview(build_batch(records))

    def request(partition: int) -> bytes:
        data = PartitionProduceData(index=partition, records=batch)
        topics = [TopicProduceData(name="written", partition_data=[data])]
        return _frame(ApiKey.PRODUCE, 9, ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics))

    done = _again_and_again(servers, "written", request, seconds)
    return {"records": done.answers * batch_records, "began": done.began, "ended": done.ended}


def consume(servers: str, seconds: float, _: int) -> dict[str, float]:
    """Fetch the beginning of each partition repeatedly. The number of records is derived from the response
    size.
    """
    from uuid import UUID

    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    def request(partition: int) -> bytes:
        wanted = FetchPartition(
            partition=partition, current_leader_epoch=-1, fetch_offset=0, partition_max_bytes=_FETCH_BYTES
        )
        topics = [FetchTopic(topic="read", topic_id=UUID(int=0), partitions=[wanted])]
        fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=_FETCH_BYTES, topics=topics)
        return _frame(ApiKey.FETCH, 11, fetch)

    done = _again_and_again(servers, "read", request, seconds)
    assert done.answers_bytes > done.answers * _FETCH_BYTES // 2, "a fetch response without records"
    return {"records": done.answers_bytes // _SIZE_BYTES, "began": done.began, "ended": done.ended}


def _frame(api: ApiKey, version: int, request: Any) -> bytes:
    from kafka_compat.protocol import codec
    from kafka_compat.protocol.headers import RequestHeader, encode_request_header

    payload = encode_request_header(RequestHeader(api, version, 1, "bench")) + codec.encode(request, version)
    return len(payload).to_bytes(4, "big") + payload


class _Done(NamedTuple):
    """The number of records and the start and end times, on a clock that all processes share."""

    answers: int
    answers_bytes: int
    began: float
    ended: float


def _again_and_again(servers: str, topic: str, request: Callable[[int], bytes], seconds: float) -> _Done:
    """Keep one request in flight on a connection to each partition's leader."""
    from confluent_kafka.admin import AdminClient

    known = AdminClient({"bootstrap.servers": servers}).list_topics(topic, timeout=30)
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        asked: dict[socket.socket, bytes] = {}
        for number, partition in sorted(known.topics[topic].partitions.items()):
            broker = known.brokers[partition.leader]
            opened = stack.enter_context(socket.create_connection((broker.host, broker.port), 30))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(opened, selectors.EVENT_READ)
            asked[opened] = request(number)
        print("ready", flush=True)
        sys.stdin.readline()
        left_bytes = dict.fromkeys(asked, 0)
        buffer = bytearray(1 << 20)
        answers = answers_bytes = 0
        began = time.monotonic()
        for opened, frame in asked.items():
            opened.sendall(frame)
        while time.monotonic() < began + seconds:
            for key, _ in selector.select(1):
                come = key.fileobj
                assert isinstance(come, socket.socket)
                size_bytes = come.recv_into(buffer)
                if left_bytes[come] == 0:
                    left_bytes[come] = 4 + int.from_bytes(buffer[:4], "big")
                left_bytes[come] -= size_bytes
                answers_bytes += size_bytes
                if left_bytes[come] == 0:
                    answers += 1
                    come.sendall(asked[come])
        return _Done(answers, answers_bytes, began, time.monotonic())


def end_offsets(side: Side) -> int:
    """Return the total number of records in the topic."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": side.bootstrap_servers, "group.id": "bench"})
    places = [TopicPartition("written", partition) for partition in range(PARTITIONS)]
    found = sum(consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)
    consumer.close()
    return int(found)


def _fill(side: Side) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": side.bootstrap_servers})
    for number in range(_FILL_RECORDS):
        producer.produce("read", b"v" * _SIZE_BYTES, partition=number % PARTITIONS)
    assert producer.flush(120) == 0


CLIENTS: Mapping[str, Callable[[str, float, int], dict[str, float]]] = {
    "produce": produce,
    "consume": consume,
}


def compare(options: argparse.Namespace, tell: Callable[[str], None]) -> str:
    """Format the table of ratios (several processes / one): median and range of the pairs."""
    pairs, cores, seconds, count = options.pairs, options.cores, options.seconds, options.processes
    replicas, batch_records = options.replicas, options.batch_records
    results: dict[str, Pairs] = {}
    held: dict[str, list[float]] = {}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="processes-")))
        starts = Pairs()
        for pair in range(pairs):
            took = {
                option: start_seconds(directory / f"start{option}-{pair}", option, count)
                for option in (
                    ("--processes", "--brokers") if pair % 2 == 0 else ("--brokers", "--processes")
                )
            }
            starts.add({"seconds": took["--processes"]}, {"seconds": took["--brokers"]})
            tell(f"startup, pair {pair + 1}: {cell(starts.ratios('seconds')[-1:])}")
        sides = [
            stack.enter_context(processes(directory, cores, count)),
            stack.enter_context(one_process(directory, cores)),
        ]
        for side in sides:
            create_topic(side, "written", replicas if side is sides[0] else 1)
            create_topic(side, "read", 1)
            _fill(side)
        idle = [idle_share(side, _IDLE_S) for side in sides]
        for client in [options.only] if options.only else CLIENTS:
            for clients in (2, 1):
                name = f"{client}, {clients} client{'s' * (clients > 1)}"
                results[name], held[name] = Pairs(), []
                for side in sides:
                    leg(side, client, clients, seconds / 2, batch_records)
                for pair in range(pairs):
                    order = (0, 1) if pair % 2 == 0 else (1, 0)
                    legs = {
                        position: _checked(sides[position], client, clients, seconds, batch_records)
                        for position in order
                    }
                    results[name].add(legs[0].figures(), legs[1].figures())
                    held[name] += [each.held_back for each in legs.values()]
                    tell(f"{name}, pair {pair + 1}: {cell(results[name].ratios('throughput')[-1:])}")
    lines = [
        f"{count} processes ({replicas} replica{'s' * (replicas > 1)}) / one, each with {cores:g} of a core, "
        f"{pairs} pairs of {seconds:g} s: median (lowest–highest)",
        "",
        "| Clients | " + " | ".join(_METRICS.values()) + " | held back by the limit |",
        "|---|---|---|---|",
    ]
    for name, found in results.items():
        cells = " | ".join(cell(found.ratios(metric)) for metric in _METRICS)
        lines.append(f"| {name} | {cells} | {min(held[name]):.0%} of the time at least |")
    lines += [
        "",
        f"startup, compared with --brokers {count}: {cell(starts.ratios('seconds'))} of the time",
        f"idle: {idle[0]:.2%} of a core for all processes, {idle[1]:.2%} for one",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.processes")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cores", type=float, default=0.15, help="CPU limit of each broker in cores (0.15)")
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of a measurement (4)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--replicas", type=int, default=1, help="replicas of each partition with several processes (1)"
    )
    parser.add_argument(
        "--batch-records", type=int, default=50, help="records of 100 bytes in each Produce (50)"
    )
    parser.add_argument("--only", choices=CLIENTS, help="only this kind of client")
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client = CLIENTS[options.client]
        print(json.dumps(client(options.servers, options.seconds, options.batch_records)))
        return

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    compile_sources(PROJECT)
    print(compare(options, tell))


if __name__ == "__main__":
    main()
