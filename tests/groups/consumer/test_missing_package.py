"""Regular expressions without the package google-re2, which is an extra."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kafka_compat.testing import KafkaBroker
from tests.support.process import wait_until


def test_a_rejected_regular_expression_is_logged_once_if_google_re2_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "re2.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with KafkaBroker() as broker:
        for _ in range(2):
            _await_rejection(broker)
        (line,) = [line for line in broker.log.splitlines() if "google-re2" in line]
    assert "WARN" in line and "'(^t.*)' in group g" in line and "Install kafka-compat[regex]" in line


def _await_rejection(broker: KafkaBroker) -> None:
    settings = {"group.id": "g", "group.protocol": "consumer", "log_level": 0}
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    client.subscribe(["^t.*"])
    wait_until(lambda: _has_failed(client), 20, "an error")
    client.close()


def _has_failed(client: Consumer) -> bool:
    message = client.poll(0.1)
    return message is not None and message.error() is not None and "not valid" in str(message.error())
