"""kafka-delegation-tokens and kafka-cluster: output and exit code are the same as with Kafka's commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_compat.testing import KafkaBroker
from tests.support.java_tools import JavaTools
from tests.support.servers import run_kafka_compat
from tests.tools.compare import Comparison, table

_BY_CHANCE = {r"[\w+/]{86}==": "HMAC", r"(?<![\w-])[\w-]{22}(?![\w-])": "ID", r" +": " "}


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker({"delegation.token.secret.key": "secret"}, security="scram") as broker:
        yield broker


@pytest.mark.parametrize("name", ["delegation-tokens", "cluster-tool"])
def test_commands_print_the_same_output_as_kafka(
    broker: KafkaBroker, newest: JavaTools, tmp_path: Path, name: str
) -> None:
    broker.client_file("java", tmp_path)
    found = Comparison(newest, broker.bootstrap_servers, str(tmp_path)).differences(table(name), _BY_CHANCE)
    assert not found, "\n".join(found)


def test_a_token_is_created_renewed_described_and_expired(broker: KafkaBroker, tmp_path: Path) -> None:
    file = str(broker.client_file("java", tmp_path))

    def tokens(*arguments: str) -> str:
        at = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", file)
        ran = run_kafka_compat("delegation-tokens", *at, *arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    created = json.loads(tokens("--create", "--max-life-time-period", "-1", "--json"))
    described = json.loads(tokens("--describe", "--owner-principal", "User:alice", "--json"))
    assert created in described
    renewed = tokens("--renew", "--renew-time-period", "60000", "--hmac", created["hmac"])
    assert re.search(r"Renewed the token, which expires at \d{4}-\d\d-\d\dT\d\d:\d\d\n", renewed)
    tokens("--expire", "--expiry-time-period", "-1", "--hmac", created["hmac"])
    assert created["token_id"] not in tokens("--describe", "--owner-principal", "User:alice")


def test_the_cluster_is_described_as_json(broker: KafkaBroker, tmp_path: Path) -> None:
    at = ("-b", broker.bootstrap_servers, "-c", str(broker.client_file("java", tmp_path)), "--json")
    (endpoint,) = json.loads(run_kafka_compat("cluster", "list-endpoints", *at).stdout)
    assert f"{endpoint['host']}:{endpoint['port']}" == broker.bootstrap_servers
    assert json.loads(run_kafka_compat("cluster", "cluster-id", *at).stdout)["cluster_id"]
