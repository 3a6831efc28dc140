"""kafka-client-metrics: output and exit code are the same as with Kafka's command, on this project's broker
and on Apache Kafka with KRaft.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kafka_compat.tools import registry
from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.support.servers import KafkaCompatBroker, Server
from tests.tools import admin_lines
from tests.tools.compare import Comparison, table


@pytest.mark.parametrize("kind", ["shared_broker", "genuine_41"][: campaign.rounds(1, 2)])
def test_kafka_client_metrics_prints_the_same_output_as_kafka(
    kind: str, newest: JavaTools, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(kind)
    admin_lines.write_files(tmp_path)
    comparison = Comparison(newest, server.address, str(tmp_path), in_processes=campaign.enabled())
    found = comparison.differences(table("client-metrics"))
    assert not found, "\n".join(found)


def test_a_subscription_name_is_generated_on_request(
    shared_broker: KafkaCompatBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--bootstrap-server", shared_broker.address]
    assert registry.run("client-metrics", [*at, "--alter", "--generate-name", "--metrics", "a"]) == 0
    told = re.fullmatch(r"Altered client metrics config for ([\w-]{22})\.\n", capsys.readouterr().out)
    assert told is not None
    assert registry.run("client-metrics", [*at, "--describe", "--name", told[1], "--json"]) == 0
    configs = {"interval.ms": "300000", "match": "", "metrics": "a"}
    assert json.loads(capsys.readouterr().out) == [{"name": told[1], "configs": configs}]
    assert registry.run("client-metrics", [*at, "--delete", "--name", told[1], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": told[1]}
    assert registry.run("client-metrics", [*at, "--list", "--json"]) == 0
    assert told[1] not in json.loads(capsys.readouterr().out)
