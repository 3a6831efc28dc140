"""The store on a secured ZooKeeper: authentication, TLS and ACLs, and the error messages when they fail."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_compat.cluster.zookeeper_tls import ZooKeeperTls
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import SessionState
from kafka_compat.coordination.zookeeper_store.security import OPEN, DigestLogin, StoreSecurity
from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore
from tests.coordination.session_state import await_state
from tests.support.certificates import Authority, authority
from tests.support.node_acls import node_acls
from tests.support.secure_zookeeper import SecureZooKeeper, pem_store

USER, PASSWORD = "kafka", 'pä ß"\\, =x'
LOGIN = DigestLogin(USER, PASSWORD, "the setting")
OWNED = ("sasl:kafka:ALL", "world:anyone:READ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureZooKeeper]:
    users = {USER: PASSWORD, "other": "другой"}
    made = SecureZooKeeper(tmp_path_factory.mktemp("zookeeper"), users, authority(), client_auth="want")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def admin(server: SecureZooKeeper) -> Iterator[KazooClient]:
    client = server.all_powerful()
    client.start(20)
    yield client
    client.stop()
    client.close()


def tls(directory: Path, **changed: str) -> ZooKeeperTls:
    """`changed` contains settings without the prefix zookeeper.ssl, with underscores for dots."""
    trusted = directory / "trusted.pem"
    if not trusted.exists():
        trusted.write_text(authority().pem())
        pem_store(directory / "keys.pem", authority().issue("broker"))
    settings = {
        "zookeeper.ssl.keystore.location": str(directory / "keys.pem"),
        "zookeeper.ssl.truststore.location": str(trusted),
    }
    settings |= {f"zookeeper.ssl.{name.replace('_', '.')}": value for name, value in changed.items()}
    return ZooKeeperTls(BrokerConfig(settings))


async def connect(
    hosts: str, security: StoreSecurity, connection_timeout_ms: int = 20_000
) -> ZooKeeperMetadataStore:
    return await ZooKeeperMetadataStore.connect(
        hosts, session_timeout_ms=10_000, connection_timeout_ms=connection_timeout_ms, security=security
    )


async def refused(hosts: str, security: StoreSecurity, connection_timeout_ms: int = 1500) -> str:
    """Check that connecting fails, and return the error message."""
    with pytest.raises(stores.ConnectionLost) as failed:
        await connect(hosts, security, connection_timeout_ms)
    return str(failed.value)


# -- authentication


async def test_nodes_are_owned_by_the_authenticated_user(server: SecureZooKeeper, admin: KazooClient) -> None:
    session = await connect(f"{server.address}/logins", StoreSecurity(LOGIN, None, True))
    await session.ensure("/config/users/alice")
    await session.create("/controller", b"me", ephemeral=True)
    await session.create("/consumers")
    await session.create("/change_", sequential=True)
    acls = await asyncio.to_thread(node_acls, admin, "/logins")
    assert acls == {
        "/": OWNED,
        "/config": OWNED,
        "/config/users": OWNED[:1],
        "/config/users/alice": OWNED[:1],
        "/controller": OWNED,
        "/consumers": ("world:anyone:ALL",),
        "/change_0000000003": OWNED,
    }
    stranger = await connect(f"{server.address}/logins", OPEN)
    assert (await stranger.get("/controller"))[0] == b"me"
    for path in ("/config/users", "/config/users/alice"):
        with pytest.raises(stores.NotAllowed, match=f"{path}: the node's ACL"):
            await stranger.get(path)
    with pytest.raises(stores.NotAllowed, match="/mine"):
        await stranger.create("/mine")
    with pytest.raises(stores.NotAllowed, match="/controller"):
        await stranger.set("/controller", b"somebody else")
    await stranger.close()
    await session.close()


async def test_names_and_passwords_can_contain_any_characters(server: SecureZooKeeper) -> None:
    await (await connect(server.address, StoreSecurity(LOGIN))).close()
    await (await connect(server.address, StoreSecurity(DigestLogin("other", "другой", "")))).close()


@pytest.mark.parametrize("username", [USER, "nobody"])
async def test_a_failed_login_is_reported_immediately(server: SecureZooKeeper, username: str) -> None:
    # ZooKeeper 3.8 authenticates an unknown user name with the password of the previous user.
    login = DigestLogin(username, "wrong", "the setting")
    started = time.monotonic()
    with pytest.raises(stores.LoginFailed) as failed:
        await connect(server.address, StoreSecurity(login))
    assert time.monotonic() - started < 10
    assert login.username in str(failed.value)
    assert "the setting" in str(failed.value)
    assert "wrong" not in str(failed.value)
    assert "wrong" not in repr(login)


async def test_a_mismatch_of_sasl_settings_with_zookeeper_is_reported(tmp_path: Path) -> None:
    without, demanding = (
        SecureZooKeeper(tmp_path / "1"),
        SecureZooKeeper(tmp_path / "2", {USER: PASSWORD}, demands_login=True),
    )
    for server in (without, demanding):
        server.launch()
    for server in (without, demanding):
        await asyncio.to_thread(server.wait_ready)
    try:
        with pytest.raises(stores.LoginFailed, match="JAAS file has a section named Server"):
            await connect(without.address, StoreSecurity(LOGIN))
        stranger = await connect(demanding.address, OPEN)
        with pytest.raises(stores.LoginFailed, match=r"kafka\.compat\.zookeeper\.sasl\.jaas\.config"):
            await stranger.get("/")
        await stranger.close()
        session = await connect(demanding.address, StoreSecurity(LOGIN, None, True))
        await session.create("/a", b"1", ephemeral=True)
        session_id = session.session_id

        await asyncio.to_thread(demanding.kill)
        await await_state(session, SessionState.SUSPENDED)
        await asyncio.to_thread(demanding.start)
        await await_state(session, SessionState.CONNECTED)
        # The client has authenticated again: without authentication, it could not write its own node.
        await session.set("/a", b"2")
        assert session.session_id == session_id
        await session.close()
    finally:
        without.stop()
        demanding.stop()


async def test_a_login_is_retried_after_the_server_dies() -> None:
    """A lost connection is not a wrong password. The client continues with the next server, or later with the
    same one.
    """
    logins = asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
        writer.write(struct.pack(">iiiqi16s?", 37, 0, 10_000, 7, 16, bytes(16), False))
        await reader.readexactly(4)
        logins.release()
        writer.close()

    dying = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"127.0.0.1:{dying.sockets[0].getsockname()[1]}"
    connecting = asyncio.ensure_future(refused(address, StoreSecurity(LOGIN)))
    for _ in range(3):
        await asyncio.wait_for(logins.acquire(), 10)
    assert "closed the connection during the login. Check the setting" in await connecting
    dying.close()


# -- TLS


async def test_nodes_are_owned_by_the_name_in_the_certificate(
    server: SecureZooKeeper, admin: KazooClient, tmp_path: Path
) -> None:
    session = await connect(f"{server.secure_address}/tls", StoreSecurity(None, tls(tmp_path), True))
    large = b"x" * 900_000
    await session.create("/large", large)
    answers = await asyncio.gather(*(session.get("/large") for _ in range(20)))
    assert {data for data, _ in answers} == {large}
    acls = await asyncio.to_thread(node_acls, admin, "/tls")
    assert acls["/large"] == ("world:anyone:READ", "x509:CN=broker:ALL")
    await session.close()


async def test_an_unauthenticated_session_does_not_protect_its_nodes(
    server: SecureZooKeeper, tmp_path: Path
) -> None:
    security = StoreSecurity(None, tls(tmp_path, keystore_location=""), True)
    session = await connect(server.secure_address, security)
    with pytest.raises(stores.NotAllowed, match=r"zookeeper\.set\.acl"):
        await session.create("/nobodys")
    await session.close()


async def test_untrusted_servers_are_rejected(server: SecureZooKeeper, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.pem"
    stranger.write_text(Authority("Stranger").pem())
    said = await refused(
        server.secure_address, StoreSecurity(None, tls(tmp_path, truststore_location=str(stranger)))
    )
    assert "its certificate is not trusted" in said
    assert "(zookeeper.ssl.truststore.location)" in said

    elsewhere = SecureZooKeeper(tmp_path / "server", None, authority(), hosts=["elsewhere.example"])
    await asyncio.to_thread(elsewhere.start)
    try:
        said = await refused(elsewhere.secure_address, StoreSecurity(None, tls(tmp_path)))
        assert "(zookeeper.ssl.endpoint.identification.algorithm)" in said
        anywhere = tls(tmp_path, endpoint_identification_algorithm="")
        await (await connect(elsewhere.secure_address, StoreSecurity(None, anywhere))).close()
        # The server requires client certificates, issued by its own authority.
        said = await refused(
            elsewhere.secure_address,
            StoreSecurity(None, tls(tmp_path, keystore_location="", endpoint_identification_algorithm="")),
        )
        assert "zookeeper.ssl.keystore.location" in said
    finally:
        elsewhere.stop()


async def test_tls_on_a_plaintext_port_and_plaintext_on_a_tls_port_are_reported(
    server: SecureZooKeeper, tmp_path: Path
) -> None:
    said = await refused(server.address, StoreSecurity(None, tls(tmp_path)))
    assert "no response to the TLS handshake" in said
    assert "zookeeper.ssl.client.enable" in said
    said = await refused(server.secure_address, OPEN)
    assert "it uses TLS (zookeeper.ssl.client.enable)" in said


async def test_renewed_certificates_are_used_over_tls_13(tmp_path: Path) -> None:
    server = SecureZooKeeper(tmp_path / "server", None, authority(), protocol="TLSv1.3")
    await asyncio.to_thread(server.start)
    admin = server.all_powerful()
    await asyncio.to_thread(admin.start, 20)
    try:
        security = StoreSecurity(None, tls(tmp_path, protocol="TLSv1.3"), True)
        session = await connect(server.secure_address, security)
        await session.create("/first")
        assert (await session.get("/first"))[0] is None
        keys = tmp_path / "keys.pem"
        keys.write_text("half written")
        broken = await connect(server.secure_address, security)
        await broken.create("/second")
        pem_store(keys, authority().issue("renewed"))
        renewed = await connect(server.secure_address, security)
        await renewed.create("/third")
        acls = await asyncio.to_thread(node_acls, admin)
        owners = [acls[path][-1] for path in ("/first", "/second", "/third")]
        assert owners == ["x509:CN=broker:ALL", "x509:CN=broker:ALL", "x509:CN=renewed:ALL"]
        for opened in (session, broken, renewed):
            await opened.close()
    finally:
        await asyncio.to_thread(admin.stop)
        admin.close()
        server.stop()
