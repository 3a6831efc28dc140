"""controlled.shutdown.max.retries: the number of attempts of a controlled shutdown."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from kafka_compat.errors import ErrorCode
from tests.cluster.embedded import EmbeddedCluster, until
from tests.quorum.kinds import EACH_KIND

BACKOFF = "controlled.shutdown.retry.backoff.ms"
RETRIES = "controlled.shutdown.max.retries"


@EACH_KIND
async def test_the_request_is_sent_to_the_next_controller_if_the_controller_is_lost(
    tmp_path: Path, kind: Callable[..., EmbeddedCluster]
) -> None:
    cluster = kind(tmp_path, settings={BACKOFF: "50", RETRIES: "100"})
    await cluster.start()
    try:
        controller = cluster.controller.broker_id
        leader, third = set(cluster.brokers) - {controller}
        assert await cluster.create_topic("t", assignment=(leader, third, controller)) == ErrorCode.NONE
        await cluster.stop_broker(controller, controlled=False)
        await cluster.stop_broker(leader)
        assert cluster.leader("t") == third
        assert await cluster.produce(third, "t", b"x") == ErrorCode.NONE
    finally:
        await cluster.stop()


@EACH_KIND
async def test_controlled_shutdown_gives_up_after_its_retries(
    tmp_path: Path, kind: Callable[..., EmbeddedCluster]
) -> None:
    cluster = kind(tmp_path, settings={BACKOFF: "200", RETRIES: "4"})
    await cluster.start()
    try:
        assert await cluster.create_topic("t", replicas=2) == ErrorCode.NONE
        await until(lambda: len(cluster.isr("t")) == 2)
        leader = cluster.leader("t")
        (follower,) = cluster.isr("t") - {leader}
        await cluster.stop_broker(follower, controlled=False)
        await until(lambda: cluster.isr("t") == {leader})
        begun = time.monotonic()
        await cluster.stop_broker(leader)
        assert 0.6 <= time.monotonic() - begun < 5
    finally:
        await cluster.stop()
