"""Compare the metrics of this checkout with those of another one: `python -m tests.metrics.compare CHECKOUT`.

The same workload runs on a broker of each checkout (in its own .venv), once for each dialect, and on a
cluster of three brokers. The comparison works as follows:

1. The compared series are those of /metrics, /public_metrics and an OTLP push: families with type and help,
  labels, and values.
2. The other checkout runs twice. A series or value that differs between its two runs depends on time, and
  only has to exist. Everything else must be identical in this checkout.
3. In a cluster, the leaders of internal topics and the fetchers vary. Therefore, only families, types, helps
  and label names are compared.
4. Series in `_CORRECTED` may be higher than in 1373621, which did not count everything.

Lists the differences, and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.wire import Connection
from tests.metrics.groups import commit, produce, transaction
from tests.metrics.scraping import get, samples_of
from tests.otlp.receiver import Push, Receiver
from tests.quotas.clients import fetch_request, produce_request, quotas
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import PROJECT, KafkaCompatBroker, ZooKeeper
from tests.telemetry.pushing import gauges, push

DIALECTS = ("jmx-exporter", "confluent")
PATHS = ("/metrics", "/public_metrics")
_THEN_MS = 1_700_000_000_000
_CLIENT = UUID(int=7)
_BROKERS = (1, 2, 3)

_CORRECTED = {
    "kafka_compat_fetched_bytes_total": "bytes fetched by clients that have a quota were not counted"
}
"""Series that may be higher, with the reason."""

_AFTER_A_CLEANING = "time_since_last_run"
"""The log cleaner's first run is 15 s after startup, so only a slow comparison includes this series."""

Series = tuple[str, frozenset[tuple[str, str]]]


class Told(NamedTuple):
    """All metrics of one checkout's brokers, by source: a path or "OTLP"."""

    heads: dict[str, dict[str, tuple[str, ...]]]
    """Maps each family to its type and help."""
    samples: dict[str, dict[Series, float]]


class Ports(NamedTuple):
    """The ports of the brokers. All runs use the same ports, because they appear in labels."""

    broker: int
    http: int
    receiver: int


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.metrics.compare", description=__doc__)
    parser.add_argument("checkout", type=Path, help="another checkout of these sources, with its own .venv")
    before = parser.parse_args(arguments).checkout.resolve()
    ports, differences = Ports(free_port(), free_port(), free_port()), []
    for dialect in DIALECTS:
        first, second, now = (one_broker(each, dialect, ports) for each in (before, before, PROJECT))
        count = sum(len(samples) for samples in now.samples.values())
        found = list(compared(first, second, now))
        print(f"{dialect}, one broker: {count} samples, {len(found)} differences", flush=True)
        differences += [f"{dialect}: {each}" for each in found]
        shapes = [cluster_shape(each, dialect) for each in (before, before, PROJECT)]
        found = [
            f"cluster: {'missing' if each in shapes[0] else 'new'}: {each}"
            for each in sorted((shapes[0] & shapes[1]) - shapes[2])
            + sorted(shapes[2] - (shapes[0] | shapes[1]))
            if _AFTER_A_CLEANING not in each
        ]
        print(f"{dialect}, three brokers: {len(shapes[2])} kinds of series, {len(found)} differences")
        differences += [f"{dialect}: {each}" for each in found]
    print("\n".join(differences))
    return 1 if differences else 0


def compared(first: Told, second: Told, now: Told) -> Iterator[str]:
    """Yield the differences between `now` and both earlier runs."""
    for source, heads in first.heads.items():
        here = now.heads[source]
        for name in sorted(heads.keys() | here.keys()):
            if here.get(name) not in (heads.get(name), second.heads[source].get(name)):
                yield f"{source} {name}: {heads.get(name)} became {here.get(name)}"
        before, again, samples = first.samples[source], second.samples[source], now.samples[source]
        for key in sorted((before.keys() & again.keys()) - samples.keys(), key=str):
            yield f"{source} missing: {_shown(key)}"
        for key in sorted(samples.keys() - before.keys() - again.keys(), key=str):
            yield f"{source} new: {_shown(key)}"
        steady = {key for key in before.keys() & again.keys() if repr(before[key]) == repr(again[key])}
        for key in sorted(steady & samples.keys(), key=str):
            if repr(before[key]) == repr(samples[key]) or _depends_on_time(key[0]):
                continue
            if key[0] not in _CORRECTED or samples[key] < before[key]:
                yield f"{source} {_shown(key)}: {before[key]} became {samples[key]}"


def _depends_on_time(name: str) -> bool:
    """Return whether a series depends on time and may be equal by chance: times, rates, process metrics,
    connections and pending requests.
    """
    return bool(
        re.search(
            r"^process_|_loop_|timems|time_ms|idle|parked|percent|queuesize|purgatory|delayed|memorypool"
            r"|_rate|load_time|lag_seconds|linux_disk|fetchsession|errors|requestspersec|requests_total"
            r"|requestbytes|fetchrequests|totalfetch|_count_total$|connection_c",
            name,
        )
    )


def _shown(key: Series) -> str:
    return key[0] + "{" + ", ".join(f"{name}={value}" for name, value in sorted(key[1])) + "}"


# --- a single broker


def one_broker(checkout: Path, dialect: str, ports: Ports) -> Told:
    """Return the metrics of a broker after the workload."""
    url = f"http://127.0.0.1:{ports.http}"
    with tempfile.TemporaryDirectory() as folder, Receiver(ports.receiver) as receiver:
        settings = {
            "kafka.compat.http.listener": url,
            "kafka.compat.metrics.dialect": dialect,
            "kafka.compat.otlp.endpoint": receiver.url,
            "kafka.compat.otlp.interval.ms": "1000",
            "log.dirs": f"{folder}/a,{folder}/b",
        }
        with (
            _running(folder, settings, checkout, ports.broker) as broker,
            quotas(broker.address, ("", "slow"), producer_byte_rate=10_000_000),
        ):
            workload(broker.address)
            with Connection(broker.address, client_id="slow") as connection:
                connection.ask(ApiKey.PRODUCE, 9, produce_request("flights", 5_000))
                push(connection, gauges({"org.apache.kafka.producer.x": 1, "own": 2}), instance_id=_CLIENT)
                texts = {path: get(url, path)[1].decode() for path in PATHS}
                pushed = receiver.next_push()
    return _told({path: text.replace(folder, "DIRECTORY") for path, text in texts.items()}, pushed, folder)


def _told(texts: dict[str, str], pushed: Push, folder: str) -> Told:
    heads: dict[str, dict[str, tuple[str, ...]]] = {}
    samples: dict[str, dict[Series, float]] = {}
    for path, text in texts.items():
        heads[path] = {
            name: (kind, told)
            for name, told in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE)
            for kind in re.findall(rf"^# TYPE {name} (\S+)$", text, re.MULTILINE)
        }
        samples[path] = _steady_labels(samples_of(text))
    heads["OTLP"] = {name: (kind,) for name, kind in pushed.kinds.items()}
    samples["OTLP"] = _steady_labels(
        {
            (name, frozenset((label, value.replace(folder, "DIRECTORY")) for label, value in labels)): told
            for (name, labels), told in pushed.samples.items()
        }
    )
    return Told(heads, samples)


def _steady_labels(samples: dict[Series, float]) -> dict[Series, float]:
    """Remove the ports of clients, which differ in every run."""
    return {
        (name, frozenset(pair for pair in labels if pair[0] != "client_source_port")): value
        for (name, labels), value in samples.items()
    }


# --- three brokers


def cluster_shape(checkout: Path, dialect: str) -> set[str]:
    """Return all kinds of series that three brokers on a ZooKeeper export."""
    found: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        zookeeper = ZooKeeper(Path(folder) / "zookeeper")
        zookeeper.start()
        brokers: list[KafkaCompatBroker] = []
        urls = [f"http://127.0.0.1:{free_port()}" for _ in _BROKERS]
        try:
            for number, url in zip(_BROKERS, urls, strict=True):
                settings = {
                    "broker.id": str(number),
                    "zookeeper.connect": f"{zookeeper.address}/compared",
                    "kafka.compat.http.listener": url,
                    "kafka.compat.metrics.dialect": dialect,
                    "default.replication.factor": "3",
                    "offsets.topic.num.partitions": "4",
                    "transaction.state.log.num.partitions": "4",
                }
                brokers.append(KafkaCompatBroker(Path(folder) / str(number), settings, checkout=checkout))
                brokers[-1].start()
            workload(",".join(each.address for each in brokers), replicas=3)
            for url in urls:
                for path in PATHS:
                    text = get(url, path)[1].decode()
                    heads = dict(re.findall(r"^# (?:HELP|TYPE) (\S+) (.*)$", text, re.MULTILINE))
                    for name, labels in samples_of(text):
                        known = ",".join(sorted(label for label, _ in labels))
                        found.add(f"{path} {name}{{{known}}} {heads.get(name)}")
                    found |= {f"{path} {line}" for line in text.splitlines() if line.startswith("#")}
        finally:
            for broker in brokers:
                broker.stop()
            zookeeper.stop()
    return found


@contextmanager
def _running(folder: str, settings: dict[str, str], checkout: Path, port: int) -> Iterator[KafkaCompatBroker]:
    broker = KafkaCompatBroker(Path(folder) / "broker", settings, checkout=checkout, port=port)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


# --- the workload


def workload(address: str, *, replicas: int = 1) -> None:
    """Execute operations that change every kind of counter."""
    admin = AdminClient({"bootstrap.servers": address})
    named = {"flights": 5, "compacted": 1, "moved": 3}
    topics = [
        NewTopic(
            name,
            count,
            replica_assignment=[
                [_BROKERS[(first + each) % 3] for each in range(3)] if replicas == 3 else [1]
                for first in range(count)
            ],
            config={"cleanup.policy": "compact"} if name == "compacted" else {},
        )
        for name, count in named.items()
    ]
    for made in admin.create_topics(topics).values():
        made.result(60)
    wait_until(lambda: _are_led(admin, named), 60, "leaders of all partitions", 0.05)
    for partition in range(5):
        produce(
            address, "flights", [_THEN_MS + number for number in range(20 * partition)], partition=partition
        )
    produce(address, "compacted", [_THEN_MS] * 3, keys=["a", "b", "a"])
    for codec in ("gzip", "zstd", "snappy"):
        produce(
            address, "moved", [_THEN_MS] * 10, partition=1, **{"compression.type": codec, "linger.ms": "500"}
        )
    for end in ("commit", "abort"):
        transaction(address, "moved", [_THEN_MS, _THEN_MS + 1], end=end)
    commit(address, 'say "hé"\\now\nthere', {("flights", 1): 3, ("flights", 4): 80, ("moved", 0): 1})
    commit(address, "beyond", {("flights", 2): 100_000})
    _consume(address)
    _fail(address)
    change = ConfigResource("topic", "flights", {"retention.ms": "-1"})
    for altered in admin.alter_configs([change]).values():
        altered.result(60)
    admin.list_consumer_groups().result(60)
    # Wait until rates include the last second's requests and the reports of the followers have arrived.
    time.sleep(1.5)


def _are_led(admin: AdminClient, named: dict[str, int]) -> bool:
    known = admin.list_topics(timeout=20).topics
    return all(
        name in known and [each.leader >= 0 for each in known[name].partitions.values()] == [True] * count
        for name, count in named.items()
    )


def _consume(address: str) -> None:
    reader = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    reader.subscribe(["flights"])
    count = 0
    while count < 200:
        message = reader.poll(30)
        assert message is not None and message.error() is None, message
        count += 1
    reader.commit(asynchronous=False)
    reader.close()


def _fail(address: str) -> None:
    """Send requests that the broker rejects."""
    producer = Producer({"bootstrap.servers": address, "message.max.bytes": 5_000_000})
    failures = []
    producer.produce(
        "flights", b"v" * 3_000_000, partition=0, on_delivery=lambda error, _: failures.append(error)
    )
    producer.flush(30)
    assert failures[0] is not None
    admin = AdminClient({"bootstrap.servers": address})
    try:
        admin.create_topics([NewTopic("flights", 1, 1)])["flights"].result(60)
    except KafkaException:
        pass
    else:
        raise AssertionError("creating an existing topic must fail")
    with Connection(address.split(",")[0]) as connection:
        connection.ask(ApiKey.PRODUCE, 9, produce_request("unknown", 100))
        connection.ask(ApiKey.FETCH, 12, fetch_request("unknown", 0, 1 << 20))
        connection.ask(
            ApiKey.PRODUCE,
            9,
            {
                "acks": 1,
                "timeout_ms": 1000,
                "topic_data": [
                    {"name": "flights", "partition_data": [{"index": 0, "records": batch(2)[:-1] + b"?"}]}
                ],
            },
        )


if __name__ == "__main__":
    sys.exit(main())
