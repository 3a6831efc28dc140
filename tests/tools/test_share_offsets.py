"""New offsets of share groups, where this project's command differs from Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.tools import registry
from tests.share_groups.side import ShareSide
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

SETTINGS = {"share.coordinator.state.topic.num.partitions": "1"}


def test_current_offsets_leave_out_partitions_that_were_never_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = KafkaCompatBroker(tmp_path, SETTINGS)
    broker.start(60)
    group = ShareSide(broker.address, "queue", "")
    group.create("alpha", 2)
    request = {"member_id": "member", "member_epoch": 0, "subscribed_topic_names": ["alpha"]}
    assert not group.heartbeat(request)["error_code"]
    wait_until(lambda: len(group.initialized()) == 2, 60, "the initialization of the states", 0.1)
    group.heartbeat({"member_id": "member", "member_epoch": -1})
    group.alter({"alpha": {1: 0}})
    group.close()
    line = ["--bootstrap-server", broker.address, "--group", "queue", "--reset-offsets", "--dry-run"]
    assert registry.run("share-groups", [*line, "--all-topics", "--to-current"]) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines() if row.startswith("queue")]
    assert rows == [["queue", "alpha", "1", "0"]]
    broker.stop()
