"""Commands with --json print errors on standard error, so that standard output contains only JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from kafka_compat.testing import KafkaBroker
from kafka_compat.tools import registry


@pytest.mark.parametrize(
    ("tool", "arguments", "error", "printed"),
    [
        (
            "consumer-groups",
            "--reset-offsets --group g --topic t --to-earliest",
            "Offsets can only be reset while the group 'g' is inactive",
            [],
        ),
        ("consumer-groups", "--describe --group none", "Group none not found", None),
        ("topics", "--describe --topic none", "Topic 'none' does not exist", None),
        ("acls", "--list", "No Authorizer is configured", None),
    ],
)
def test_errors_are_printed_on_stderr(
    member: str,
    capsys: pytest.CaptureFixture[str],
    tool: str,
    arguments: str,
    error: str,
    printed: object,
) -> None:
    registry.run(tool, ["--bootstrap-server", member, *arguments.split(), "--json"])
    out, errors = capsys.readouterr()
    assert error in errors
    assert out == "" if printed is None else json.loads(out) == printed


@pytest.fixture(scope="module")
def member() -> Iterator[str]:
    """Bootstrap servers of a broker whose group g has a member."""
    with KafkaBroker() as broker:
        broker.create_topic("t")
        settings = {"group.id": "g", "group.protocol": "consumer", "log_level": 0}
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
        consumer.subscribe(["t"])
        consumer.poll(1)
        broker.control.await_group("g", state="Stable", members=1)
        yield broker.bootstrap_servers
        consumer.close()
