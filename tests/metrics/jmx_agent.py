"""Apache Kafka with the real JMX exporter, and exporter rules for both dialects.

The rules correspond to metrics/dialects.py: they define which MBeans are exported, and under which names. The
agent reloads its rules file when it has changed, so one server can export both dialects.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.metrics.scraping import get
from tests.support import kafka_jars
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka

VERSION = "1.0.1"
_GROUP = "io.prometheus.jmx:jmx_prometheus_javaagent"

Rule = dict[str, Any]


def agent() -> Path:
    """The exporter's jar, downloaded by Maven on first use."""
    folder = kafka_jars.cache_directory() / f"jmx-agent-{VERSION}"
    jar = folder / f"jmx_prometheus_javaagent-{VERSION}.jar"
    if not jar.is_file():
        artifact = [f"-Dartifact={_GROUP}:{VERSION}", f"-DoutputDirectory={folder}"]
        subprocess.run(["mvn", "--quiet", "--batch-mode", "dependency:copy", *artifact], check=True)
    return jar


def _tags(count: int, first: int) -> tuple[str, dict[str, str]]:
    """Return a pattern for `count` tags, whose first group is `first`, and the labels for these tags."""
    pattern = "".join(r", ([\w-]+)=([^,]*)" for _ in range(count))
    return pattern, {f"${first + 2 * each}": f"${first + 2 * each + 1}" for each in range(count)}


def _rule(pattern: str, name: str, kind: str | None, labels: dict[str, str]) -> Rule:
    return {"pattern": pattern, "name": name, "labels": labels} | ({"type": kind} if kind else {})


def _without_rules() -> list[Rule]:
    """MBeans without a rule in either dialect, with the names that the exporter gives them by default."""
    coordinators = r"kafka\.server<type=((?:group|transaction)-coordinator-metrics)><>(.+):"
    replication = r"kafka\.server<type=((?:Leader|Follower)Replication)><>(.+):"
    return [_rule(each, "kafka_server_$1_$2", "GAUGE", {}) for each in (coordinators, replication)]


def _quotas(resource: str, name: str, client: str, labels: dict[str, str]) -> list[Rule]:
    """Rules for quotas of a user's client, a client, or a user. `name` and `labels` may contain $1 for the
    resource; $A in `name` stands for the attribute.
    """
    rules = []
    for tags in (("user", "client-id"), ("client-id",), ("user",)):
        pattern = "".join(f", {tag}=([^,]+)" for tag in tags)
        named = {client if tag == "client-id" else tag: f"${at}" for at, tag in enumerate(tags, 2)}
        attribute = f"${2 + len(tags)}"
        rule = rf"kafka\.server<type=({resource}){pattern}><>([a-z-]+):"
        rules.append(_rule(rule, name.replace("$A", attribute), "GAUGE", {**labels, **named}))
    return rules


def _followers(per_second: str, total: str, kind: str | None) -> list[Rule]:
    """Rules for fetchers and the lag of followers."""
    lag = r"kafka\.server<type=([^,]+), name=([^,]+), clientId=([^,]+), topic=(.+), partition=(.+)><>Value"
    of_partition = {"clientId": "$3", "topic": "$4", "partition": "$5"}
    stats = rf"kafka\.server<type=(FetcherStats), name=([^,]+?){per_second}, clientId=([^,]+), "
    address = {"clientId": "$3", "broker": "$4:$5"}
    return [
        _rule(lag, "kafka_server_$1_$2", "GAUGE", of_partition),
        _rule(
            stats + "brokerHost=(.+), brokerPort=(.+)><>Count", f"kafka_server_$1_$2{total}", kind, address
        ),
    ]


INVENTORY: list[Rule] = [
    _rule(r"(kafka[\w.]*)<(.*)><(.*)>([^:]+):", "inventory", None, {"bean": "$1:$2", "attribute": "$4"})
]
"""All MBeans, without renaming."""


def jmx_exporter() -> list[Rule]:
    """The rules of the exporter's example configuration and Strimzi's rules. Two example rules are corrected:
    the rule for quotas matches `Produce, user=U` as the resource, and the rule for fetchers matches
    `clientId=C, brokerHost` as a label.
    """
    mean = r"kafka\.(\w+)<type=([^,]+), name=(\w+)Percent><>MeanRate"
    rules = [_rule(mean, "kafka_$1_$2_$3_percent", "GAUGE", {}), *_without_rules()]
    rules += _quotas("[^,]+", "kafka_server_quota_$A", "clientId", {"resource": "$1"})
    rules += _followers("PerSec", "_total", "COUNTER")
    gauge = r"kafka\.coordinator\.(\w+)<type=([^,]+), name=([^,]+)><>Value"
    rules.append(_rule(gauge, "kafka_coordinator_$1_$2_$3", "GAUGE", {}))
    sockets = r"kafka\.server<type=socket-server-metrics"
    software = "clientSoftwareName=(.+), clientSoftwareVersion=(.+), listener=(.+), networkProcessor=(.+)"
    told = ("clientSoftwareName", "clientSoftwareVersion", "listener", "networkProcessor")
    labels = {label: f"${at}" for at, label in enumerate(told, 1)}
    name = "kafka_server_socket_server_metrics_connections_software"
    rules.append(_rule(rf"{sockets}, {software}><>connections", name, "GAUGE", labels))
    labels = {"listener": "$1", "networkProcessor": "$2"}
    for attribute, kind in ((".+-total", "COUNTER"), (".+", "GAUGE")):
        pattern = rf"{sockets}, listener=(.+), networkProcessor=(.+)><>({attribute}):"
        rules.append(_rule(pattern, "kafka_server_socket_server_metrics_$3", kind, labels))
    for count in (2, 1, 0):
        tags, labels = _tags(count, 4)
        bean = r"kafka\.(\w+)<type=([^,]+), name=([^,]+?)"
        after = f"${4 + 2 * count}"
        rules += [
            _rule(f"{bean}PerSec{tags}><>Count", "kafka_$1_$2_$3_total", "COUNTER", labels),
            _rule(f"{bean}{tags}><>Value", "kafka_$1_$2_$3", "GAUGE", labels),
            _rule(f"{bean}{tags}><>Count", "kafka_$1_$2_$3_count", "COUNTER", labels),
            _rule(
                rf"{bean}{tags}><>(\d+)thPercentile",
                "kafka_$1_$2_$3",
                "GAUGE",
                labels | {"quantile": f"0.{after}"},
            ),
        ]
    return rules


def strimzi() -> list[Rule]:
    """Strimzi's rules where they differ from the example configuration."""
    bean = r"kafka\.(\w+)<type=([^,]+), name=(\w+)Percent"
    return [
        _rule(f"{bean}><>(?:MeanRate|Value)", "kafka_$1_$2_$3_percent", "GAUGE", {}),
        *jmx_exporter(),
    ]


def confluent() -> list[Rule]:
    """The rules of Confluent's jmx-monitoring-stacks."""
    idle = r"kafka\.server<type=KafkaRequestHandlerPool, name=RequestHandlerAvgIdlePercent><>OneMinuteRate"
    name = "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate"
    rules = [_rule(idle, name, "GAUGE", {}), *_without_rules()]
    rules += _quotas("Produce|Fetch|Request|ControllerMutation", "kafka_server_$1_$A", "client_id", {})
    rules += _followers("", "", None)
    gauge = r"kafka\.coordinator\.(\w+)<type=([^,]+), name=([^,]+)><>(?:Count|Value)"
    rules.append(_rule(gauge, "kafka_coordinator_$1_$2_$3", None, {}))
    sockets = r"kafka\.server<type=socket-server-metrics"
    labels = {"listener": "$1", "network_processor": "$2"}
    attributes = sockets + r", listener=(.+), networkProcessor=(.+)><>(.+):"
    rules.append(_rule(attributes, "kafka_server_socketservermetrics_$3", "GAUGE", labels))
    software = sockets + (
        r", clientSoftwareName=(.+), clientSoftwareVersion=(.+), listener=(.+), networkProcessor=(.+)"
        r"><>connections"
    )
    labels = {
        "client_software_name": "$1",
        "client_software_version": "$2",
        "listener": "$3",
        "network_processor": "$4",
    }
    rules.append(_rule(software, "kafka_server_socketservermetrics_connections", "GAUGE", labels))
    partition = r"kafka\.(\w+)<type=([^,]+), name=([^,]+), topic=(.+), partition=(.+)><>Value"
    rules.append(_rule(partition, "kafka_$1_$2_$3", "GAUGE", {"topic": "$4", "partition": "$5"}))
    for count in (2, 1, 0):
        tags, labels = _tags(count, 4)
        bean = rf"kafka\.(\w+)<type=([^,]+), name=([^,]+?){tags}"
        after = f"${4 + 2 * count}"
        rules += [
            _rule(f"{bean}><>(?:Count|Value)", "kafka_$1_$2_$3", None, labels),
            _rule(
                rf"{bean}><>(\d+)thPercentile",
                "kafka_$1_$2_$3",
                "GAUGE",
                labels | {"quantile": f"0.{after}"},
            ),
        ]
    return rules


class Agent:
    """The exporter in a running server."""

    def __init__(self, rules_file: Path, url: str) -> None:
        self.url = url
        self._file = rules_file

    def told(self, rules: list[Rule], *, lowercase_labels: bool) -> str:
        """Return the metrics exported with these rules."""
        settings = {
            "lowercaseOutputName": True,
            "lowercaseOutputLabelNames": lowercase_labels,
            "rules": rules,
        }
        # JSON is a subset of YAML.
        text = json.dumps(settings)
        if self._file.read_text() != text:
            # The agent compares modification times, which some file systems store in whole seconds.
            time.sleep(1.1)
            self._file.write_text(text)
        status, body, _ = get(self.url, "/metrics")
        assert status == 200, body
        return body.decode()


@contextmanager
def kafka_with_agent(directory: Path, overrides: dict[str, str]) -> Iterator[tuple[GenuineKafka, Agent]]:
    """Start Apache Kafka 3.9.1 with its ZooKeeper and the exporter."""
    rules_file = directory / "rules.yml"
    rules_file.write_text("{}")
    port = free_port()
    option = f"-javaagent:{agent()}=127.0.0.1:{port}:{rules_file}"
    server = GenuineKafka(directory / "kafka", overrides, jvm_options=(option,))
    server.start(120)
    try:
        yield server, Agent(rules_file, f"http://127.0.0.1:{port}")
    finally:
        server.stop()
