"""The replicated store of one node: calls, reads, watches and states of its sessions."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Sequence
from contextvars import Context
from uuid import UUID

import pytest

from kafka_compat.coordination.replicated_store import outbox, records, session, store
from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord
from kafka_compat.coordination.replicated_store.record_frames import unframe
from kafka_compat.coordination.replicated_store.records import CloseSession, OpenSession, TransactionTooLarge
from kafka_compat.coordination.replicated_store.store import SessionRefused, StoreStopped
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import ConnectionLost, Event, EventKind, SessionState
from tests.coordination.replicated_store.single_node import SingleNode
from tests.coordination.session_state import await_state
from tests.support.waiting import until

TIMEOUT_MS = 1000


def calls_of(appends: Sequence[Sequence[bytes]]) -> list[list[int]]:
    """Return the numbers of the calls in each append."""
    decoded = [[records.decode_change(unframe(0, item)) for item in append] for append in appends]
    return [[item.call for item in append if isinstance(item, records.Transaction)] for append in decoded]


def saved(node: SingleNode) -> tuple[int, list[AppliedRecord]]:
    return len(node.log), [unframe(0, value) for value in node.store.snapshot()]


def restore(node: SingleNode, snapshot: tuple[int, list[AppliedRecord]]) -> None:
    for _ in node.store.restore(*snapshot):
        pass


async def test_calls_of_one_pass_of_the_event_loop_share_an_append() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    await node.settled()
    node.appends.clear()
    await asyncio.gather(*(held.create(f"/{number}") for number in range(5)))
    assert calls_of(node.appends) == [[1, 2, 3, 4, 5]]


async def test_all_calls_are_sent_again_in_order_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "RETRY_BACKOFF_S", 0.001)
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    await node.settled()
    node.takes = False
    node.appends.clear()
    node.failures.clear()
    first = asyncio.ensure_future(held.create("/a"))
    await node.settled()
    second = asyncio.ensure_future(held.create("/a/b"))
    await node.settled()
    assert calls_of(node.appends) == [[1], [2]]
    node.take(node.appends[1])
    assert not second.done()
    for failed in node.failures:
        failed()
    third = asyncio.ensure_future(held.create("/a/b/c"))
    node.takes = True
    async with asyncio.timeout(10):
        paths = [await call for call in (first, second, third)]
    assert paths == ["/a", "/a/b", "/a/b/c"]
    assert calls_of(node.appends) == [[1], [2], [1, 2, 3]]


async def test_a_call_whose_record_was_taken_twice_has_one_effect() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    node.takes = False
    node.appends.clear()
    call = asyncio.ensure_future(held.multi([stores.Create("/a-", sequential=True)]))
    await node.settled()
    node.take([*node.appends[-1], *node.appends[-1]])
    assert await call == ["/a-0000000000"]
    assert await held.children("/") == ["a-0000000000"]


async def test_all_calls_are_sent_again_to_a_new_leader_and_wait_while_there_is_none() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    await node.settled()
    node.takes = False
    node.appends.clear()
    first = asyncio.ensure_future(held.create("/a"))
    await node.settled()
    node.store.leader_changed(-1, 2)
    second = asyncio.ensure_future(held.create("/b"))
    await node.settled()
    assert calls_of(node.appends) == [[1]]
    node.failures[-1]()
    node.takes = True
    node.store.leader_changed(2, 2)
    async with asyncio.timeout(10):
        paths = [await call for call in (first, second)]
    assert paths == ["/a", "/b"]
    assert calls_of(node.appends) == [[1], [1, 2]]


async def test_sessions_are_suspended_only_if_no_leader_is_known_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "SUSPEND_AFTER_S", 0.01)
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    await held.create("/a")
    states: list[SessionState] = []
    held.on_state(states.append)
    node.store.leader_changed(-1, 2)
    node.store.leader_changed(1, 2)
    assert states == []
    node.store.leader_changed(-1, 3)
    await await_state(held, SessionState.SUSPENDED)
    assert await held.children("/") == ["a"]
    node.store.leader_changed(2, 3)
    assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]


async def test_a_read_waits_for_the_earlier_calls_of_its_session() -> None:
    node = SingleNode()
    held, other = await node.store.connect(TIMEOUT_MS), await node.store.connect(TIMEOUT_MS)
    write = asyncio.ensure_future(held.create("/a", b"1"))
    await asyncio.sleep(0)  # the call begins
    assert await other.exists("/a") is None
    assert (await held.get("/a"))[0] == b"1"
    assert await write == "/a"


async def test_a_canceled_call_keeps_its_place() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    first = asyncio.ensure_future(held.create("/a"))
    second = asyncio.ensure_future(held.create("/a/b"))
    await asyncio.sleep(0)  # the calls begin
    first.cancel()
    assert await second == "/a/b"


async def test_a_transaction_that_is_too_large_has_no_effect() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    with pytest.raises(TransactionTooLarge, match=r"on /big, has \d+ bytes: the maximum is 1048576"):
        await held.create("/big", b"x" * records.RECORD_BYTES_MAX)
    assert await held.create("/small") == "/small"


async def test_a_process_ends_the_sessions_of_its_predecessor_before_it_opens_one() -> None:
    node = SingleNode(leads=False)
    node.take([OpenSession("t", 1, str(node.directory_id), "predecessor", 60_000).framed()])
    node.take([records.Transaction(1, 1, 1, 0, [stores.Create("/a", ephemeral=True)]).framed()])
    node.store.leader_changed(1, 1)
    await node.settled()
    await node.settled()
    assert list(node.store.machine.tree.nodes) == ["/"]
    assert node.store.machine.sessions == {}


async def test_a_process_that_was_replaced_cannot_open_a_session() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    node.take([OpenSession("t", 1, str(node.directory_id), "successor", 60_000).framed()])
    assert held.state is SessionState.EXPIRED
    with pytest.raises(SessionRefused, match="uses node ID 1"):
        await node.store.connect(TIMEOUT_MS)


async def test_a_session_whose_caller_was_canceled_is_closed() -> None:
    node = SingleNode()
    await node.store.connect(TIMEOUT_MS)
    await node.settled()
    for passes in range(4):
        connecting = asyncio.ensure_future(node.store.connect(TIMEOUT_MS))
        for _ in range(passes):
            await asyncio.sleep(0)  # the record is sent, appended and applied
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await node.settled()
        await node.settled()
        assert len(node.store.machine.sessions) == 1
    assert list(node.store._outstanding()) == []


async def test_calls_of_an_expired_session_fail() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    node.takes = False
    call = asyncio.ensure_future(held.create("/a"))
    await node.settled()
    node.take([CloseSession(held.session_id, "expired").framed(), *node.appends[-1]])
    with pytest.raises(stores.SessionExpired):
        await call
    assert held.state is SessionState.EXPIRED
    assert list(node.store.machine.tree.nodes) == ["/"]


async def test_the_leader_ends_sessions_of_nodes_that_do_not_fetch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store, "LOOK_EVERY_S", 0.005)
    node = SingleNode()
    own = await node.store.connect(1)
    await node.settled()
    other = len(node.log)
    node.take([OpenSession("t", 2, "d", "another", 30).framed()])
    records_before = len(node.log)
    await until(lambda: len(node.log) > records_before)
    assert list(node.store.machine.sessions) == [own.session_id]
    assert own.state is SessionState.CONNECTED
    assert f"Metadata session {other} of node 2 expired" in caplog.text


async def test_a_closed_session_does_not_wait_for_a_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CLOSE_WAIT_S", 0.01)
    node = SingleNode()
    first, second = await node.store.connect(TIMEOUT_MS), await node.store.connect(TIMEOUT_MS)
    node.takes = False
    await first.close()
    node.store.leader_changed(-1, 2)
    await asyncio.wait_for(second.close(), 5)
    assert first.state is second.state is SessionState.CLOSED
    node.takes = True
    node.store.leader_changed(1, 3)
    await node.settled()
    assert node.store.machine.sessions == {}


async def test_the_store_stops_at_an_unknown_record_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    await held.create("/a")
    node.takes = False
    call = asyncio.ensure_future(held.create("/b"))
    await node.settled()
    with caplog.at_level(logging.ERROR):
        node.take([b"\x01\x0c\x00feature", *node.appends[-1], b"\x01\x0c\x00feature"])
    with pytest.raises(StoreStopped, match="type 12, version 0 at offset"):
        await call
    with pytest.raises(StoreStopped):
        await held.get("/a")
    with pytest.raises(StoreStopped):
        await node.store.connect(TIMEOUT_MS)
    with pytest.raises(StoreStopped):
        node.store.snapshot()
    assert node.store.failure is not None
    assert len([record for record in caplog.records if "Stopped the metadata store" in record.message]) == 1
    node.store.leader_changed(1, 2)
    node.take([b"\x01\x0c\x00feature"])
    await asyncio.wait_for(held.close(), 1)


async def test_a_node_that_fell_behind_continues_from_a_snapshot() -> None:
    """The other node applies everything; this node gets its snapshot while calls wait."""
    node = SingleNode()
    node.takes = False
    opening = asyncio.ensure_future(node.store.connect(TIMEOUT_MS))
    await node.settled()
    node.take(node.appends[-1])
    held = await opening
    await node.settled()
    node.take(node.appends[-1])
    events: list[Event] = []
    await held.exists("/a", events.append)
    await held.children("/", events.append)
    calls = [asyncio.ensure_future(held.create(path)) for path in ("/a", "/a", "/b")]
    await node.settled()
    ahead = SingleNode(leads=False)
    ahead.log = [b""]
    ahead.take([*node.log[1:], *node.appends[-1][:2]])
    restore(node, saved(ahead))
    assert await calls[0] == "/a"
    with pytest.raises(stores.NodeExists):
        await calls[1]
    assert events == [Event(EventKind.CREATED, "/a"), Event(EventKind.CHILDREN, "/")]
    assert node.store.machine.digest() == ahead.store.machine.digest()
    await node.settled()
    node.log = list(ahead.log)
    node.take(node.appends[-1])
    assert await calls[2] == "/b"


async def test_calls_whose_session_ended_before_a_snapshot_have_an_unknown_outcome() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    node.takes = False
    call = asyncio.ensure_future(held.create("/a"))
    await node.settled()
    ahead = SingleNode(leads=False)
    ahead.take([*node.log[1:], *node.appends[-1], CloseSession(held.session_id, "expired").framed()])
    restore(node, saved(ahead))
    with pytest.raises(ConnectionLost):
        await call
    assert held.state is SessionState.EXPIRED


async def test_many_records_are_applied_in_steps() -> None:
    node = SingleNode()
    framed = [OpenSession(f"{number}", 2, "d", "i", 1).framed() for number in range(1, 1001)]
    found = [unframe(number, value) for number, value in enumerate(framed, 1)]
    assert sum(1 for _ in node.store.apply(found)) == 9
    assert len(node.store.machine.sessions) == 1000


async def test_nothing_grows_with_sessions_and_calls_that_come_and_go() -> None:
    node = SingleNode()

    async def use() -> None:
        held = await node.store.connect(TIMEOUT_MS)
        await held.create("/a", ephemeral=True)
        await held.exists("/never", lambda _: None)
        await held.close()
        node.log[1:] = [b""] * (len(node.log) - 1)
        node.appends.clear()
        node.failures.clear()

    async def objects() -> int:
        for _ in range(50):
            await use()
        await node.settled()
        gc.collect()
        # The event loop keeps canceled timers for a while.
        return sum(1 for item in gc.get_objects() if not isinstance(item, asyncio.TimerHandle | Context))

    await objects()
    before = await objects()
    assert await objects() - before < 50


async def test_closing_the_store_ends_its_sessions_and_calls() -> None:
    node = SingleNode()
    held = await node.store.connect(TIMEOUT_MS)
    node.takes = False
    call = asyncio.ensure_future(held.create("/a"))
    connecting = asyncio.ensure_future(node.store.connect(TIMEOUT_MS))
    await node.settled()
    node.store.close()
    for waiting in (call, connecting):
        with pytest.raises(ConnectionLost):
            await waiting
    assert held.state is SessionState.CLOSED


async def test_a_fetch_that_is_late_because_the_leader_changed_does_not_end_a_session() -> None:
    node = SingleNode(2, leads=False)
    node.directory_id = UUID(int=2)
    node.store.replica_fetched(1)
    node.store.leader_changed(2, 1)
    node.store.replica_fetched(1)
    held = await node.store.connect(TIMEOUT_MS)
    assert held.state is SessionState.CONNECTED
