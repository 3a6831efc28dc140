"""kafka-producer-perf-test: how fast records are stored."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from random import Random
from typing import Any, Final

from kafka_compat.tools import show
from kafka_compat.tools.arguments import Argument, Arguments, check_required, fail, help_of, parse
from kafka_compat.tools.console_producer import failure_of_producer
from kafka_compat.tools.failure import Failure, illegal_argument, log
from kafka_compat.tools.perf_statistics import Statistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_compat.client.producer import Producer

_PROGRAM: Final = "producer-performance"
_PAGE: Final = "producer-perf-test"
_CLIENT_ID: Final = "perf-producer-client"
_INTERVAL_MS: Final = 5000
_TRANSACTION_MS: Final = 3000
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
    "json": Argument("True"),
}
_LETTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def run(arguments: list[str]) -> int:
    """The exit code. Raises Failure."""
    if not arguments:
        print(help_of(_PAGE))
        return 0
    given, _ = parse(_PROGRAM, _PAGE, _FLAGS, arguments)
    _check(given)
    payload = _payloads(given)
    settings = _settings(given)
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.producer import Producer, producer_settings

    try:
        parsed = producer_settings(settings)
    except ValueError as error:
        cause = Failure("org.apache.kafka.common.config.ConfigException", str(error))
        raise cause from error
    who = f"[Producer clientId={settings['client.id']}]"
    cluster = Cluster(
        settings.get("bootstrap.servers", ""),
        settings,
        client_id=settings["client.id"],
        warn=lambda text: log("WARN", f"{who} {text}", "org.apache.kafka.clients.NetworkClient"),
    )
    records = int(given["num-records"])
    statistics = Statistics(records, _INTERVAL_MS, _now_ms())

    def settled(tag: tuple[float, int], error: Exception | None) -> None:
        if error is not None:
            print(failure_of_producer(error).trace, end="", file=sys.stderr)
            return
        now_ms = _now_ms()
        line = statistics.record(int(now_ms - tag[0]), tag[1], now_ms)
        if line is not None:
            print(line, file=sys.stderr if "json" in given else sys.stdout, flush=True)

    producer = Producer(cluster, parsed, settled)
    try:
        if parsed.transactional_id is not None:
            producer.init_transactions()
        _send(producer, given, payload, records, parsed.transactional_id is not None)
    except Exception as error:
        raise failure_of_producer(error) from error
    finally:
        cluster.close()
    if "json" in given:
        show.as_json(statistics.total(_now_ms()))
    else:
        print(statistics.total_line(_now_ms()))
        if "print-metrics" in given:
            _print_metrics(statistics.total(_now_ms()), settings["client.id"])
    return 0


def _send(
    producer: Producer,
    given: Arguments,
    payload: Callable[[int], bytes],
    records: int,
    is_transactional: bool,
) -> None:
    topic, throughput = given["topic"], float(given["throughput"])
    transaction_s = (given.integer("transaction-duration-ms") or _TRANSACTION_MS) / 1000
    start_s = began_s = time.monotonic()
    for number in range(records):
        value = payload(number)
        producer.send(topic, None, value, tag=(_now_ms(), len(value)))
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
    for name in ("num-records", "record-size", "transaction-duration-ms"):
        value = given.integer(name)
        if value is not None and value <= 0:
            fail(_PROGRAM, _PAGE, f"--{name} should be greater than zero")
    ways = ("producer-props", "producer.config", "command-property", "command-config", "bootstrap-server")
    if not any(name in given for name in ways):
        fail(_PROGRAM, _PAGE, "Either --producer-props or --producer.config must be specified.")


def _payloads(given: Arguments) -> Callable[[int], bytes]:
    """The payload of each record by its number. Raises Failure."""
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
        raise illegal_argument("File does not exist or empty file provided.")
    found = re.split("\n" if delimiter == "\\n" else delimiter, text)
    while len(found) > 1 and not found[-1]:
        found.pop()
    print(f"Number of messages read: {len(found)}")
    return [payload.encode() for payload in found]


def _settings(given: Arguments) -> dict[str, str]:
    """Raises Failure."""
    settings: dict[str, str] = {}
    config = given.get("command-config") or given.get("producer.config")
    if config is not None:
        from kafka_compat.tools.admin import settings_in

        settings |= settings_in(config)
    for flag in ("producer-props", "command-property"):
        for item in filter(None, given.get(flag, "").split("\n")):
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
    """Those of a Java producer that are known here."""
    known = {
        "record-send-total": total["records"],
        "record-send-rate": total["records_per_s"],
        "request-latency-avg": total["latency_ms_avg"],
        "request-latency-max": total["latency_ms_max"],
    }
    rows = {f"producer-metrics:{name}:{{client-id={client_id}}}": value for name, value in known.items()}
    width = max(map(len, rows))
    print(f"\n{'Metric Name':<{width}}   Value")
    for name, value in sorted(rows.items()):
        print(f"{name:<{width}} : {value:.3f}")


def _now_ms() -> float:
    return time.time() * 1000
