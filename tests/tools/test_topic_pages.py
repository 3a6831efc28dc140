"""`topics --describe` combines the pages of DescribeTopicPartitions (KIP-966)."""

from __future__ import annotations

import json
import uuid

import pytest

from kafka_compat.tools import registry
from tests.support.servers import KafkaCompatBroker


def test_a_topic_that_is_split_between_pages_is_described_completely(
    shared_broker: KafkaCompatBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--bootstrap-server", shared_broker.address]
    names = [f"paged-{number}-{uuid.uuid4()}" for number in range(3)]
    for name in names:
        assert registry.run("topics", [*at, "--create", "--topic", name, "--partitions", "5"]) == 0
    capsys.readouterr()
    limit = ["--partition-size-limit-per-response", "2"]
    assert registry.run("topics", [*at, "--describe", "--topic", "paged-.*", *limit, "--json"]) == 0
    found = {each["topic"]: each["partitions"] for each in json.loads(capsys.readouterr().out)}
    assert {name: [each["partition"] for each in found[name]] for name in names} == {
        name: list(range(5)) for name in names
    }
