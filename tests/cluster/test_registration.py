"""Registration of a broker, and its connection to the controller, when responses are lost or late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.broker import StartupError
from kafka_compat.cluster import enrolment
from kafka_compat.cluster.controller_link import ControllerLink
from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.cluster.controller_settings import ControllerTermSettings
from kafka_compat.cluster.registration import register
from kafka_compat.cluster.shared_store import CurrentSession
from kafka_compat.config.inter_broker_protocol import LATEST
from kafka_compat.coordination.controller.outcomes import ControllerSettings
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import LongWork
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kafka_compat.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kafka_compat.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest
from kafka_compat.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from kafka_compat.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kafka_compat.protocol.messages.metadata import MetadataRequest
from kafka_compat.security.broker_security import NONE
from kafka_compat.tasks import Tasks
from tests.cluster.embedded import EmbeddedCluster, until
from tests.cluster.frames import frame_of, read_request

_WAIT_S = 0.2


class LosesAnswers(CurrentSession):
    """A session that loses the responses to its first transactions. True in `lost`: apply the transaction;
    False: do not.
    """

    def __init__(self, session: MetadataStore, lost: list[bool]) -> None:
        super().__init__(session)
        self.lost = lost

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | stores.Stat | None]:
        if not self.lost:
            return await super().multi(operations)
        if self.lost.pop(0):
            await super().multi(operations)
        raise stores.ConnectionLost("the connection broke")


@pytest.fixture
async def tree(tmp_path: Path) -> AsyncIterator[EmbeddedMetadataStore]:
    tree = EmbeddedMetadataStore(str(tmp_path / "tree.journal"))
    await tree.connect().ensure_all(znodes.PERSISTENT_PATHS)
    yield tree
    await tree.close()


def broker(broker_id: int, port: int = 9092) -> BrokerInfo:
    return BrokerInfo(broker_id, (Endpoint("PLAINTEXT", "127.0.0.1", port),))


@pytest.mark.parametrize("lost", [[True], [False], [False, True]])
async def test_a_registration_succeeds_even_if_its_request_or_response_is_lost(
    tree: EmbeddedMetadataStore, lost: list[bool]
) -> None:
    session = LosesAnswers(tree.connect(), lost)
    epoch = await register(session, broker(1), 0, _WAIT_S)
    stat = await session.exists(znodes.broker_path(1))
    assert stat is not None and (stat.czxid, stat.ephemeral_owner) == (epoch, session.session_id)


async def test_a_broker_id_in_use_is_rejected(tree: EmbeddedMetadataStore) -> None:
    await register(tree.connect(), broker(1), 0, _WAIT_S)
    with pytest.raises(stores.NodeExists):
        await register(tree.connect(), broker(1), 0, _WAIT_S)


async def test_a_broker_id_can_be_used_again_after_the_old_session_has_ended(
    tree: EmbeddedMetadataStore,
) -> None:
    before, now = tree.connect(), tree.connect()
    first = await register(before, broker(1), 0, _WAIT_S)
    registering = asyncio.create_task(register(now, broker(1), 0, 10))
    await before.expire()
    assert await registering > first


async def test_a_session_expiry_during_registration_results_in_one_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = EmbeddedCluster(tmp_path)
    await cluster.start()
    connect, short_lived, expiring = cluster.tree.connect, [1, 2], []

    def connect_for_a_moment() -> EmbeddedSession:
        session = connect()
        if short_lived:
            short_lived.pop()
            expiring.append(asyncio.create_task(session.expire()))
        return session

    monkeypatch.setattr(cluster.tree, "connect", connect_for_a_moment)
    monkeypatch.setattr(enrolment, "RECONNECT_S", 0.1)
    await cluster.sessions[1].expire()
    await until(lambda: cluster.brokers[1].broker_epoch == _registered_epoch(cluster))
    assert not short_lived
    # Leave time for a second registration attempt, which must not happen.
    await asyncio.sleep(0.3)
    assert cluster.brokers[1].broker_epoch == _registered_epoch(cluster)
    await cluster.stop()


async def test_a_session_that_expires_while_the_broker_registers_for_the_first_time_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = EmbeddedCluster(tmp_path, 1)
    expiring = [True]

    async def registered(session: MetadataStore, *arguments: Any) -> int:
        if expiring:
            expiring.pop()
            await cluster.sessions[1].expire()
        return await register(session, *arguments)

    monkeypatch.setattr(enrolment, "register", registered)
    await cluster.start_broker(1)
    assert not expiring
    assert cluster.brokers[1].broker_epoch == _registered_epoch(cluster)
    await until(lambda: cluster.brokers[1].controller.is_active)
    await cluster.stop()


def _registered_epoch(cluster: EmbeddedCluster) -> int | None:
    """Return the epoch of broker 1's node if its current session owns the node."""
    stat = cluster.tree.exists(znodes.broker_path(1), None)
    held = stat is not None and stat.ephemeral_owner == cluster.sessions[1].session_id
    return stat.czxid if stat is not None and held else None


async def test_requests_with_the_previous_broker_epoch_are_rejected(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path)
    await asyncio.gather(*(cluster.start_broker(broker_id) for broker_id in (1, 2)))
    life_before = cluster.tree.connect()
    await register(life_before, broker(3, cluster.reserve_port(3)), 0, _WAIT_S)
    await until(lambda: len(cluster.controller.metadata.brokers) == 3)
    starting = asyncio.create_task(cluster.start_broker(3))
    # The broker listens already. Requests from the controller and from clients wait until it has registered.
    asking = asyncio.create_task(cluster.send(3, ApiKey.METADATA, 12, MetadataRequest(topics=None)))
    assert await cluster.create_topic("t") == ErrorCode.NONE
    assert not (await asyncio.wait([asking], timeout=0.3))[0]
    await life_before.expire()
    await starting
    assert {broker.node_id for broker in (await asking).brokers} == {1, 2, 3}
    await until(lambda: cluster.isr("t") == {1, 2, 3})
    await cluster.stop()


async def test_a_broker_with_an_id_in_use_does_not_serve_clients(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, settings={"zookeeper.session.timeout.ms": "500"})
    other = cluster.tree.connect()
    await other.ensure_all(znodes.PERSISTENT_PATHS)
    await register(other, broker(1), 0, _WAIT_S)
    cluster.reserve_port(1)
    starting = asyncio.create_task(cluster.start_broker(1))
    # The broker listens as soon as its startup begins.
    await asyncio.sleep(0)
    asking = asyncio.create_task(cluster.send(1, ApiKey.API_VERSIONS, 0, ApiVersionsRequest()))
    with pytest.raises(StartupError, match=r"broker\.id=1 is registered"):
        await starting
    with pytest.raises(ConnectionError):
        await asking
    await cluster.tree.close()


async def test_quota_and_credential_requests_get_a_retriable_error_if_the_broker_has_no_session(
    tmp_path: Path,
) -> None:
    """Each entry gets a retriable error, and the connection remains open."""
    cluster = EmbeddedCluster(tmp_path, 1)
    await cluster.start()
    over = cluster.tree.connect()
    await over.expire()
    store = cluster.brokers[1].store
    session, store.session = store.session, over
    entity = [EntityData(entity_type="user", entity_name="u")]
    entry = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1.0)])
    altered = await cluster.send(1, ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries=[entry]))
    described = await cluster.send(1, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest())
    deletions = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="u", mechanism=1)])
    deleted = await cluster.send(1, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions)
    listed = await cluster.send(
        1, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest()
    )
    answers = [*altered.entries, described, *deleted.results, listed]
    assert [answer.error_code for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT] * 4
    store.session = session
    await cluster.stop()


async def test_requests_do_not_wait_for_a_lost_controller(tree: EmbeddedMetadataStore) -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        await reader.read()

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        writer.write(frame_of(*request[:3], AlterPartitionResponse(throttle_time_ms=7)))

    servers = [await asyncio.start_server(peer, "127.0.0.1", 0) for peer in (silent, answering)]
    ports = {number: server.sockets[0].getsockname()[1] for number, server in enumerate(servers, 1)}

    async def address_of(broker_id: int) -> tuple[str, int]:
        return "127.0.0.1", ports[broker_id]

    nobody: Any = None
    settings = ControllerTermSettings(
        ControllerSettings(), "PLAINTEXT", False, 30_000, None, LATEST, nobody, lambda: NONE
    )
    long_work = LongWork(asyncio.get_running_loop())
    service = ControllerService(3, lambda: settings, lambda: 0, Tasks(), long_work)
    link = ControllerLink("broker-3", service, address_of, 30_000)
    others = tree.connect()
    first, second = (
        stores.Create(znodes.CONTROLLER, _controller(number), ephemeral=True) for number in (1, 2)
    )
    await others.multi([first])
    service.start(tree.connect())
    sending = asyncio.create_task(link.send(ApiKey.ALTER_PARTITION, 3, AlterPartitionRequest(broker_id=3)))
    async with asyncio.timeout(5):
        await asked.wait()
        await others.multi([stores.Delete(znodes.CONTROLLER), second])
        assert (await sending).throttle_time_ms == 7
    await link.close()
    await service.stop()
    for server in servers:
        server.close()


def _controller(broker_id: int) -> bytes:
    return znodes.encode_controller(znodes.ControllerInfo(broker_id, 0))
