"""Number of instructions that the broker executes for one request: `python -m tests.bench.instructions
--compiled`.

The broker runs under callgrind, and a client sends it the same request repeatedly over a plain socket. The
result is the difference between two counts in the same process, REQUESTS requests apart, so it excludes
startup. The minimum of ROUNDS differences is used, because the broker occasionally does other work. Unlike
time, the number is nearly the same on every machine and at every load: one percent more means more code.

With `--before CHECKOUT`, the ratio to a different checkout's broker is printed beside each count. Both
brokers get the same frames and use the same hash seed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, encode
from tests.support.servers import PROJECT, KafkaCompatBroker

REQUESTS = 400
ROUNDS = 3
_WARM_UP_REQUESTS = 300
"""Requests before the first count, which initialize codecs, handlers and buffers."""
_START_TIMEOUT_S = 300
_TOPIC = "instructions"
_SETTINGS = {"auto.create.topics.enable": "false", "log.flush.interval.ms": "3600000"}
_TUNABLES = "glibc.cpu.x86_rep_movsb_threshold=1000000000"
"""Makes copies of a few kilobytes use wide moves. `rep movsb` counts as one instruction for each byte, and
whether it is used depends on the addresses of the buffers.
"""
BASELINE = {
    "produce 1": 86_500,
    "produce 15 x 1 KB": 99_100,
    "produce 150 x 100 B": 157_000,
    "fetch 16 KB": 136_000,
    "metadata": 99_600,
    "api-versions v0": 319_000,
}
"""Results of the compiled broker at 1373621, with Python 3.11 of Debian 12. Without _TUNABLES, they were 86,
113, 172, 126, 99 and 320 thousand.
"""
RECORDED = {
    "produce 1": 36_500,
    "produce 15 x 1 KB": 49_800,
    "produce 150 x 100 B": 71_200,
    "fetch 16 KB": 52_000,
    "metadata": 19_800,
    "api-versions v0": 17_100,
}
"""Results of the current code. `tests/packaging/test_compiled.py` fails if a result grows by more than 3%."""
RECORDED_WITH = "3.11.7 (main, May  9 2026, 07:35:25) [GCC 12.2.0]"
"""The `sys.version` of the interpreter, without which the results are not comparable."""


def frames() -> Mapping[str, bytes]:
    """Map each workload to its request."""
    from kafka.record.default_records import DefaultRecordBatchBuilder

    def batch(records: int, size_bytes: int) -> bytes:
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, records * (size_bytes + 100))
        for number in range(records):
            builder.append(number, 1_700_000_000_000, None, b"v" * size_bytes, [])
        return bytes(builder.build())

    def produce(records: int, size_bytes: int) -> bytes:
        data = {"index": 0, "records": batch(records, size_bytes)}
        topic = {"name": _TOPIC, "partition_data": [data]}
        return encode(ApiKey.PRODUCE, 9, {"acks": -1, "timeout_ms": 10_000, "topic_data": [topic]})

    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 16_384}
    fetch = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "session_epoch": -1,
        "topics": [{"topic": _TOPIC, "partitions": [partition]}],
    }
    return {
        "produce 1": produce(1, 100),
        "produce 15 x 1 KB": produce(15, 1000),
        "produce 150 x 100 B": produce(150, 100),
        "fetch 16 KB": encode(ApiKey.FETCH, 12, fetch),
        "metadata": encode(ApiKey.METADATA, 9, {"topics": [{"name": _TOPIC}]}),
        "api-versions v0": encode(ApiKey.API_VERSIONS, 0, {}),
    }


class CallgrindBroker:
    """A broker under callgrind."""

    def __init__(self, directory: Path, checkout: Path, settings: Mapping[str, str], *, compiled: bool):
        environment = {"PYTHONHASHSEED": "0", "GLIBC_TUNABLES": _TUNABLES}
        if compiled:
            environment |= {"PYTHONPATH": str(checkout / ".compiled"), "PYTHONSAFEPATH": "1"}
        self._directory = directory
        self._broker = KafkaCompatBroker(
            directory, {**_SETTINGS, **settings}, environment=environment, checkout=checkout
        )
        self._out = directory / "callgrind.out"
        self._broker.launcher = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self._out}"]

    def measure(self, wanted: Mapping[str, bytes]) -> dict[str, float]:
        """Return the number of instructions for one request of each workload."""
        self._broker.start(_START_TIMEOUT_S)
        try:
            with Connection(self._broker.address, 300) as connection:
                self._create_topic(connection, wanted)
                return dict(self._counts(connection, wanted))
        finally:
            self._broker.stop(60)

    def _create_topic(self, connection: Connection, wanted: Mapping[str, bytes]) -> None:
        topic = {"name": _TOPIC, "num_partitions": 1, "replication_factor": 1}
        made = connection.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 60_000})
        if made["topics"][0]["error_code"]:
            raise RuntimeError(f"the topic was not created: {made}")
        # Fetches return this batch, regardless of the selected workloads.
        _ask(connection, frames()["produce 15 x 1 KB"], 1)

    def _counts(self, connection: Connection, wanted: Mapping[str, bytes]) -> Iterator[tuple[str, float]]:
        for name, frame in wanted.items():
            _ask(connection, frame, _WARM_UP_REQUESTS)
            self._executed()
            counts = []
            for _ in range(ROUNDS):
                _ask(connection, frame, REQUESTS)
                counts.append(self._executed() / REQUESTS)
            yield name, min(counts)

    def _executed(self) -> int:
        """Return the number of instructions since the previous call."""
        known = set(self._directory.glob("callgrind.out.*"))
        subprocess.run(["callgrind_control", "-d", str(self._broker.pid)], check=True, capture_output=True)
        (dump,) = set(self._directory.glob("callgrind.out.*")) - known
        found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE)
        if found is None:
            raise RuntimeError(f"no instruction count in {dump}")
        return int(found[1])


def _ask(connection: Connection, frame: bytes, count: int) -> None:
    for _ in range(count):
        connection.send(frame)
        connection.receive()


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.instructions", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=list(BASELINE), help=", ".join(BASELINE)
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="CHECKOUT",
        help="another checkout, with its own .venv",
    )
    parser.add_argument("--compiled", action="store_true", help="measure both compiled by scripts/compile")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of this broker only; with --before ., shows its cost",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the measurements according to the command line."""
    arguments = _arguments(argv)
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is missing (Debian: apt-get install valgrind)")
    everything = frames()
    wanted = {name: everything[name] for name in arguments.only or everything}
    settings = dict(item.split("=", 1) for item in arguments.override)
    with tempfile.TemporaryDirectory(prefix="kafka-compat-instructions-") as folder:
        directory, compiled = Path(folder), arguments.compiled
        ours = CallgrindBroker(directory / "ours", PROJECT, settings, compiled=compiled).measure(wanted)
        before: dict[str, float] = {}
        if arguments.before is not None:
            other = CallgrindBroker(directory / "before", arguments.before.resolve(), {}, compiled=compiled)
            before = other.measure(wanted)
    rows = {name: _row(count, before.get(name)) for name, count in ours.items()}
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    for name, row in rows.items():
        ratio = f"  before {row['before']:>9,}  ratio {row['ratio']:.3f}" if "ratio" in row else ""
        print(f"{name:20} {row['instructions']:>9,}{ratio}")


def _row(count: float, before: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {"instructions": round(count)}
    if before is not None:
        row |= {"before": round(before), "ratio": round(count / before, 4)}
    return row


if __name__ == "__main__":
    main()
