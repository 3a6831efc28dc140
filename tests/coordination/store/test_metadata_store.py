"""The contract of the metadata stores: the embedded, remote and replicated stores and ZooKeeper pass the
same tests.
"""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_compat.coordination.store.metadata_store import (
    BadVersion,
    Check,
    Create,
    Delete,
    Event,
    EventKind,
    MetadataStore,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SessionExpired,
    SessionState,
    SetData,
    TransactionFailed,
)
from tests.coordination.stores import EmbeddedStores, RemoteStores, ReplicatedStores, Stores, ZooKeeperStores
from tests.support.servers import ZooKeeper


async def test_each_kind_of_rejection_has_its_own_error(stores: Stores) -> None:
    session = await stores.connect()
    await session.create("/a")
    await session.create("/a/b", ephemeral=True)
    with pytest.raises(NodeExists):
        await session.create("/a")
    with pytest.raises(NoNode):
        await session.create("/x/y")
    with pytest.raises(NoChildrenForEphemerals):
        await session.create("/a/b/c")
    with pytest.raises(NotEmpty):
        await session.delete("/a")
    with pytest.raises(BadVersion):
        await session.set("/a", b"", version=1)
    with pytest.raises(BadVersion):
        await session.delete("/a/b", version=7)
    with pytest.raises(NoNode):
        await session.get("/b")
    with pytest.raises(NoNode):
        await session.children("/b")
    assert await session.exists("/b") is None
    with pytest.raises(ValueError, match="is not a path"):
        await session.create("a/")


async def test_null_and_empty_data_of_a_node_are_distinguished(stores: Stores) -> None:
    session = await stores.connect()
    await session.create("/null")
    await session.create("/empty", b"")
    await session.create("/bytes", b"\x00\xff")
    assert [(await session.get(path))[0] for path in ("/null", "/empty", "/bytes")] == [
        None,
        b"",
        b"\x00\xff",
    ]
    await session.set("/bytes", None)
    assert (await session.get("/bytes"))[0] is None


async def test_versions_count_writes_and_transaction_ids_increase(stores: Stores) -> None:
    session = await stores.connect()
    await session.create("/a", b"0")
    _, first = await session.get("/a")
    assert (first.version, first.children_count, first.ephemeral_owner) == (0, 0, 0)
    assert first.czxid == first.mzxid
    written = await session.set("/a", b"1", version=0)
    assert written == (await session.get("/a"))[1]
    assert (written.version, written.czxid) == (1, first.czxid)
    assert written.mzxid > first.mzxid
    await session.create("/a/b", ephemeral=True)
    below = await session.exists("/a/b")
    above = await session.exists("/a")
    assert below is not None
    assert above is not None
    assert below.ephemeral_owner == session.session_id
    assert below.czxid > written.mzxid
    assert (above.version, above.children_count) == (1, 1)
    await session.delete("/a/b")
    await session.create("/a/b", ephemeral=True)
    again = await session.exists("/a/b")
    assert again is not None
    assert again.czxid > below.czxid


async def test_concurrent_writes_get_different_versions(stores: Stores) -> None:
    one, two = await stores.connect(), await stores.connect()
    await one.ensure("/brokers/seqid")
    writes = [session.set("/brokers/seqid", b"") for session in (one, two) * 10]
    versions = [stat.version for stat in await asyncio.gather(*writes)]
    assert sorted(versions) == list(range(1, 21))


async def test_a_transaction_is_atomic(stores: Stores) -> None:
    session = await stores.connect()
    await session.create("/epoch", b"4")
    results = await session.multi(
        [Create("/controller", b"me", ephemeral=True), SetData("/epoch", b"5", 0), Check("/epoch", 1)]
    )
    assert results == ["/controller", await session.exists("/epoch"), None]
    before = await session.exists("/epoch"), await session.exists("/")
    with pytest.raises(TransactionFailed) as failed:
        await session.multi(
            [
                SetData("/epoch", b"6"),
                Create("/new"),
                Delete("/controller"),
                Check("/epoch", 9),
                Create("/never"),
            ]
        )
    assert failed.value.index == 3
    assert isinstance(failed.value.cause, BadVersion)
    assert (await session.get("/epoch"))[0] == b"5"
    assert (await session.exists("/epoch"), await session.exists("/")) == before
    assert await session.children("/") == ["controller", "epoch"]
    assert await session.multi([]) == []


async def test_sequence_numbers_of_nodes_count_created_nodes_and_not_deleted_ones(stores: Stores) -> None:
    session = await stores.connect()
    await session.create("/changes")
    first = await session.create("/changes/change_", b"1", sequential=True)
    assert first == "/changes/change_0000000000"
    await session.delete(first)
    results = await session.multi(
        [Create("/changes/change_", b"2", sequential=True), Create("/changes/change_", b"3", sequential=True)]
    )
    assert results == ["/changes/change_0000000001", "/changes/change_0000000002"]
    assert await session.children("/changes") == ["change_0000000001", "change_0000000002"]
    deleted, recreated = await session.multi(
        [Delete("/changes/change_0000000002"), Create("/changes/change_", sequential=True)]
    )
    assert (deleted, recreated) == (None, "/changes/change_0000000003")


async def test_only_one_of_several_sessions_creates_a_node(stores: Stores) -> None:
    """The controller election depends on this."""
    sessions = [await stores.connect() for _ in range(4)]
    await sessions[0].create("/controller_epoch", b"0")

    async def run_for(number: int) -> bool:
        create = Create("/controller", str(number).encode(), ephemeral=True)
        try:
            await sessions[number].multi([create, SetData("/controller_epoch", b"1", 0)])
        except TransactionFailed as failed:
            assert failed.index in (0, 1)
            assert isinstance(failed.cause, NodeExists | BadVersion)
            return False
        return True

    won = await asyncio.gather(*(run_for(number) for number in range(4)))
    assert won.count(True) == 1
    data, stat = await sessions[0].get("/controller")
    assert data == str(won.index(True)).encode()
    assert stat.ephemeral_owner == sessions[won.index(True)].session_id


async def test_ephemeral_nodes_are_deleted_with_their_session_and_watches_fire(stores: Stores) -> None:
    one, two = await stores.connect(), await stores.connect()
    await one.ensure("/brokers/ids")
    await one.create("/brokers/ids/1", b"one", ephemeral=True)
    await two.create("/brokers/ids/2", b"two", ephemeral=True)
    events: list[Event] = []
    own: list[Event] = []
    expired = asyncio.Event()
    states: list[SessionState] = []
    one.on_state(states.append)
    one.on_state(lambda state: expired.set() if state is SessionState.EXPIRED else None)
    assert await two.children("/brokers/ids", events.append) == ["1", "2"]
    await one.children("/brokers/ids", own.append)
    await stores.expire(one)
    assert await two.children("/brokers/ids") == ["2"]
    assert events == [Event(EventKind.CHILDREN, "/brokers/ids")]
    await asyncio.wait_for(expired.wait(), 20)
    assert states[-1] is SessionState.EXPIRED
    assert one.state is SessionState.EXPIRED
    with pytest.raises(SessionExpired):
        await one.get("/brokers/ids")
    with pytest.raises(SessionExpired):
        await one.create("/brokers/ids/1", ephemeral=True)
    await two.create("/brokers/ids/3")
    assert not own
    await one.close()
    assert one.state is SessionState.EXPIRED


async def test_closing_a_session_takes_effect_immediately_and_stops_its_events(stores: Stores) -> None:
    one, two = await stores.connect(), await stores.connect()
    await one.create("/one", ephemeral=True)
    gone: list[Event] = []
    silent: list[Event] = []
    states: list[SessionState] = []
    await two.exists("/one", gone.append)
    await one.exists("/other", silent.append)
    one.on_state(states.append)
    await one.close()
    await one.close()
    assert states == [SessionState.CLOSED]
    assert await two.exists("/one") is None
    assert gone == [Event(EventKind.DELETED, "/one")]
    await two.create("/other")
    with pytest.raises(SessionExpired, match="closed"):
        await one.exists("/other")
    assert not silent


async def test_a_watch_fires_only_once_and_before_the_change_is_readable(stores: Stores) -> None:
    writer, reader = await stores.connect(), await stores.connect()
    events: list[Event] = []
    assert await reader.exists("/a", events.append) is None
    await writer.create("/a", b"1")
    assert await reader.exists("/a")
    assert events == [Event(EventKind.CREATED, "/a")]
    await reader.get("/a", events.append)
    await writer.set("/a", b"2")
    await writer.set("/a", b"3")
    assert (await reader.get("/a"))[0] == b"3"
    assert events[1:] == [Event(EventKind.CHANGED, "/a")]
    await reader.get("/a", events.append)
    await reader.children("/a", events.append)
    await writer.delete("/a")
    assert await reader.exists("/a") is None
    assert events[2:] == [Event(EventKind.DELETED, "/a")] * 2


async def test_a_change_is_readable_only_after_its_watch_has_fired(stores: Stores) -> None:
    """No reader sees a change before its own watch has fired."""
    writer, reader = await stores.connect(), await stores.connect()
    await writer.create("/n", b"0")
    untold: list[tuple[int, int]] = []
    last = 300

    async def write() -> None:
        for number in range(1, last + 1):
            await writer.set("/n", str(number).encode())

    async def read() -> None:
        known = 0
        while known < last:
            told: list[Event] = []
            known = int((await reader.get("/n", told.append))[0] or b"")
            while not told and known < last:
                now = int((await reader.get("/n"))[0] or b"")
                if now > known and not told:
                    untold.append((known, now))
                await asyncio.sleep(0)  # lets the writer and the other readers run

    await asyncio.gather(write(), read(), read(), read())
    assert untold == []


async def test_reading_a_missing_node_does_not_set_a_watch(stores: Stores) -> None:
    session = await stores.connect()
    events: list[Event] = []
    asked: list[Event] = []
    for read in (session.get, session.children):
        with pytest.raises(NoNode):
            await read("/a", events.append)
    await session.exists("/a", asked.append)
    await session.create("/a")
    await session.create("/a/b")
    await session.exists("/a")
    assert (events, asked) == ([], [Event(EventKind.CREATED, "/a")])


async def test_a_failing_watch_does_not_affect_other_watches(stores: Stores) -> None:
    session = await stores.connect()
    events: list[Event] = []
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    def fail(event: Event) -> None:
        raise RuntimeError("a watch failed")

    await session.exists("/a", fail)
    await session.exists("/a", events.append)
    await session.create("/a")
    await session.exists("/a")
    assert [event.kind for event in events] == [EventKind.CREATED]
    assert [str(complaint["exception"]) for complaint in complaints] == ["a watch failed"]


async def test_concurrent_reads_and_writes_each_get_their_own_result(stores: Stores) -> None:
    session = await stores.connect()
    await session.create("/n")
    count = 1500
    created = await asyncio.gather(
        *(session.create(f"/n/{number}", str(number).encode()) for number in range(count))
    )
    assert created == [f"/n/{number}" for number in range(count)]
    found = await asyncio.gather(*(session.get(f"/n/{number}") for number in range(count)))
    assert [int(data or b"") for data, _ in found] == list(range(count))


async def test_a_canceled_call_does_not_affect_other_calls(stores: Stores) -> None:
    session = await stores.connect()
    await session.create("/a")
    calls = [asyncio.ensure_future(session.get("/a")) for _ in range(200)]
    await asyncio.sleep(0)  # the calls begin
    for call in calls[::2]:
        call.cancel()
    answers = await asyncio.gather(*calls[1::2])
    assert {data for data, _ in answers} == {None}
    assert await session.children("/") == ["a"]


async def test_put_and_ensure_create_parents_and_delete_tree_deletes_descendants(stores: Stores) -> None:
    session = await stores.connect()
    await session.put("/config/topics/t", b"1")
    await session.put("/config/topics/t", b"2")
    await session.ensure("/config/topics/t/below")
    assert (await session.get("/config/topics/t"))[0] == b"2"
    await session.delete_tree("/config/topics")
    await session.delete_tree("/config/topics")
    assert await session.children("/config") == []
    await session.ensure_all(["/config/topics", "/brokers/ids"])
    assert await session.children("/") == ["brokers", "config"]


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
DATA = st.none() | st.binary(max_size=6)
VERSIONS = st.sampled_from([-1, -1, 0, 1])
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Create, PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS),
)


async def outcome(session: MetadataStore, operations: list[Operation]) -> list[object]:
    """Execute a transaction, and return its results without transaction ids, times and session ids, which
    differ between stores.
    """
    try:
        results = await session.multi(operations)
    except TransactionFailed as failed:
        return [failed.index, type(failed.cause)]
    return [result if isinstance(result, str | None) else result.version for result in results]


async def contents(session: MetadataStore) -> dict[str, tuple[bytes | None, int, bool]]:
    """Map each path to its data, its version, and whether it is an ephemeral node of this session."""
    found = {}
    paths = ["/"]
    while paths:
        path = paths.pop()
        data, stat = await session.get(path)
        found[path] = (data, stat.version, stat.ephemeral_owner == session.session_id)
        paths += [f"{path.rstrip('/')}/{name}" for name in await session.children(path)]
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), max_size=25))
def test_all_stores_return_the_same_results_for_random_transactions(
    zookeeper: ZooKeeper, transactions: list[list[Operation]]
) -> None:
    async def run(directory: str) -> None:
        every: list[Stores] = [
            EmbeddedStores(Path(directory)),
            RemoteStores(Path(directory) / "remote"),
            ReplicatedStores(),
            ZooKeeperStores(zookeeper),
        ]
        try:
            embedded, remote, replicated, real = [await stores.connect() for stores in every]
            for operations in transactions:
                expected = await outcome(real, operations)
                assert await outcome(embedded, operations) == expected, operations
                assert await outcome(remote, operations) == expected, operations
                assert await outcome(replicated, operations) == expected, operations
            expected_contents = await contents(real)
            assert await contents(embedded) == expected_contents
            assert await contents(remote) == expected_contents
            assert await contents(replicated) == expected_contents
        finally:
            for stores in every:
                await stores.close()

    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "remote").mkdir()
        asyncio.run(run(directory))
