"""The store server for other processes: when sessions end, and which changes the remaining sessions see."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.local_link import Link
from kafka_compat.coordination.store.metadata_store import MetadataStore, SessionState
from kafka_compat.coordination.store.store_server import CHECKS_PER_TIMEOUT, Silence, StoreServer
from tests.coordination.session_state import await_state
from tests.coordination.stores import Remote

_TIMEOUT_MS = 600

_CHILD = """
import asyncio, socket, sys
from kafka_compat.coordination.store.local_link import Link
from kafka_compat.coordination.store.remote_store import StoreClient

async def main():
    link = await Link.over(
        socket.socket(fileno=int(sys.argv[1])), lambda item: client.receive(item), lambda: client.lost()
    )
    client = StoreClient(link.send, int(sys.argv[2]))
    session = await client.connect()
    session.on_state(lambda state: print(state.value, flush=True))
    await session.create("/child", ephemeral=True)
    print("registered", flush=True)
    await link.ended.wait()

asyncio.run(main())
"""


class Child:
    """A process whose session owns the ephemeral node /child."""

    def __init__(self, process: asyncio.subprocess.Process, server: StoreServer) -> None:
        self.process = process
        self.server = server

    @classmethod
    async def start(cls, store: EmbeddedMetadataStore, timeout_ms: int) -> Child:
        here, there = socket.socketpair()
        link = await Link.over(here, lambda item: server.receive(item), lambda: server.end())
        server = StoreServer(store, timeout_ms, link.send)
        with there:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _CHILD, str(there.fileno()), str(timeout_ms)),
                pass_fds=[there.fileno()],
                stdout=asyncio.subprocess.PIPE,
            )
        child = cls(process, server)
        assert await child.says() == "registered"
        return child

    async def says(self) -> str:
        assert self.process.stdout is not None
        return (await asyncio.wait_for(self.process.stdout.readline(), 20)).decode().strip()

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self.server.settled()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedMetadataStore]:
    opened = EmbeddedMetadataStore(str(tmp_path / "metadata.journal"))
    yield opened
    await opened.close()


@pytest.fixture
async def watcher(store: EmbeddedMetadataStore) -> MetadataStore:
    return store.connect()


async def gone(watcher: MetadataStore, path: str) -> asyncio.Event:
    """Return an event that is set when the existing node is deleted."""
    went = asyncio.Event()
    stat = await watcher.exists(path, lambda event: went.set())
    assert stat is not None
    return went


# --- child processes


async def test_ephemeral_nodes_of_a_killed_process_are_deleted_immediately(
    store: EmbeddedMetadataStore, watcher: MetadataStore
) -> None:
    child = await Child.start(store, 60_000)
    went = await gone(watcher, "/child")
    child.process.kill()
    await asyncio.wait_for(went.wait(), 10)
    assert await watcher.exists("/child") is None
    await child.kill()


async def test_a_paused_process_loses_its_session_and_is_notified(
    store: EmbeddedMetadataStore, watcher: MetadataStore
) -> None:
    child = await Child.start(store, _TIMEOUT_MS)
    went = await gone(watcher, "/child")
    loop = asyncio.get_running_loop()
    began = loop.time()
    os.kill(child.process.pid, signal.SIGSTOP)
    await asyncio.wait_for(went.wait(), 20)
    # The last heartbeat may have arrived just before the process was paused.
    assert loop.time() - began > _TIMEOUT_MS / 1000 * (1 - 1 / CHECKS_PER_TIMEOUT) - 0.1
    os.kill(child.process.pid, signal.SIGCONT)
    assert await child.says() == "expired"
    await child.kill()


async def test_an_idle_process_keeps_its_session(
    store: EmbeddedMetadataStore, watcher: MetadataStore
) -> None:
    child = await Child.start(store, _TIMEOUT_MS)
    went = await gone(watcher, "/child")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(went.wait(), 3 * _TIMEOUT_MS / 1000)
    await child.kill()


# --- a single connection


async def test_a_silent_session_without_ephemeral_nodes_does_not_expire(store: EmbeddedMetadataStore) -> None:
    """A broker that recovers its logs before it registers has such a session."""
    remote = await Remote.to(store, session_timeout_ms=30)
    remote.client._next_beat.cancel()
    session = await remote.client.connect()
    states: list[SessionState] = []
    session.on_state(states.append)
    await asyncio.sleep(0.15)  # five session timeouts pass without a heartbeat
    assert states == []
    await session.create("/registered", ephemeral=True)
    await await_state(session, SessionState.EXPIRED)
    assert states == [SessionState.EXPIRED]
    await remote.close()


async def test_a_new_session_can_start_on_the_connection_of_an_expired_session(
    store: EmbeddedMetadataStore, watcher: MetadataStore
) -> None:
    remote = await Remote.to(store)
    first, other = await remote.client.connect(), await remote.client.connect()
    await first.create("/first", ephemeral=True)
    await other.create("/other", ephemeral=True)
    await remote.server.expire(first.session_id)
    assert await watcher.children("/") == ["other"]
    second = await remote.client.connect()
    assert second.session_id not in (first.session_id, other.session_id)
    await second.create("/first", ephemeral=True)
    with pytest.raises(stores.SessionExpired, match="expired"):
        await first.get("/first")
    assert other.state is SessionState.CONNECTED
    await remote.close()
    assert await watcher.children("/") == []


async def test_a_session_can_be_closed_while_it_expires(
    store: EmbeddedMetadataStore,
) -> None:
    remote = await Remote.to(store)
    session = await remote.client.connect()
    expiring = asyncio.ensure_future(remote.server.expire(session.session_id))
    closing = asyncio.ensure_future(session.close())
    await asyncio.gather(expiring, closing)
    assert session.state is SessionState.CLOSED
    await remote.close()


async def test_a_session_can_be_used_only_on_its_connection(store: EmbeddedMetadataStore) -> None:
    one, two = await Remote.to(store), await Remote.to(store)
    session = await one.client.connect()
    stranger = await two.client.connect()
    stranger._session_id = session.session_id
    with pytest.raises(stores.SessionExpired):
        await stranger.exists("/")
    assert await session.exists("/")
    await one.close()
    await two.close()


async def test_pending_calls_fail_and_sessions_end_when_the_connection_closes(
    store: EmbeddedMetadataStore,
) -> None:
    remote = await Remote.to(store)
    session = await remote.client.connect()
    states: list[SessionState] = []
    session.on_state(states.append)
    call = asyncio.ensure_future(session.get("/"))
    await asyncio.sleep(0)  # the call is sent
    remote.asking._transport.abort()  # type: ignore[union-attr]
    with pytest.raises(stores.ConnectionLost):
        await call
    # The session is closed rather than expired, because the process cannot open a new one.
    assert states == [SessionState.CLOSED]
    with pytest.raises(stores.SessionExpired):
        await session.get("/")
    with pytest.raises(stores.ConnectionLost):
        await remote.client.connect()
    await session.close()
    await remote.close()


async def test_requests_sent_before_a_disconnection_complete_before_the_session_ends(
    store: EmbeddedMetadataStore, watcher: MetadataStore
) -> None:
    remote = await Remote.to(store)
    session = await remote.client.connect()
    await session.create("/kept")
    calls = [asyncio.ensure_future(session.create(f"/kept/{number}")) for number in range(50)]
    calls.append(asyncio.ensure_future(session.create("/mine", ephemeral=True)))
    await asyncio.sleep(0)  # the calls are sent
    remote.asking.close()
    await asyncio.gather(*calls, return_exceptions=True)
    await remote.close()
    assert len(await watcher.children("/kept")) == 50
    assert await watcher.exists("/mine") is None


async def test_a_watch_set_by_a_read_of_a_missing_node_is_dropped(store: EmbeddedMetadataStore) -> None:
    remote = await Remote.to(store)
    session = await remote.client.connect()
    for _ in range(10):
        with pytest.raises(stores.NoNode):
            await session.get("/missing", lambda event: None)
    assert remote.client._watches == {}
    await session.exists("/missing", lambda event: None)
    await session.close()
    assert remote.client._watches == {}
    assert remote.client._asked == {}
    await remote.close()


async def test_a_list_of_children_that_is_too_long_raises_an_error(
    store: EmbeddedMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = await Remote.to(store)
    session = await remote.client.connect()
    for number in range(20):
        await session.create(f"/{'x' * 50}{number}")
    monkeypatch.setattr("kafka_compat.coordination.store.store_wire.FRAME_BYTES_MAX", 500)
    with pytest.raises(Exception, match="the maximum is 500"):
        await session.children("/")
    assert await session.exists("/")
    await remote.close()


# --- invalid messages


@pytest.mark.parametrize(
    "noise",
    [
        b"\xff\xff\xff\xff",
        b"\0\0\0\2[]",
        b'\0\0\0\x0a["open",[]]',
        b'\0\0\0\x09["nobody"]',
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
async def test_invalid_bytes_close_only_their_connection(
    store: EmbeddedMetadataStore, watcher: MetadataStore, noise: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    victim, harmful = await Remote.to(store), await Remote.to(store)
    session = await victim.client.connect()
    await session.create("/victim", ephemeral=True)
    other = await harmful.client.connect()
    await other.create("/harmful", ephemeral=True)
    went = await gone(watcher, "/harmful")
    with caplog.at_level(logging.ERROR):
        harmful.asking._transport.write(noise)  # type: ignore[union-attr]
        await asyncio.wait_for(went.wait(), 10)
    assert "Closed the connection between a broker process and its supervisor" in caplog.text
    await asyncio.wait_for(harmful.asking.ended.wait(), 10)
    assert other.state is SessionState.CLOSED
    assert await session.exists("/victim")
    await victim.close()
    await harmful.close()


async def test_a_connection_that_closes_after_a_partial_frame_loses_its_ephemeral_nodes(
    store: EmbeddedMetadataStore, watcher: MetadataStore
) -> None:
    remote = await Remote.to(store)
    session = await remote.client.connect()
    await session.create("/half", ephemeral=True)
    remote.asking._transport.write(b'\0\0\0\x20["multi",')  # type: ignore[union-attr]
    await remote.close()
    assert await watcher.exists("/half") is None


async def test_an_unexpected_response_closes_the_connection(store: EmbeddedMetadataStore) -> None:
    remote = await Remote.to(store)
    session = await remote.client.connect()
    remote.serving.send(["done", 4711, None])
    await asyncio.wait_for(remote.asking.ended.wait(), 10)
    assert session.state is SessionState.CLOSED
    await remote.close()


# --- the timeout calculation


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 4)), max_size=40))
def test_a_session_expires_only_after_the_timeout(steps: list[tuple[bool, float]]) -> None:
    timeout_s = 9.0
    silence, now_s, heard_s = Silence(timeout_s, 0.0), 0.0, 0.0
    for hears, passed_s in steps:
        now_s += passed_s
        if hears:
            silence.heard(now_s)
            heard_s = now_s
        assert silence.is_too_long(now_s) == (now_s - heard_s >= timeout_s)


def test_sessions_do_not_expire_while_the_server_is_blocked() -> None:
    silence = Silence(9.0, 0.0)
    assert not silence.is_too_long(3.0)
    assert not silence.is_too_long(100.0)
    assert not silence.is_too_long(103.0)
    assert not silence.is_too_long(106.0)
    assert silence.is_too_long(109.0)
