"""Properties specific to the store on ZooKeeper: outages, lost connections, session expiry, and nodes that
other clients read.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE

from kafka_compat.coordination.store.metadata_store import (
    ConnectionLost,
    Event,
    EventKind,
    NodeExists,
    SessionExpired,
    SessionState,
)
from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore
from tests.coordination.session_state import await_state
from tests.coordination.stores import SESSION_TIMEOUT_MS, ZooKeeperStores
from tests.support.ports import free_port
from tests.support.servers import PROJECT, ZooKeeper


@pytest.fixture
async def stores(zookeeper: ZooKeeper) -> AsyncIterator[ZooKeeperStores]:
    made = ZooKeeperStores(zookeeper)
    yield made
    await made.close()


async def test_nodes_are_created_as_in_kafka(stores: ZooKeeperStores) -> None:
    """Another client finds the nodes under the chroot, with null data, an open ACL and the same stat."""
    session = await stores.connect()
    await session.ensure("/brokers/ids")
    await session.create("/brokers/ids/1", b"{}", ephemeral=True)
    _, stat = await session.get("/brokers/ids/1")
    address, _, chroot = stores.hosts.partition("/")
    other = KazooClient(address)
    await asyncio.to_thread(other.start)
    assert other.get(f"/{chroot}")[0] is None
    assert other.get(f"/{chroot}/brokers")[0] is None
    data, theirs = other.get(f"/{chroot}/brokers/ids/1")
    acl, _ = other.get_acls(f"/{chroot}/brokers/ids/1")
    assert (data, acl) == (b"{}", OPEN_ACL_UNSAFE)
    assert (stat.czxid, stat.mzxid, stat.version) == (theirs.czxid, theirs.mzxid, theirs.version)
    assert (stat.ephemeral_owner, stat.ctime_ms) == (theirs.ephemeralOwner, theirs.ctime)
    assert session.session_id == theirs.ephemeralOwner
    assert abs(stat.ctime_ms - time.time() * 1000) < 60_000
    await asyncio.to_thread(other.stop)
    other.close()


async def test_two_sessions_can_create_the_same_chroot_concurrently(stores: ZooKeeperStores) -> None:
    one, two = await asyncio.gather(stores.connect(), stores.connect())
    await one.create("/a")
    assert await two.children("/") == ["a"]


async def test_an_unreachable_server_is_reported_with_the_setting_and_the_address() -> None:
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}/kafka"
    with pytest.raises(ConnectionLost) as failed:
        await ZooKeeperMetadataStore.connect(hosts, session_timeout_ms=6000, connection_timeout_ms=300)
    assert hosts in str(failed.value)
    assert "zookeeper.connect" in str(failed.value)
    assert "Connection refused" in str(failed.value)
    with pytest.raises(ValueError, match=r"zookeeper\.connect=:,"):
        await ZooKeeperMetadataStore.connect(":,", session_timeout_ms=6000)


async def test_a_server_restart_suspends_the_session_without_losing_its_nodes(tmp_path: Path) -> None:
    server = ZooKeeper(tmp_path)
    server.start()
    relay = Relay(server.port)
    await relay.start()
    session, other = await relay.connect(), await relay.connect()
    await session.create("/controller", b"me", ephemeral=True)
    await session.create("/topics")
    events: list[Event] = []
    states: list[SessionState] = []
    session.on_state(states.append)
    await session.get("/controller", events.append)
    await session.children("/topics", events.append)
    await session.exists("/later", events.append)
    session_id = session.session_id

    await asyncio.to_thread(server.kill)
    await relay.cut()
    await await_state(session, SessionState.SUSPENDED)
    await await_state(other, SessionState.SUSPENDED)
    read = asyncio.ensure_future(session.get("/controller"))
    write = asyncio.ensure_future(other.create("/topics/t"))
    done, _ = await asyncio.wait([read, write], timeout=0.2)
    assert not done
    await asyncio.to_thread(server.start)
    await relay.start()

    data, stat = await asyncio.wait_for(read, 20)
    assert (data, stat.ephemeral_owner) == (b"me", session_id)
    assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]
    assert await asyncio.wait_for(write, 20) == "/topics/t"
    await other.create("/later")
    await session.exists("/later")
    assert set(events) == {Event(EventKind.CHILDREN, "/topics"), Event(EventKind.CREATED, "/later")}
    await other.set("/controller", b"changed")
    await session.get("/controller")
    assert events[2:] == [Event(EventKind.CHANGED, "/controller")]
    await other.close()
    await session.close()
    await relay.cut()
    server.stop()


async def test_a_write_with_a_lost_response_fails_and_a_read_is_retried(tmp_path: Path) -> None:
    server = ZooKeeper(tmp_path)
    server.start()
    relay = Relay(server.port)
    await relay.start()
    session = await relay.connect()
    await session.create("/a", b"1")
    # A stopped server accepts requests and does not respond.
    os.kill(server.pid, signal.SIGSTOP)
    await asyncio.to_thread(os.waitid, os.P_PID, server.pid, os.WSTOPPED | os.WNOWAIT)
    write = asyncio.ensure_future(session.set("/a", b"2"))
    read = asyncio.ensure_future(session.get("/a"))
    await asyncio.wait([write, read], timeout=0.3)
    await asyncio.to_thread(server.kill)
    await relay.cut()
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(write, 20)
    assert not read.done()
    await asyncio.to_thread(server.start)
    await relay.start()
    data, _ = await asyncio.wait_for(read, 20)
    assert data in (b"1", b"2")
    await session.close()
    await relay.cut()
    server.stop()


async def test_watches_for_changes_missed_while_disconnected_fire_before_reads_return(
    zookeeper: ZooKeeper, stores: ZooKeeperStores
) -> None:
    """The session connects through a relay. The test cuts the relay while another client continues to
    write.
    """
    relay = Relay(zookeeper.port)
    await relay.start()
    writer = await stores.connect()
    chroot = stores.hosts.partition("/")[2]
    session = await ZooKeeperMetadataStore.connect(
        f"127.0.0.1:{relay.port}/{chroot}", session_timeout_ms=20_000
    )
    for path in ("/changed", "/deleted", "/replaced", "/kept", "/parent", "/gone", "/quiet"):
        await writer.create(path)
    events: list[Event] = []
    for path in ("/changed", "/deleted", "/replaced", "/kept"):
        await session.get(path, events.append)
    for path in ("/created", "/never"):
        await session.exists(path, events.append)
    for path in ("/parent", "/gone", "/quiet"):
        await session.children(path, events.append)

    await relay.cut()
    await await_state(session, SessionState.SUSPENDED)
    reads = [asyncio.ensure_future(session.exists(path)) for path in ("/changed", "/created")]
    told: list[list[Event]] = []
    for read in reads:
        read.add_done_callback(lambda _: told.append(events.copy()))
    await writer.set("/changed", b"")
    await writer.create("/created")
    for path in ("/deleted", "/replaced", "/gone"):
        await writer.delete(path)
    await writer.create("/replaced")
    await writer.create("/parent/child")
    await relay.start()
    await asyncio.gather(*reads)

    missed = {
        Event(EventKind.CHANGED, "/changed"),
        Event(EventKind.DELETED, "/deleted"),
        Event(EventKind.DELETED, "/replaced"),
        Event(EventKind.CREATED, "/created"),
        Event(EventKind.CHILDREN, "/parent"),
        Event(EventKind.DELETED, "/gone"),
    }
    assert [set(before) for before in told] == [missed, missed]
    assert len(events) == len(missed)
    # Watches without a missed change remain set; fired watches are removed.
    await writer.set("/kept", b"")
    await writer.create("/never")
    await writer.create("/quiet/child")
    await writer.set("/changed", b"")
    await session.exists("/changed")
    assert set(events[len(missed) :]) == {
        Event(EventKind.CHANGED, "/kept"),
        Event(EventKind.CREATED, "/never"),
        Event(EventKind.CHILDREN, "/quiet"),
    }
    await session.close()
    await relay.cut()


async def test_an_expired_session_stays_expired_and_a_new_session_does_not_own_its_nodes(
    stores: ZooKeeperStores,
) -> None:
    session = await stores.connect()
    await session.create("/broker", ephemeral=True)
    _, before = await session.get("/broker")
    await stores.expire(session)
    await await_state(session, SessionState.EXPIRED)
    with pytest.raises(SessionExpired, match=f"{session.session_id:#x}"):
        await session.create("/broker", ephemeral=True)
    await session.close()
    assert not session._client.connected

    again = await stores.connect()
    assert again.session_id != session.session_id
    await again.create("/broker", ephemeral=True)
    _, after = await again.get("/broker")
    assert after.czxid > before.czxid


async def test_pending_calls_fail_if_the_session_expires_while_the_server_is_down(
    zookeeper: ZooKeeper, stores: ZooKeeperStores
) -> None:
    relay = Relay(zookeeper.port)
    await relay.start()
    other = await stores.connect()
    chroot = stores.hosts.partition("/")[2]
    session = await ZooKeeperMetadataStore.connect(
        f"127.0.0.1:{relay.port}/{chroot}", session_timeout_ms=SESSION_TIMEOUT_MS
    )
    await session.create("/ephemeral", ephemeral=True)
    gone = asyncio.Event()
    events: list[Event] = []
    await session.exists("/ephemeral", events.append)
    assert await other.exists("/ephemeral", lambda _: gone.set())
    await relay.cut()
    await await_state(session, SessionState.SUSPENDED)
    waiting = [asyncio.ensure_future(session.get("/")), asyncio.ensure_future(session.create("/b"))]
    await asyncio.wait_for(gone.wait(), 20)
    await relay.start()
    for call in waiting:
        with pytest.raises(SessionExpired):
            await asyncio.wait_for(call, 20)
    assert session.state is SessionState.EXPIRED
    assert not events
    assert await other.exists("/b") is None
    await session.close()
    await relay.cut()


MEMBER = """
import asyncio, sys
from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore

async def main():
    session = await ZooKeeperMetadataStore.connect(sys.argv[1], session_timeout_ms=int(sys.argv[2]))
    over = asyncio.Event()
    def tell(state):
        print(state.value, flush=True)
        if state.value == "expired":
            over.set()
    session.on_state(tell)
    await session.create("/member", ephemeral=True)
    print("ready", flush=True)
    await over.wait()
    await session.close()

asyncio.run(main())
"""


async def test_a_paused_process_is_notified_that_its_session_expired(stores: ZooKeeperStores) -> None:
    session = await stores.connect()
    member = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        MEMBER,
        stores.hosts,
        str(SESSION_TIMEOUT_MS),
        stdout=asyncio.subprocess.PIPE,
        cwd=PROJECT,
    )
    assert member.stdout is not None
    assert await member.stdout.readline() == b"ready\n"
    gone = asyncio.Event()
    assert await session.exists("/member", lambda _: gone.set())
    with pytest.raises(NodeExists):
        await session.create("/member")
    member.send_signal(signal.SIGSTOP)
    await asyncio.wait_for(gone.wait(), 20)
    member.send_signal(signal.SIGCONT)
    rest, _ = await asyncio.wait_for(member.communicate(), 20)
    assert rest.split()[-1] == b"expired"
    assert member.returncode == 0


async def test_a_store_can_be_closed_while_its_server_is_down(tmp_path: Path) -> None:
    server = ZooKeeper(tmp_path)
    server.start()
    session = await ZooKeeperStores(server).connect()
    await asyncio.to_thread(server.kill)
    await await_state(session, SessionState.SUSPENDED)
    waiting = asyncio.ensure_future(session.get("/"))
    await asyncio.sleep(0)  # the call begins to wait
    started = time.monotonic()
    await session.close()
    assert time.monotonic() - started < 5
    with pytest.raises(SessionExpired, match="closed"):
        await waiting


def test_importing_the_broker_does_not_import_kazoo() -> None:
    code = "import kafka_compat.broker, kafka_compat.cli, sys, json; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert not [name for name in json.loads(output.stdout) if name.split(".")[0] == "kazoo"]


class Relay:
    """Forwards connections to a server on this machine. After `cut`, it refuses connections until `start` is
    called.

    A test that restarts a server keeps its clients away until the server is ready: a server that is still
    starting may accept a connection and not respond, and a client then waits until its session has expired.
    """

    def __init__(self, server_port: int) -> None:
        self.port = free_port()
        self._server_port = server_port
        self._listener: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def connect(self) -> ZooKeeperMetadataStore:
        """Connect a session with a timeout that a restart of the server does not exceed."""
        return await ZooKeeperMetadataStore.connect(f"127.0.0.1:{self.port}", session_timeout_ms=30_000)

    async def cut(self) -> None:
        assert self._listener is not None
        self._listener.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._writers += [writer, onward_writer]
        await asyncio.gather(self._pass(reader, onward_writer), self._pass(onward_reader, writer))

    @staticmethod
    async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()
