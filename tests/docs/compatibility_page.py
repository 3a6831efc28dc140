"""The text of docs/compatibility.md, generated from the handlers' declarations, the test clients and kips.py.

No I/O: `page()` returns the text, and `python -m tests.docs.write` writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.metadata import requires

from kafka_compat.handlers.served import CLUSTER_SERVED, QUORUM_SERVED, SERVED, TELEMETRY_SERVED
from kafka_compat.protocol.api_keys import ApiKey
from tests.clients.programs import CLIENTS, PROJECT, ClientKind
from tests.docs.genuine_versions import KAFKA_3_9, KAFKA_4_1
from tests.docs.kips import KIPS, Kip
from tests.others import results
from tests.others.results import Result
from tests.support.kafka_jars import BROKER_VERSIONS, TOOLS_VERSION

_HEAD = """\
# Compatibility

This page is generated from the code and its tests by `python -m tests.docs.write`: do not edit it.

kafka-compat behaves like Apache Kafka 3.9 with ZooKeeper, and supports the newer request versions that
Kafka 4 clients use. Tests with real clients verify every feature that this page lists as supported.
Most of these tests also run against Apache Kafka 3.9.1 or 4.1.0 and compare the results.
"""

KAFKA_ONLY = {
    ApiKey.UNREGISTER_BROKER: "KRaft",
    ApiKey.ENVELOPE: "KRaft",
}
"""The reason why the broker does not serve an API that Apache Kafka advertises."""

FEATURES = {
    "headers": "headers",
    "timestamps": "timestamps",
    "idempotent": "idempotence",
    "transactions": "transactions",
    "topic_admin": "topics",
    "group_admin": "groups",
    "static": "static members",
    "cooperative": "cooperative rebalances",
}


def page() -> str:
    """Return the text of the page."""
    return "\n".join([_HEAD, _clients(), _others(), _tools(), _files(), _kips(), _apis()])


def _clients() -> str:
    rows = "".join(
        f"| {_named(kind)} | {', '.join(_codecs(kind))} | {', '.join(_features(kind))} |\n"
        for kind in CLIENTS.values()
    )
    return f"""\
## Clients

Each client runs the same scenarios against this broker and against Apache Kafka 3.9.1, and must get the
same results. The scenarios cover producing with each codec, consuming, joining and leaving groups,
committing offsets, writing transactions, and managing topics and groups. Each row lists only features that
the client supports. For TLS and SASL, see [security.md](security.md).

| Client | Codecs | Features tested |
|---|---|---|
{rows}
Also tested: kcat (librdkafka), Kafka Streams with exactly_once_v2 (3.9.1), Spark's Kafka source and sink
(PySpark {_version("pyspark")}, [spark.md](spark.md)), the Testcontainers modules ([image.md](image.md)),
and kafka_exporter.
"""


def _others() -> str:
    rows = "".join(_suite(name, each) for name, each in results.read().items())
    return f"""\
## Other projects' tests

The test suites of these projects run unchanged against this broker and against Apache Kafka
(`scripts/test --campaign tests/others`). Projects without such a suite run scenarios instead: their unchanged
packages work while the broker and the program are killed. The table shows the last run: how many tests passed
on each side, out of those that are not skipped. Some tests fail on both sides.

| Suite | Version | From | Tests | Servers | kafka-compat | Apache Kafka | Only on Apache Kafka |
|---|---|---|---|---|---|---|---|
{rows}
[Decision 0035](design/decisions/0035-other-projects-tests.md) explains how the suites are run, and why the
tests in the last column fail.
"""


def _suite(name: str, result: Result) -> str:
    ours, genuine = (
        f"{counts['passed']} of {counts['passed'] + counts['failed']}"
        for counts in (result.ours, result.genuine)
    )
    missing = str(len(result.only_genuine)) if result.only_genuine else "none"
    cells = (
        f"[{name}]({result.link})",
        result.version,
        result.source,
        result.tests,
        result.servers,
        ours,
        genuine,
        missing,
    )
    return f"| {' | '.join(cells)} |\n"


def _tools() -> str:
    return f"""\
## Kafka's tools

The tools of Kafka {BROKER_VERSIONS[0]} print the same output, and exit with the same code, as with
Apache Kafka: kafka-topics, kafka-configs, kafka-consumer-groups, kafka-transactions,
kafka-leader-election, kafka-reassign-partitions, kafka-log-dirs, kafka-delete-records,
kafka-get-offsets, kafka-dump-log, kafka-features, kafka-cluster, kafka-acls, kafka-delegation-tokens,
the console producer and consumer, and the performance tools. The built-in commands, which do not need
Java ([commands.md](commands.md)), are compared with the tools of Kafka {TOOLS_VERSION}.
"""


def _files() -> str:
    return """\
## Files

kafka-compat opens data directories that Kafka 3.9 wrote, and Kafka 3.9 opens the data directories of
kafka-compat ([migrate.md](migrate.md)). Message formats 0 and 1 of older brokers are supported. A cluster
with ZooKeeper may contain both kafka-compat and Apache Kafka brokers.
"""


def _kips() -> str:
    rows = "".join(f"| KIP-{kip.number} | {kip.what} | {_here(kip)} |\n" for kip in KIPS)
    return f"""\
## Proposals (KIPs)

This table lists the most requested proposals. The last column shows whether a proposal is supported, and
which test in `tests/` verifies it.

| KIP | Feature | Supported |
|---|---|---|
{rows}"""


def is_here(kip: Kip) -> bool:
    """Return whether the broker supports the proposal."""
    return kip.api in SERVED if kip.api is not None else bool(kip.shown_by)


def _here(kip: Kip) -> str:
    said = [("yes" + (f", `{kip.shown_by}`" if kip.shown_by else "")) if is_here(kip) else "**no**", kip.note]
    return "; ".join(filter(None, said))


def _apis() -> str:
    keys = sorted(
        {*CLUSTER_SERVED, *TELEMETRY_SERVED, *QUORUM_SERVED, *map(ApiKey, {**KAFKA_3_9, **KAFKA_4_1})}
    )
    rows = "".join(_api(key) for key in keys)
    return f"""\
## APIs and their versions

This table lists the versions in the ApiVersions responses of this broker, of Apache Kafka 3.9.1 with
ZooKeeper, and of Apache Kafka 4.1.0. APIs marked *in a cluster* are supported only in clusters, for requests
between brokers.

| Key | API | kafka-compat | 3.9.1 | 4.1.0 | Notes |
|---|---|---|---|---|---|
{rows}"""


def _api(key: ApiKey) -> str:
    here = {**CLUSTER_SERVED, **TELEMETRY_SERVED, **QUORUM_SERVED}.get(key)
    note = ""
    if here is None:
        note = KAFKA_ONLY.get(key, "KIP-932" if "SHARE" in key.name else "")
    elif key in TELEMETRY_SERVED:
        note = "[how pushed metrics are exported](monitoring.md#what-clients-push)"
    elif key in QUORUM_SERVED:
        note = "with a [quorum](clusters.md#a-quorum-instead-of-zookeeper)"
    elif key not in SERVED:
        note = "in a cluster"
    name = "".join(part.title() for part in key.name.split("_"))
    cells = (str(int(key)), name, _span(here), _span(KAFKA_3_9.get(key)), _span(KAFKA_4_1.get(key)), note)
    return f"| {' | '.join(cells)} |\n"


def _span(versions: tuple[int, int] | None) -> str:
    return "–" if versions is None else f"{versions[0]}–{versions[1]}" if versions[1] else "0"


def _named(kind: ClientKind) -> str:
    """Return the library and its version."""
    if kind.java_version is not None:
        return f"Java kafka-clients {kind.java_version}"
    if kind.go_library is not None:
        module = {"franz-go": "github.com/twmb/franz-go", "sarama": "github.com/IBM/sarama"}[kind.go_library]
        found = re.search(rf"{module} v(\S+)", (PROJECT / "tests/clients/go/go.mod").read_text())
        assert found is not None
        return f"{kind.name} {found[1]} (Go)"
    if kind.node_program is not None:
        packages = json.loads((PROJECT / "tests/clients/node/package.json").read_text())
        return f"{kind.name} {packages['dependencies'][kind.name]} (Node.js)"
    language = "Python, librdkafka" if kind.name == "confluent-kafka" else "Python"
    return f"{kind.name} {_version(kind.name)} ({language})"


def _version(package: str) -> str:
    """Return the version in setup.cfg: the pinned version, or else the minimum."""
    wanted = next(line for line in requires("kafka-compat") or () if re.match(rf"{package}\b(?!-)", line))
    found = re.search(r"(==|>=)\s*([\d.]+)", wanted)
    assert found is not None, wanted
    return found[2] if found[1] == "==" else f"{found[2]} or newer"


def _codecs(kind: ClientKind) -> Iterable[str]:
    return kind.codecs[1:]


def _features(kind: ClientKind) -> Iterable[str]:
    return [text for feature, text in FEATURES.items() if feature in kind.features]
