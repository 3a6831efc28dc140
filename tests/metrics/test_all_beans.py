"""Kafka's MBeans: with quotas and compaction, Apache Kafka (a single broker and a cluster of three) has
exactly the MBeans that this project exports or that the documentation lists as not exported.

genuine_beans.txt contains Apache Kafka's MBeans. The campaign reads them from Apache Kafka itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.testing import KafkaCluster
from tests.metrics import jmx_agent
from tests.metrics.all_beans import in_help, is_left_out, left_out, of_genuine, of_ours
from tests.metrics.jmx_agent import Agent
from tests.metrics.jmx_names import DIALECTS, kinds, label_names, work
from tests.metrics.scraping import get
from tests.quotas.clients import alter, await_notices
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, ZooKeeper

genuine = pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
KNOWN = Path(__file__).parent / "genuine_beans.txt"
OF_ZOOKEEPER = ("SessionExpireListener", "ZooKeeperClientMetrics", "ZkMigrationState")
SETTINGS = {"log.cleaner.backoff.ms": "500"}
QUOTAS = {"producer_byte_rate": 100_000.0, "consumer_byte_rate": 1e7, "request_percentage": 1e4}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "100000", "min.cleanable.dirty.ratio": "0.01"}


@contextmanager
def busy(address: str, replicas: int) -> Iterator[None]:
    """Run clients with quotas, one of which is throttled, and write to a compacted log and to topics with
    several replicas.
    """
    with work(address):
        alter(address, ("", None), **QUOTAS, controller_mutation_rate=1000.0)
        await_notices(address)
        admin = AdminClient({"bootstrap.servers": address})
        topics = [NewTopic("compacted", 1, replicas, config=COMPACTED), NewTopic("wide", 6, replicas)]
        for future in admin.create_topics(topics).values():
            future.result(60)
        producer = Producer({"bootstrap.servers": address, "client.id": "fast"})
        for number in range(2000):
            producer.produce("compacted", b"v" * 100, str(number % 10).encode())
            producer.produce("wide", b"v")
        assert producer.flush(120) == 0
        yield


def compare(theirs: set[str], ours: set[str]) -> None:
    patterns = left_out()
    missing = sorted(bean for bean in theirs - ours if not is_left_out(bean, patterns))
    assert not missing, "neither exported nor listed as not exported:\n" + "\n".join(missing)
    told = sorted(bean for bean in theirs & ours if is_left_out(bean, patterns))
    assert not told, "exported, but listed as not exported:\n" + "\n".join(told)


def compare_names(dialect: str, theirs: str, ours: str) -> None:
    """Check that this project's metrics have the same names, types and labels as the exporter's for Apache
    Kafka.
    """
    patterns, beans = left_out(), in_help(theirs)
    their_types, our_types = kinds(theirs), kinds(ours)
    their_labels, our_labels = label_names(theirs), label_names(ours)
    wrong = [
        f"{name}: not there ({beans.get(name)})"
        for name in their_types.keys() - our_types.keys()
        if not is_left_out(beans.get(name, ""), patterns)
    ]
    wrong += [
        f"{name}: {their_types[name]}, and not {our_types[name]}"
        for name in their_types.keys() & our_types.keys()
        if their_types[name] != our_types[name]
    ]
    wrong += [
        f"{name}: {sorted(map(sorted, their_labels[name]))}, and not {sorted(map(sorted, our_labels[name]))}"
        for name in their_labels.keys() & our_labels.keys()
        if name.startswith("kafka_") and their_labels[name] != our_labels[name]
    ]
    assert not wrong, f"{dialect}:\n" + "\n".join(sorted(wrong))


RULES: dict[str, Callable[[], list[jmx_agent.Rule]]] = {
    "jmx-exporter": jmx_agent.strimzi,
    "confluent": jmx_agent.confluent,
}


def told_by(agent: Agent, dialect: str) -> str:
    return agent.told(RULES[dialect](), lowercase_labels=dialect == "confluent")


def our_brokers(
    stack: ExitStack, directory: Path, dialect: str, zookeeper: ZooKeeper, count: int
) -> tuple[str, list[str]]:
    """Start brokers with a chroot of their own, and return one broker's address and the URLs of all HTTP
    listeners.
    """
    urls, brokers = [], []
    replicas = str(min(count, 3))
    for broker_id in range(1, count + 1):
        urls.append(f"http://127.0.0.1:{free_port()}")
        settings = SETTINGS | {
            "broker.id": str(broker_id),
            "kafka.compat.http.listener": urls[-1],
            "kafka.compat.metrics.dialect": dialect,
            "zookeeper.connect": f"{zookeeper.address}/{dialect}",
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
        }
        brokers.append(KafkaCompatBroker(directory / f"{dialect}-{broker_id}", settings))
        stack.callback(brokers[-1].stop)
        brokers[-1].start()
    return brokers[0].address, urls


def told_at(urls: list[str]) -> list[str]:
    return [get(url, "/metrics")[1].decode() for url in urls]


def await_cleaning(address_of_metrics: str) -> None:
    """Wait for the first run of the log cleaner, after which its metrics are exported."""

    def has_looked() -> bool:
        return b"_logcleanermanager_time_since_last_run_ms " in get(address_of_metrics, "/metrics")[1]

    wait_until(has_looked, 60, "the first run of the log cleaner", 0.5)


def known() -> set[str]:
    """The MBeans of Apache Kafka 3.9.1, running as a single broker and as a cluster of three brokers."""
    return set(KNOWN.read_text().split())


def address_of(cluster: KafkaCluster) -> str:
    """The address of the first broker."""
    return cluster.bootstrap_servers.split(",")[0]


def test_a_cluster_in_one_process_exports_the_mbeans_of_apache_kafka() -> None:
    with KafkaCluster(3, SETTINGS) as cluster, busy(address_of(cluster), 3):
        await_cleaning(cluster.control.url)
        (text,) = told_at([cluster.control.url])
    compare({bean for bean in known() if not any(part in bean for part in OF_ZOOKEEPER)}, of_ours(text))


@genuine
def test_one_broker_exports_the_mbeans_of_apache_kafka(tmp_path: Path) -> None:
    with jmx_agent.kafka_with_agent(tmp_path, SETTINGS) as (kafka, agent):
        with busy(kafka.address, 1):
            theirs = of_genuine(agent)
            named = {dialect: told_by(agent, dialect) for dialect in DIALECTS}
        assert kafka.zookeeper is not None
        ours = {}
        for dialect in DIALECTS:
            with ExitStack() as stack:
                address, urls = our_brokers(stack, tmp_path, dialect, kafka.zookeeper, 1)
                with busy(address, 1):
                    await_cleaning(urls[0])
                    (ours[dialect],) = told_at(urls)
    for dialect in DIALECTS:
        compare(theirs, of_ours(ours[dialect]))
        compare_names(dialect, named[dialect], ours[dialect])
    assert theirs <= known()
    here = len(theirs & of_ours(ours["confluent"]))
    print(f"{len(theirs)} MBeans and attributes there, {here} of them here")


@genuine
def test_three_brokers_export_the_mbeans_of_apache_kafka(tmp_path: Path) -> None:
    """Fetchers, ISRs and the controller are compared for all three brokers together, and then checked on each
    broker.
    """
    with ExitStack() as stack:
        zookeeper = ZooKeeper(tmp_path / "zookeeper")
        stack.callback(zookeeper.stop)
        zookeeper.start()
        with ExitStack() as genuine:
            kafkas, agents = genuine_brokers(genuine, tmp_path, zookeeper)
            with busy(kafkas[0].address, 3):
                theirs = [of_genuine(agent) for agent in agents]
                named = {dialect: [told_by(agent, dialect) for agent in agents] for dialect in DIALECTS}
        ours = {}
        for dialect in DIALECTS:
            with ExitStack() as brokers:
                address, urls = our_brokers(brokers, tmp_path, dialect, zookeeper, 3)
                with busy(address, 3):
                    await_cleaning(urls[0])
                    ours[dialect] = told_at(urls)
    found = sorted(set[str]().union(*theirs))
    (tmp_path / KNOWN.name).write_text("\n".join(found) + "\n")
    assert set(found) == known(), f"update the list from {tmp_path / KNOWN.name}"
    stale = [each for each in left_out() if not any(is_left_out(bean, [each]) for bean in found)]
    assert not stale, f"listed as not exported, but unknown to Apache Kafka: {stale}"
    for dialect in DIALECTS:
        compare(set[str]().union(*theirs), set[str]().union(*map(of_ours, ours[dialect])))
        compare_names(dialect, *(merged(texts) for texts in (named[dialect], ours[dialect])))
        for text in ours[dialect]:
            # Each broker is a follower, and one of them is the controller.
            assert "ReplicaFetcherThread-0-" in text
        controllers = [text for text in ours[dialect] if "controllerchannelmanager_queuesize{" in text]
        assert len(controllers) == 1


def merged(texts: list[str]) -> str:
    """Merge the metrics of several brokers into one text with one entry for each family."""
    found: dict[str, list[str]] = {}
    for text in texts:
        head: list[str] = []
        for line in text.splitlines():
            if line.startswith("# HELP"):
                head = found.setdefault(line.split()[2], [line])
            elif line.startswith("# TYPE"):
                if len(head) == 1:
                    head.append(line)
            elif line not in head:
                head.append(line)
    return "\n".join(line for lines in found.values() for line in lines) + "\n"


def genuine_brokers(
    stack: ExitStack, directory: Path, zookeeper: ZooKeeper
) -> tuple[list[GenuineKafka], list[Agent]]:
    kafkas, agents = [], []
    for broker_id in (1, 2, 3):
        rules_file = directory / f"rules-{broker_id}.yml"
        rules_file.write_text("{}")
        port = free_port()
        settings = SETTINGS | {
            "broker.id": str(broker_id),
            "zookeeper.connect": f"{zookeeper.address}/genuine",
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
        }
        option = f"-javaagent:{jmx_agent.agent()}=127.0.0.1:{port}:{rules_file}"
        kafka = GenuineKafka(
            directory / f"kafka-{broker_id}", settings, zookeeper=zookeeper, jvm_options=(option,)
        )
        stack.callback(kafka.stop)
        kafka.start(180)
        kafkas.append(kafka)
        agents.append(Agent(rules_file, f"http://127.0.0.1:{port}"))
    return kafkas, agents
