"""Check of the running brokers: their versions (ApiVersions), and the state of their log directories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.client.cluster import Cluster, TimedOut
from kafka_compat.client.connection_settings import WrongSettings
from kafka_compat.config.inter_broker_protocol import parse_version
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.migration.findings import CLUSTER, MIRROR, Finding, Level
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.sasl.client import Untrusted

if TYPE_CHECKING:
    from kafka_compat.coordination.nodes.cluster_state import BrokerInfo

AREA: Final = "versions"
_OLDEST: Final = (2, 8)
_FIRST_WITHOUT_ZOOKEEPER: Final = (4, 0)
_FAILURES: Final = (TimedOut, KafkaError, WrongSettings, Untrusted, OSError, EOFError, ValueError)


def addresses_of(brokers: Mapping[int, BrokerInfo], security_protocol: str) -> str:
    """Return the addresses of the brokers' listeners with this security protocol, for bootstrap.servers."""
    return ",".join(
        f"{endpoint.host}:{endpoint.port}"
        for broker in brokers.values()
        for endpoint in broker.endpoints
        if endpoint.security_protocol == security_protocol
    )


class LiveBrokers(NamedTuple):
    """The findings, and the Kafka version of each broker of Apache Kafka that responded."""

    findings: list[Finding]
    versions: dict[int, str]


def check_live(bootstrap: str, settings: Mapping[str, str], timeout_s: float) -> LiveBrokers:
    """Check the brokers of the cluster with these bootstrap servers and Java client settings."""
    versions: dict[int, str] = {}
    limits = {
        "default.api.timeout.ms": str(int(timeout_s * 1000)),
        "request.timeout.ms": str(int(timeout_s * 1000)),
    }
    remedy = "check --bootstrap-server and --command-config, or skip the brokers with --skip brokers"
    found: list[Finding] = []
    try:
        with Cluster(bootstrap, {**limits, **settings}, client_id="kafka-compat-migrate") as cluster:
            for node in cluster.brokers():
                text = f"broker {node.node_id} at {node.host}:{node.port}"
                ask_versions = partial(_versions, cluster, node.node_id, versions)
                found += _guarded(node.node_id, text, remedy, ask_versions)
                found += _guarded(node.node_id, text, remedy, partial(_log_dirs, cluster, node.node_id))
    except _FAILURES as error:
        text = f"{bootstrap}: the brokers were not asked: {_reason(error)}"
        found.append(Finding(CLUSTER, Level.UNCHECKED, AREA, text, remedy))
    return LiveBrokers(found, versions)


def _guarded(
    broker_id: int, what: str, remedy: str, ask: Callable[[], Iterator[Finding]]
) -> Sequence[Finding]:
    try:
        return list(ask())
    except _FAILURES as error:
        return [Finding(broker_id, Level.UNCHECKED, AREA, f"{what} was not asked: {_reason(error)}", remedy)]


def _reason(error: Exception) -> str:
    if isinstance(error, KafkaError):
        return f"{error.code.name} {error}".strip()
    return str(error) or type(error).__name__


def _versions(cluster: Cluster, broker_id: int, versions: dict[int, str]) -> Iterator[Finding]:
    version = version_of(cluster.api_versions(broker_id, "apiVersions"))
    if version is not None:
        versions[broker_id] = version
    if version is None:
        yield Finding(broker_id, Level.INFO, AREA, "runs kafka-compat, or an unknown version of Kafka")
    elif not _is_older(version, _FIRST_WITHOUT_ZOOKEEPER):
        remedy = MIRROR
        yield Finding(broker_id, Level.CHANGE, AREA, f"runs Kafka {version}, without ZooKeeper", remedy)
    elif _is_older(version, _OLDEST):
        text = f"runs Kafka {version}: too old for the same cluster"
        yield Finding(broker_id, Level.CHANGE, AREA, text, "upgrade all brokers to Kafka 2.8 or later first")
    else:
        yield Finding(broker_id, Level.INFO, AREA, f"runs Kafka {version}")


def _log_dirs(cluster: Cluster, broker_id: int) -> Iterator[Finding]:
    answer = cluster.ask_broker(broker_id, ApiKey.DESCRIBE_LOG_DIRS, "describeLogDirs", topics=None)
    if answer.error_code:
        text = f"its log directories were not described: {known_code(answer.error_code).name}"
        remedy = "run the check as a user with DESCRIBE on the cluster (--command-config)"
        yield Finding(broker_id, Level.UNCHECKED, "directories", text, remedy)
    for each in answer.results:
        if each.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            text = f"{each.log_dir}: the broker reports that this log directory has failed"
            remedy = "replace the disk and wait until its replicas are in sync, or remove it from log.dirs"
            yield Finding(broker_id, Level.CHANGE, "directories", text, remedy)


def version_of(apis: Mapping[int, tuple[int, int]]) -> str | None:
    """Return the newest Kafka version whose brokers report these APIs, or None if there is none."""
    from kafka_compat.protocol.kafka_versions import VERSIONS

    reported = {f"{key}:{low}-{high}" for key, (low, high) in apis.items()}
    for version, text in reversed(VERSIONS.items()):
        if {word for word in text.split() if word[0].isdecimal()} <= reported:
            return version
    return None


def _is_older(version: str, than: tuple[int, int]) -> bool:
    """Return whether a version such as 2.7 is older than (major, minor)."""
    parsed = parse_version(version)
    return parsed is not None and parsed[:2] < than
