"""`kafka-compat migrate check`: read a genuine cluster, and report what differs or must change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kafka_compat.cluster.zookeeper_sessions import store_security
from kafka_compat.config import BrokerConfig
from kafka_compat.config.keys import ConfigError
from kafka_compat.config.properties import parse_properties
from kafka_compat.coordination.store.metadata_store import MetadataStoreError
from kafka_compat.migration.cluster_check import check_nodes, check_protocol, check_together
from kafka_compat.migration.directories_check import CheckedDirectories, check_directories
from kafka_compat.migration.findings import CLUSTER, Finding, Level, in_order
from kafka_compat.migration.live_check import AREA as VERSIONS
from kafka_compat.migration.live_check import LiveBrokers, addresses_of, check_live
from kafka_compat.migration.nodes import Nodes, read_nodes
from kafka_compat.migration.settings_check import CheckedSettings, check_settings

DIRECTORIES: Final = "directories"
ZOOKEEPER: Final = "zookeeper"
BROKERS: Final = "brokers"
PARTS: Final = (DIRECTORIES, ZOOKEEPER, BROKERS)


class Request(NamedTuple):
    """What to check. `skip` names parts that are left out on purpose, `client` has Java client settings."""

    files: Sequence[str]
    bootstrap: str = ""
    client: Mapping[str, str] = {}
    skip: frozenset[str] = frozenset()
    timeout_s: float = 10.0


def check(request: Request) -> list[Finding]:
    """Return the findings for the brokers of these server.properties files, and for their cluster. Raises
    OSError or ValueError if a file cannot be read.
    """
    checked: list[CheckedSettings] = []
    directories: dict[int | None, CheckedDirectories] = {}
    findings: list[Finding] = []
    for path in request.files:
        settings = check_settings(_properties(path))
        paths = _log_dirs(settings)
        if paths and DIRECTORIES not in request.skip:
            found = check_directories(paths, settings.broker)
            if settings.broker is None and found.broker_id is not None:
                settings = check_settings(settings.static, found.broker_id)
            directories[settings.broker] = found
            findings += found.findings
        findings += settings.findings
        checked.append(settings)
    findings += _repeated(checked)
    nodes: Nodes | None = None
    if ZOOKEEPER not in request.skip:
        nodes = _nodes(checked, request.timeout_s, findings)
    findings += check_together(nodes, checked, directories)
    if BROKERS not in request.skip:
        live = _live(request, nodes)
        findings += live.findings
        findings += check_protocol(checked, live.versions)
    return in_order(findings)


def _properties(path: str) -> dict[str, str]:
    try:
        parsed = parse_properties(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return {name: each.value for name, each in parsed.items()}


def _log_dirs(settings: CheckedSettings) -> list[str]:
    if settings.config is not None:
        return list(settings.config.log_dirs)
    # The directories of a node in KRaft mode are checked too: they are named in the report.
    text = settings.static.get("log.dirs") or settings.static.get("log.dir") or ""
    return [path.strip() for path in text.split(",") if path.strip()]


def _repeated(checked: Sequence[CheckedSettings]) -> list[Finding]:
    ids = [each.broker for each in checked if each.broker is not None]
    return [
        Finding(
            broker, Level.CHANGE, "settings", f"broker.id={broker}: in two files", "expected one per broker"
        )
        for broker in sorted({each for each in ids if ids.count(each) > 1})
    ]


def _nodes(checked: Sequence[CheckedSettings], timeout_s: float, findings: list[Finding]) -> Nodes | None:
    """Read the nodes of the ensemble in the settings, and add findings."""
    by_place: dict[str, BrokerConfig] = {}
    for each in checked:
        if each.config is not None and (place := each.config.str("zookeeper.connect")):
            by_place.setdefault(place, each.config)
    if not by_place:
        return None
    if len({_ensemble(place) for place in by_place}) > 1:
        text = f"zookeeper.connect differs: {' and '.join(by_place)}"
        findings.append(
            Finding(CLUSTER, Level.CHANGE, "settings", text, "expected the same ensemble and chroot")
        )
    place, config = next(iter(by_place.items()))
    try:
        nodes = asyncio.run(_read(place, config, timeout_s))
    except (MetadataStoreError, ValueError, OSError, ConfigError) as error:
        text = f"zookeeper.connect={place}: the nodes were not read: {error or type(error).__name__}"
        remedy = "check the address and the ZooKeeper login, or skip the nodes with --skip zookeeper"
        findings.append(Finding(CLUSTER, Level.UNCHECKED, "nodes", text, remedy))
        return None
    findings += check_nodes(nodes, config, place)
    return nodes


def _ensemble(place: str) -> tuple[frozenset[str], str]:
    hosts, _, chroot = place.partition("/")
    return frozenset(host.strip() for host in hosts.split(",")), chroot.strip("/")


async def _read(place: str, config: BrokerConfig, timeout_s: float) -> Nodes:
    from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore

    hosts, slash, chroot = place.partition("/")
    # The chroot is part of the paths, because a session with a chroot would create it.
    store = await ZooKeeperMetadataStore.connect(
        hosts,
        session_timeout_ms=config.int("zookeeper.session.timeout.ms"),
        connection_timeout_ms=int(timeout_s * 1000),
        security=store_security(config),
    )
    try:
        return await read_nodes(store, (slash + chroot).rstrip("/"))
    finally:
        await store.close()


def _live(request: Request, nodes: Nodes | None) -> LiveBrokers:
    protocol = request.client.get("security.protocol", "PLAINTEXT")
    bootstrap = request.bootstrap or (addresses_of(nodes.brokers, protocol) if nodes is not None else "")
    if not bootstrap:
        text = f"no broker with a listener of security.protocol={protocol} is known, so none was asked"
        remedy = "set --bootstrap-server and --command-config, or skip the brokers with --skip brokers"
        return LiveBrokers([Finding(CLUSTER, Level.UNCHECKED, VERSIONS, text, remedy)], {})
    return check_live(bootstrap, request.client, request.timeout_s)
