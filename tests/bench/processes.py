"""What a second process brings: `serve --processes 2` against one broker, where the brokers' CPU is scarce.

`python -m tests.bench.processes [--pairs N] [--cores C] [--seconds S]`

Each broker's process gets `--cores` of a core and no more, so that the brokers are what holds everything up,
also on a machine of two cores with its clients on it; the process that starts the two is not limited, and its
CPU time counts. A leg lasts for some seconds and has one client or two, each a process: librdkafka producing
records of 100 bytes to four partitions (acks=all, one replica), or bare sockets that fetch 64 KiB again and
again, one for each partition, and look at nothing of it. Legs come in pairs in the order A B B A.
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
from typing import Any

from tests.bench.cpu_limit import CpuLimit
from tests.bench.report import Pairs, cell
from tests.processes.command import Command, cpu_seconds
from tests.support.servers import PROJECT, KafkaCompatBroker

PARTITIONS = 4
_SIZE_BYTES = 100
_FETCH_BYTES = 64 * 1024
_FILL_RECORDS = 40_000
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
_METRICS = {"throughput": "throughput", "cpu": "brokers' CPU per record"}


@dataclass(frozen=True)
class Side:
    """One broker, or two of one command; `pids` are all of its processes, `limits` those of its brokers."""

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
    """What some clients got done together."""

    records: int
    seconds: float
    cpu_seconds: float
    held_back: float
    """The share of the time in which the brokers wanted to run and were held back."""

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


def create_topic(side: Side, name: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": side.bootstrap_servers, "log_level": 2})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(60)


def leg(side: Side, client: str, clients: int, seconds: float) -> Leg:
    """Some clients at once, from a common start on."""
    command = [sys.executable, "-m", "tests.bench.processes", "--client", client]
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


# --- clients, each in a process of its own


def produce(servers: str, seconds: float) -> dict[str, float]:
    """As many records as are acknowledged in that time, and what it takes to get the rest acknowledged."""
    from confluent_kafka import Producer

    delivered = 0

    def done(error: Any, _: Any) -> None:
        nonlocal delivered
        assert error is None, error
        delivered += 1

    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 20_000})
    value = b"v" * _SIZE_BYTES
    for partition in range(PARTITIONS):
        producer.produce("written", value, partition=partition)
    assert producer.flush(60) == 0
    _wait_for_go()
    began = time.monotonic()
    number = 0
    while time.monotonic() < began + seconds:
        try:
            for _ in range(100):
                producer.produce("written", value, partition=number % PARTITIONS, on_delivery=done)
                number += 1
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    assert producer.flush(60) == 0
    return {"records": delivered, "began": began, "ended": time.monotonic()}


def consume(servers: str, seconds: float) -> dict[str, float]:
    """Fetch over a connection for each partition, and count records by the size of what comes."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        frames = {}
        for connection, frame in _fetches(servers):
            stack.callback(connection.close)
            selector.register(connection, selectors.EVENT_READ, frame)
            frames[connection] = frame
        _wait_for_go()
        left: dict[socket.socket, int] = {}
        buffer = bytearray(1 << 20)
        began = time.monotonic()
        for connection, frame in frames.items():
            connection.sendall(frame)
            left[connection] = 0
        fetched_bytes = 0
        while time.monotonic() < began + seconds:
            for key, _ in selector.select(1):
                opened = key.fileobj
                assert isinstance(opened, socket.socket)
                size_bytes = opened.recv_into(buffer)
                if left[opened] == 0:
                    left[opened] = 4 + int.from_bytes(buffer[:4], "big")
                left[opened] -= size_bytes
                fetched_bytes += size_bytes
                if left[opened] == 0:
                    opened.sendall(key.data)
        ended = time.monotonic()
    return {"records": fetched_bytes // _SIZE_BYTES, "began": began, "ended": ended}


def _fetches(servers: str) -> Iterator[tuple[socket.socket, bytes]]:
    """A connection to the leader of each partition, and the frame that fetches its beginning."""
    from uuid import UUID

    from confluent_kafka.admin import AdminClient

    from kafka_compat.protocol import codec
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.protocol.headers import RequestHeader, encode_request_header
    from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    known = AdminClient({"bootstrap.servers": servers}).list_topics("read", timeout=30)
    for number, partition in sorted(known.topics["read"].partitions.items()):
        wanted = FetchPartition(
            partition=number, current_leader_epoch=-1, fetch_offset=0, partition_max_bytes=_FETCH_BYTES
        )
        topics = [FetchTopic(topic="read", topic_id=UUID(int=0), partitions=[wanted])]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=_FETCH_BYTES, topics=topics)
        payload = encode_request_header(RequestHeader(ApiKey.FETCH, 11, 1, "bench"))
        payload += codec.encode(request, 11)
        broker = known.brokers[partition.leader]
        connection = socket.create_connection((broker.host, broker.port), 30)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection, len(payload).to_bytes(4, "big") + payload


def _wait_for_go() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def _fill(side: Side) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": side.bootstrap_servers})
    for number in range(_FILL_RECORDS):
        producer.produce("read", b"v" * _SIZE_BYTES, partition=number % PARTITIONS)
    assert producer.flush(120) == 0


CLIENTS: Mapping[str, Callable[[str, float], dict[str, float]]] = {"produce": produce, "consume": consume}


def compare(pairs: int, cores: float, seconds: float, count: int, tell: Callable[[str], None]) -> str:
    """The table: several processes / one, median and range of the pairs."""
    results: dict[str, Pairs] = {}
    held: dict[str, list[float]] = {}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="processes-")))
        sides = [
            stack.enter_context(processes(directory, cores, count)),
            stack.enter_context(one_process(directory, cores)),
        ]
        for side in sides:
            create_topic(side, "written")
            create_topic(side, "read")
            _fill(side)
        for client in CLIENTS:
            for clients in (2, 1):
                name = f"{client}, {clients} client{'s' * (clients > 1)}"
                results[name], held[name] = Pairs(), []
                for side in sides:
                    leg(side, client, clients, seconds / 2)
                for pair in range(pairs):
                    order = (0, 1) if pair % 2 == 0 else (1, 0)
                    legs = {position: leg(sides[position], client, clients, seconds) for position in order}
                    results[name].add(legs[0].figures(), legs[1].figures())
                    held[name] += [each.held_back for each in legs.values()]
                    tell(f"{name}, pair {pair + 1}: {cell(results[name].ratios('throughput')[-1:])}")
    lines = [
        f"{count} processes / one, each with {cores:g} of a core, {pairs} pairs of {seconds:g} s: "
        "median (lowest–highest)",
        "",
        "| Clients | " + " | ".join(_METRICS.values()) + " | held back by the limit |",
        "|---|---|---|---|",
    ]
    for name, found in results.items():
        cells = " | ".join(cell(found.ratios(metric)) for metric in _METRICS)
        lines.append(f"| {name} | {cells} | {min(held[name]):.0%} of the time at least |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.processes")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cores", type=float, default=0.15, help="of a core, for each broker (0.15)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a leg (4)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        print(json.dumps(CLIENTS[options.client](options.servers, options.seconds)))
        return

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    print(compare(options.pairs, options.cores, options.seconds, options.processes, tell))


if __name__ == "__main__":
    main()
