"""kafka-producer-perf-test: measure the throughput and latency of a producer."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final, TextIO

from kafka_compat.tools import show
from kafka_compat.tools.arguments import Argument, Arguments, check_required, fail, parse
from kafka_compat.tools.console_producer import failure_of_producer
from kafka_compat.tools.failure import illegal_argument
from kafka_compat.tools.options import help_of

if TYPE_CHECKING:
    from kafka_compat.client.producer import Producer


_SAMPLES_MAX: Final = 500_000
_MEBIBYTE: Final = 1024 * 1024
_SHARES: Final = (0.5, 0.95, 0.99, 0.999)


class Statistics:
    """Latency and throughput of records. Times are in milliseconds; sizes are in bytes of record values.
    `of_steady_state` labels the printed lines as statistics for records after the warm-up.
    """

    def __init__(
        self, records: int, interval_ms: int, now_ms: float, *, of_steady_state: bool = False
    ) -> None:
        self._of_steady_state = of_steady_state
        self._sampling = max(records // min(records, _SAMPLES_MAX), 1)
        self._interval_ms = interval_ms
        self._start_ms = now_ms
        self._latencies_ms: list[int] = []
        self.count = 0
        self._bytes = 0
        self._latency_ms = 0
        self._latency_max_ms = 0
        self._new_window(now_ms)

    def _new_window(self, now_ms: float) -> None:
        self._window_start_ms = now_ms
        self._window_count = self._window_bytes = self._window_latency_ms = self._window_max_ms = 0

    def record(self, latency_ms: int, size_bytes: int, now_ms: float) -> str | None:
        """Count a stored record. Return the line for the current interval if it has ended, otherwise None."""
        if self.count % self._sampling == 0:
            self._latencies_ms.append(latency_ms)
        self.count += 1
        self._bytes += size_bytes
        self._latency_ms += latency_ms
        self._latency_max_ms = max(self._latency_max_ms, latency_ms)
        self._window_count += 1
        self._window_bytes += size_bytes
        self._window_latency_ms += latency_ms
        self._window_max_ms = max(self._window_max_ms, latency_ms)
        elapsed_ms = now_ms - self._window_start_ms
        if elapsed_ms < self._interval_ms:
            return None
        first = self._of_steady_state and self.count == self._window_count
        line = ("In steady state.\n" if first else "") + (
            f"{self._window_count} records sent, {1000 * self._window_count / elapsed_ms:.1f} records/sec "
            f"({1000 * self._window_bytes / elapsed_ms / _MEBIBYTE:.2f} MB/sec), "
            f"{self._window_latency_ms / self._window_count:.1f} ms avg latency, "
            f"{float(self._window_max_ms):.1f} ms max latency."
        )
        self._new_window(now_ms)
        return line

    def total(self, now_ms: float) -> dict[str, Any]:
        """Return the figures for the whole run as a JSON-compatible dict. Percentiles are in milliseconds."""
        elapsed_ms = max(now_ms - self._start_ms, 1)
        return {
            "records": self.count,
            "records_per_s": 1000 * self.count / elapsed_ms,
            "mebibytes_per_s": 1000 * self._bytes / elapsed_ms / _MEBIBYTE,
            "latency_ms_avg": self._latency_ms / self.count if self.count else None,
            "latency_ms_max": float(self._latency_max_ms),
            "latency_ms": dict(
                zip(("50th", "95th", "99th", "99.9th"), _percentiles(self._latencies_ms), strict=True)
            ),
        }

    def total_line(self, now_ms: float) -> str:
        """Format the figures for the whole run as a line."""
        found = self.total(now_ms)
        steady = " steady state" if self._of_steady_state else ""
        average = math.nan if found["latency_ms_avg"] is None else found["latency_ms_avg"]
        shares = ", ".join(f"{value} ms {name}" for name, value in found["latency_ms"].items())
        return (
            f"{found['records']}{steady} records sent, {found['records_per_s']:f} records/sec "
            f"({found['mebibytes_per_s']:.2f} MB/sec), {_java(average)} ms avg latency, "
            f"{found['latency_ms_max']:.2f} ms max latency, {shares}."
        )


def _java(number: float) -> str:
    return "NaN" if math.isnan(number) else f"{number:.2f}"


def _percentiles(latencies_ms: Sequence[int]) -> list[int]:
    ordered = sorted(latencies_ms) or [0]
    return [ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in _SHARES]


_PROGRAM: Final = "kafka-producer-perf-test"
_PAGE: Final = "producer-perf-test"
_CLIENT_ID: Final = "perf-producer-client"
_INTERVAL_MS: Final = 5000
_TRANSACTION_MS: Final = 3000
_RENAMED: Final = (("command-property", "producer-props"), ("command-config", "producer.config"))
"""(flag, older name) pairs."""
_PAYLOADS: Final = ("record-size", "payload-file", "payload-monotonic")
_FLAGS: Final = {
    "topic": Argument("String", True),
    "num-records": Argument("Long", True),
    "record-size": Argument("Integer"),
    "payload-file": Argument("String"),
    "payload-monotonic": Argument("True"),
    "payload-delimiter": Argument("String"),
    "throughput": Argument("Double", True),
    "bootstrap-server": Argument("String"),
    "producer-props": Argument("List"),
    "command-property": Argument("List"),
    "producer.config": Argument("String"),
    "command-config": Argument("String"),
    "print-metrics": Argument("True"),
    "transactional-id": Argument("String"),
    "transaction-duration-ms": Argument("Long"),
    "warmup-records": Argument("Long"),
    "reporting-interval": Argument("Long"),
    "json": Argument("True"),
}
_LETTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if a flag is invalid or a request fails."""
    if not arguments:
        print("\n".join(help_of(_PAGE)))
        return 0
    given, _ = parse(_PROGRAM, _PAGE, _FLAGS, arguments)
    _check(given)
    payload = _payloads(given)
    settings = _settings(given)
    from kafka_compat.client.producer import Producer, producer_settings
    from kafka_compat.tools.admin import dialling, parsed

    of_producer = parsed(producer_settings, settings)
    client_id = settings["client.id"]
    who = f"Producer clientId={client_id}"
    cluster = dialling(settings.get("bootstrap.servers", ""), settings, client_id, who)
    records = int(given["num-records"])
    test = _Test(given, records, sys.stderr if "json" in given else sys.stdout)
    producer = Producer(cluster, of_producer, test.settled)
    is_transactional = of_producer.transactional_id is not None
    try:
        with cluster:
            if is_transactional:
                producer.init_transactions()
            test.send(producer, payload, is_transactional)
    except Exception as error:
        raise failure_of_producer(error) from error
    now_ms = _now_ms()
    if "json" in given:
        steady = {} if test.steady is None else {"steady_state": test.steady.total(now_ms)}
        show.as_json(test.statistics.total(now_ms) | steady)
        return 0
    print(test.statistics.total_line(now_ms))
    if test.steady is not None:
        print(test.steady.total_line(now_ms))
    if "print-metrics" in given:
        _print_metrics(test.statistics.total(now_ms), settings["client.id"])
    return 0


class _Test:
    """A sender of records, with statistics for all records and for records after the warm-up."""

    def __init__(self, given: Arguments, records: int, out: TextIO) -> None:
        self._given = given
        self._records = records
        self._out = out
        self._warm_up = max(given.integer("warmup-records") or 0, 0)
        self._interval_ms = given.integer("reporting-interval") or _INTERVAL_MS
        self.statistics = Statistics(records, self._interval_ms, _now_ms())
        self.steady: Statistics | None = None
        if self._warm_up:
            text = "The summary is followed by one of the steady state."
            print(f"Warmup first {self._warm_up} records. {text}", file=out)

    def settled(self, tag: tuple[float, int, bool], error: Exception | None) -> None:
        """Count a stored record, or print its error. `tag` contains the send time, the size, and whether the
        record belongs to the steady state.
        """
        if error is not None:
            print(failure_of_producer(error).trace, end="", file=sys.stderr)
            return
        now_ms = _now_ms()
        start_ms, size_bytes, is_steady = tag
        latency_ms = int(now_ms - start_ms)
        line = self.statistics.record(latency_ms, size_bytes, now_ms)
        if self.steady is not None:
            line = self.steady.record(latency_ms, size_bytes, now_ms) if is_steady else None
        if line is not None:
            print(line, file=self._out, flush=True)

    def send(self, producer: Producer, payload: Callable[[int], bytes], is_transactional: bool) -> None:
        """Send all records, and wait until they are stored. Raises the producer's exceptions."""
        topic, throughput = self._given["topic"], float(self._given["throughput"])
        transaction_s = (self._given.integer("transaction-duration-ms") or _TRANSACTION_MS) / 1000
        start_s = began_s = time.monotonic()
        for number in range(self._records):
            if self._warm_up and number == self._warm_up:
                left = self._records - number
                self.steady = Statistics(left, self._interval_ms, _now_ms(), of_steady_state=True)
            value = payload(number)
            producer.send(topic, None, value, tag=(_now_ms(), len(value), number >= self._warm_up))
            now_s = time.monotonic()
            if is_transactional and now_s - began_s >= transaction_s:
                producer.end_transaction()
                began_s = now_s
            if throughput > 0:
                ahead_s = (number + 1) / throughput - (now_s - start_s)
                if ahead_s > 0:
                    producer.poll()
                    time.sleep(max(ahead_s, 0))
        if is_transactional:
            producer.end_transaction()
        else:
            producer.flush()


def _check(given: Arguments) -> None:
    chosen = [name for name in _PAYLOADS if name in given]
    if len(chosen) > 1:
        text = f"argument --{chosen[1]}: not allowed with argument --{chosen[0]}"
        fail(_PROGRAM, _PAGE, text)
    check_required(_PROGRAM, _PAGE, _FLAGS, given)
    if not chosen:
        text = f"one of the arguments {' '.join(f'--{name}' for name in _PAYLOADS)} is required"
        fail(_PROGRAM, _PAGE, text)
    for wrong, text in _refused(given):
        if wrong:
            fail(_PROGRAM, _PAGE, text)


def _refused(given: Arguments) -> Iterator[tuple[bool, str]]:
    """Check the flags in Kafka's order. Yield (whether the check failed, its message) for each check."""

    def too_small(name: str) -> tuple[bool, str]:
        value = given.integer(name)
        return value is not None and value <= 0, f"--{name} should be greater than zero."

    yield too_small("num-records")
    warm_up = given.integer("warmup-records") or 0
    text = "must be below --num-records."
    yield warm_up >= int(given["num-records"]), f"The value for --warmup-records {text}"
    yield too_small("record-size")
    ways = ("bootstrap-server", "command-property", "producer-props", "producer.config", "command-config")
    listed = f"{', '.join(f'--{name}' for name in ways[:-1])} or --{ways[-1]}"
    yield not any(name in given for name in ways), f"At least one of {listed} must be specified."
    for new, old in _RENAMED:
        yield new in given and old in given, f"--{new} and --{old} cannot be specified together."
    yield too_small("transaction-duration-ms")
    yield too_small("reporting-interval")


def _payloads(given: Arguments) -> Callable[[int], bytes]:
    random = Random(0)
    if "payload-file" in given:
        listed = _payloads_in(given["payload-file"], given.get("payload-delimiter", "\\n"))
        return lambda number: random.choice(listed)
    if "payload-monotonic" in given:
        return lambda number: str(number).encode()
    size_bytes = int(given["record-size"])
    table = bytes(_LETTERS[number % len(_LETTERS)] for number in range(256))
    return lambda number: random.randbytes(size_bytes).translate(table)


def _payloads_in(path: str, delimiter: str) -> list[bytes]:
    import os
    import re

    print(f"Reading payloads from: {os.path.abspath(path)}")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        text = ""
    if not text:
        raise illegal_argument("The file is missing or empty.")
    found = re.split("\n" if delimiter == "\\n" else delimiter, text)
    while len(found) > 1 and not found[-1]:
        found.pop()
    print(f"Number of records read: {len(found)}")
    return [payload.encode() for payload in found]


def _settings(given: Arguments) -> dict[str, str]:
    from kafka_compat.tools.admin import settings_in

    names = {}
    for new, old in _RENAMED:
        names[new] = old if old in given else new
        if old in given:
            print(
                f"Option --{old} is deprecated: use --{new}.",
                file=sys.stderr if "json" in given else sys.stdout,
            )
    config = given.get(names["command-config"])
    settings = {} if config is None else settings_in(config)
    for item in filter(None, given.get(names["command-property"], "").split("\n")):
        pieces = item.split("=")
        if len(pieces) != 2:
            raise illegal_argument(f"Invalid property: {item}")
        settings[pieces[0]] = pieces[1]
    if "bootstrap-server" in given:
        settings["bootstrap.servers"] = given["bootstrap-server"]
    settings.setdefault("client.id", _CLIENT_ID)
    if "transactional-id" in given or "transaction-duration-ms" in given:
        drawn = f"performance-producer-{Random().getrandbits(64):x}"
        settings["transactional.id"] = given.get("transactional-id") or settings.get(
            "transactional.id", drawn
        )
    return settings


def _print_metrics(total: dict[str, Any], client_id: str) -> None:
    """Print those metrics of the Java producer that this producer also has."""
    known = {
        "record-send-total": total["records"],
        "record-send-rate": total["records_per_s"],
        "request-latency-avg": math.nan if total["latency_ms_avg"] is None else total["latency_ms_avg"],
        "request-latency-max": total["latency_ms_max"],
    }
    rows = {f"producer-metrics:{name}:{{client-id={client_id}}}": value for name, value in known.items()}
    width = max(map(len, rows))
    print(f"\n{'Metric Name':<{width}}   Value")
    for name, value in sorted(rows.items()):
        print(f"{name:<{width}} : {value:.3f}")


def _now_ms() -> float:
    return time.time() * 1000
