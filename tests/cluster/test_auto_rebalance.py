"""auto.leader.rebalance.enable: leadership returns to the preferred replicas automatically."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from tests.cluster.embedded import EmbeddedCluster, until
from tests.quorum.kinds import EACH_KIND

INTERVAL = "leader.imbalance.check.interval.seconds"
ALL = {1, 2, 3}


@EACH_KIND
@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_leadership_returns_to_preferred_replicas_only_if_enabled(
    tmp_path: Path, kind: Callable[..., EmbeddedCluster], enabled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_compat.cluster.controller_term.FIRST_REBALANCE_S", 0.5)
    cluster = kind(tmp_path, settings={INTERVAL: "1", "auto.leader.rebalance.enable": enabled})
    await cluster.start()
    try:
        preferred = min(cluster.brokers.keys() - {cluster.controller.broker_id})
        order = [preferred, *sorted(ALL - {preferred})]
        assert await cluster.create_topic("t", assignment=order) == ErrorCode.NONE
        await cluster.stop_broker(preferred)
        await until(lambda: cluster.leader("t") not in (-1, preferred))
        await cluster.start_broker(preferred)
        await until(lambda: cluster.isr("t") == ALL)
        if enabled == "true":
            await until(lambda: cluster.leader("t") == preferred)
        else:
            # Wait three times the interval, because no event indicates that leadership has not moved.
            await asyncio.sleep(3)
            assert cluster.leader("t") == order[1]
    finally:
        await cluster.stop()
