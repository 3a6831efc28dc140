"""Controller listeners survive requests with values that no node would send, and check who sends requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.coordination.replicated_store.record_frames import frame
from kafka_compat.coordination.replicated_store.records import RECORD_BYTES_MAX
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.append_metadata_records import AppendMetadataRecordsRequest
from tests.cluster.embedded import until
from tests.handlers.controller.requests import RAFT_APIS, client_of, strange_requests
from tests.quorum.cluster import CLUSTER_ID, QuorumCluster
from tests.support import campaign


class Controller:
    """A controller that is the only voter, and notes its fatal errors."""

    def __init__(self, cluster: QuorumCluster, process: QuorumProcess) -> None:
        self.process = process
        (self.port,) = cluster.controller_ports.values()
        self.failures = 0
        process.on_fatal = self._failed

    def _failed(self) -> None:
        self.failures += 1

    async def check(self) -> None:
        """Check that the node leads, and commits changes."""
        assert not self.failures
        node = self.process.node
        await until(lambda: node.machine.leader_id == node.node_id)
        session = await asyncio.wait_for(self.process.connect(), 30)
        await session.ensure("/checked")
        await session.close()


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[Controller]:
    cluster = QuorumCluster(tmp_path, count=0, controllers=1)
    process = await cluster.start_controller(101)
    found = Controller(cluster, process)
    await found.check()
    yield found
    await cluster.stop()


@pytest.mark.parametrize("seed", range(campaign.rounds(everyday=1, campaign=30)))
async def test_no_request_stops_a_controller(
    controller: Controller, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(controller.port)
    node = controller.process.node
    for api_key in RAFT_APIS:
        for version, request in strange_requests(api_key, CLUSTER_ID, node.machine.epoch, seed, 40):
            try:
                await client.send(api_key, version, request)
            except ConnectionError as error:
                raise AssertionError(f"{api_key.name} {version}: {request}") from error
            assert not controller.failures, f"{api_key.name} {version}: {request}"
    await client.close()
    await controller.check()
    assert "Traceback" not in caplog.text


async def _append(controller: Controller, *records: bytes) -> ErrorCode:
    client = client_of(controller.port)
    request: Any = AppendMetadataRecordsRequest(
        cluster_id=CLUSTER_ID, leader_epoch=controller.process.node.machine.epoch, records=list(records)
    )
    response = await client.send(ApiKey.APPEND_METADATA_RECORDS, 0, request)
    await client.close()
    return ErrorCode(response.error_code)


async def test_records_that_would_stop_the_store_are_rejected(controller: Controller) -> None:
    good = frame(1001, 0, b'[123,"expired",null]')
    for bad in (
        b"",
        b"\x07unknown",
        frame(999_999, 0, b"[]"),
        frame(1001, 1, b'[123,"expired",null]'),
        frame(1001, 0, b"[123"),
        frame(1001, 0, b"[" * 100_000),
        frame(1010, 0, b"[1,1]"),
    ):
        assert await _append(controller, good, bad) == ErrorCode.INVALID_RECORD, bad[:50]
    too_large = frame(1001, 0, b'[123,"expired",' + b" " * RECORD_BYTES_MAX + b"null]")
    assert await _append(controller, too_large) == ErrorCode.MESSAGE_TOO_LARGE
    assert await _append(controller, good) == ErrorCode.NONE
    await controller.check()
    assert controller.process.store.failure is None
