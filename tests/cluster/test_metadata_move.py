"""One move of the metadata between two stores, with writers in the source and copiers that die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from kafka_compat.cluster.metadata_migration import ABORT_AFTER_S, SETTING, MetadataMigration
from kafka_compat.cluster.metadata_move import MetadataMove, NotReady, Side
from kafka_compat.cluster.shared_store import CurrentSession, StoreMoved, refuse_moved
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.store_marker import (
    COPIER,
    MARKER,
    READY_BROKERS,
    Marker,
    StoreName,
    StoreState,
    read_marker,
)
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.guarded_session import GuardedSession
from kafka_compat.coordination.store.metadata_store import MetadataStore
from tests.quorum.migrating import nodes_of
from tests.support.waiting import until

_TOPICS = ("/brokers/topics",)


class _Dying(CurrentSession):
    """A session whose owner dies after a number of writes in all of its sessions."""

    def __init__(self, session: MetadataStore, left: list[int], *, performs_last: bool) -> None:
        super().__init__(session)
        self._left = left
        self._performs_last = performs_last

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | stores.Stat | None]:
        if self._left[0] == 0:
            if self._performs_last:
                await super().multi(operations)
            raise _Died
        self._left[0] -= 1
        return await super().multi(operations)


class _Died(Exception):
    pass


class _Stepping:
    """Lets a number of writes of a move happen."""

    def __init__(self) -> None:
        self._allowed = asyncio.Semaphore(0)
        self._given = 0

    async def write(self) -> None:
        await self._allowed.acquire()

    async def until_written(self, writes: int, task: asyncio.Task[None]) -> None:
        """Allow writes up to this number, and wait until they have happened or the task has ended."""
        while self._given < writes:
            self._given += 1
            self._allowed.release()
        for _ in range(200):
            if task.done():
                return
            await asyncio.sleep(0)  # Let the task go on to its next write.


class _Stepped(CurrentSession):
    """A session each of whose writes must be allowed."""

    def __init__(self, session: MetadataStore, steps: _Stepping) -> None:
        super().__init__(session)
        self._steps = steps

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | stores.Stat | None]:
        await self._steps.write()
        return await super().multi(operations)


class _Deaf(CurrentSession):
    """A session that hears of no change, as if its watches were under way."""

    async def exists(self, path: str, watch: stores.Watch | None = None) -> stores.Stat | None:
        return await super().exists(path)


class Stores:
    """Two stores with one registered broker, which is connected to both. The metadata is in the first one."""

    def __init__(self, directory: Path) -> None:
        self.trees = {name: EmbeddedMetadataStore(str(directory / name.value)) for name in StoreName}

    async def begin(self) -> None:
        for name, state in zip(StoreName, (StoreState.ACTIVE, StoreState.INACTIVE), strict=True):
            session = self.trees[name].connect()
            await session.ensure_all(["/kafka_compat", *znodes.PERSISTENT_PATHS, READY_BROKERS])
            await session.create(MARKER, Marker(state, 0).encoded())
            await session.create(f"{READY_BROKERS}/1", ephemeral=True)
        first = self.trees[StoreName.ZOOKEEPER].connect()
        await first.create(znodes.broker_path(1), ephemeral=True)
        await first.create(znodes.CONTROLLER, ephemeral=True)
        await first.create(znodes.CONTROLLER_EPOCH, b"7")

    def migration(self, broker_id: int, now_s: Callable[[], float]) -> MetadataMigration:
        """Return the part of a broker in migrations."""

        async def connect(name: StoreName) -> MetadataStore:
            return self.trees[name].connect()

        return MetadataMigration(broker_id, {name: partial(connect, name) for name in StoreName}, now_s)

    def move(self, *, backwards: bool = False) -> MetadataMove:
        source, target = (Side(name, self.trees[name].connect()) for name in StoreName)
        return MetadataMove(target, source) if backwards else MetadataMove(source, target)

    def dying_move(self, writes: int, *, performs_last: bool) -> MetadataMove:
        left = [writes]
        source, target = (
            Side(name, _Dying(self.trees[name].connect(), left, performs_last=performs_last))
            for name in StoreName
        )
        return MetadataMove(source, target)

    def stepping_move(self, steps: _Stepping) -> MetadataMove:
        source, target = (Side(name, _Stepped(self.trees[name].connect(), steps)) for name in StoreName)
        return MetadataMove(source, target)

    async def guarded(self, *, is_deaf: bool = False) -> GuardedSession | None:
        """Open a session in the store of record, or return None during a move."""
        for name in StoreName:
            session: MetadataStore = self.trees[name].connect()
            if is_deaf:
                session = _Deaf(session)
            marker, version = await read_marker(session)
            if marker is not None and marker.state is StoreState.ACTIVE:
                guarded = GuardedSession(session, MARKER, version, name.value)
                await guarded.begin()
                return guarded
        return None

    async def states(self) -> list[StoreState]:
        """Return the states of both stores."""
        found = []
        for name in StoreName:
            marker, _ = await read_marker(self.trees[name].connect())
            assert marker is not None
            found.append(marker.state)
        return found


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Stores]:
    both = Stores(tmp_path)
    await both.begin()
    yield both
    for tree in both.trees.values():
        await tree.close()


async def _write(both: Stores, acknowledged: dict[str, int], ending: asyncio.Event) -> None:
    """Create nodes and write them again and again, as different brokers do. Note the versions."""
    number = 0
    while not ending.is_set():
        await asyncio.sleep(0)  # Let the move continue.
        session = await both.guarded(is_deaf=True)
        if session is None:
            continue
        try:
            while not ending.is_set():
                number += 1
                path = f"/brokers/topics/t{number % 40}"
                if path not in acknowledged:
                    await session.create(path, b"0")
                    acknowledged[path] = 0
                else:
                    stat = await session.set(path, str(number).encode(), acknowledged[path])
                    acknowledged[path] = stat.version
        except stores.SessionExpired:
            continue


@pytest.mark.parametrize("performs_last", [False, True])
async def test_a_copier_may_die_at_any_write_and_nothing_acknowledged_is_lost(
    both: Stores, performs_last: bool
) -> None:
    acknowledged: dict[str, int] = {}
    ending = asyncio.Event()
    writing = asyncio.create_task(_write(both, acknowledged, ending))
    deaths = 0
    move = 1
    for writes in range(12):
        states = await both.states()
        if states[1] is StoreState.ACTIVE:
            break
        try:
            await both.dying_move(writes, performs_last=performs_last).run(move)
        except _Died:
            deaths += 1
    if (await both.states())[1] is not StoreState.ACTIVE:
        await both.move().run(move)
    before = sum(acknowledged.values())
    await until(lambda: sum(acknowledged.values()) > before)
    ending.set()
    await writing
    assert deaths > 3
    found = await nodes_of(both.trees[StoreName.QUORUM].connect(), _TOPICS)
    del found["/brokers/topics"]
    assert {path: version for path, (_, version) in found.items()} == acknowledged


async def test_a_move_while_others_write_loses_nothing_acknowledged(both: Stores) -> None:
    acknowledged: dict[str, int] = {}
    ending = asyncio.Event()
    writing = asyncio.create_task(_write(both, acknowledged, ending))
    await until(lambda: sum(acknowledged.values()) > 100)
    await both.move().run(1)
    before = sum(acknowledged.values())
    await until(lambda: sum(acknowledged.values()) > before)
    ending.set()
    await writing
    found = await nodes_of(both.trees[StoreName.QUORUM].connect(), _TOPICS)
    del found["/brokers/topics"]
    assert {path: version for path, (_, version) in found.items()} == acknowledged


async def test_versions_and_data_are_equal_after_moves_in_both_directions(both: Stores) -> None:
    first, second = (both.trees[name].connect() for name in StoreName)
    await first.create("/brokers/topics/kept", b"0")
    sets = [stores.SetData("/brokers/topics/kept", str(number).encode()) for number in range(1, 700)]
    await first.multi(sets)
    await first.create("/brokers/topics/deleted")
    await first.create("/brokers/topics/deleted/partitions", b"x" * 300_000)
    await first.create("/other-program", b"stays")
    await both.move().run(1)
    assert await both.states() == [StoreState.INACTIVE, StoreState.ACTIVE]
    assert await nodes_of(first, _TOPICS) == await nodes_of(second, _TOPICS)
    assert (await second.get("/brokers/topics/kept"))[1].version == 699
    assert await second.exists("/other-program") is None
    await second.delete_tree("/brokers/topics/deleted")
    await second.delete("/brokers/topics/kept")
    await second.create("/brokers/topics/kept", b"again")
    await both.move(backwards=True).run(2)
    assert await both.states() == [StoreState.ACTIVE, StoreState.INACTIVE]
    assert await nodes_of(first, _TOPICS) == await nodes_of(second, _TOPICS)
    assert (await first.get("/brokers/topics/kept"))[1].version == 0
    assert (await first.get("/other-program"))[0] == b"stays"


async def test_no_controller_can_be_elected_in_the_store_that_the_metadata_has_left(both: Stores) -> None:
    first, second = (both.trees[name].connect() for name in StoreName)
    await both.move().run(1)
    with pytest.raises(stores.NodeExists):
        await first.create(znodes.CONTROLLER, ephemeral=True)
    await second.create(znodes.CONTROLLER, ephemeral=True)
    with pytest.raises(StoreMoved):
        await refuse_moved(first)
    await refuse_moved(second)


async def test_a_move_does_not_begin_before_all_brokers_are_connected_to_both_stores(both: Stores) -> None:
    await both.trees[StoreName.ZOOKEEPER].connect().create(znodes.broker_path(2), ephemeral=True)
    with pytest.raises(NotReady, match="brokers 2 are not connected to ZooKeeper"):
        await both.move().run(1)
    assert (await both.states())[0] is StoreState.ACTIVE


async def test_a_broker_that_appears_after_the_copy_makes_the_source_active_again(both: Stores) -> None:
    first = both.trees[StoreName.ZOOKEEPER].connect()
    marker, version = await read_marker(first)
    assert marker is not None
    await first.set(MARKER, Marker(StoreState.LEAVING, 1, (1,)).encoded(), version)
    await first.delete(znodes.CONTROLLER)
    await first.create(znodes.CONTROLLER)
    await first.create(znodes.broker_path(2), ephemeral=True)
    with pytest.raises(NotReady):
        await both.move().run(1)
    assert (await both.states())[0] is StoreState.ACTIVE
    await first.create(znodes.CONTROLLER, ephemeral=True)


async def test_an_aborted_move_makes_the_source_active_again_and_loses_nothing_acknowledged(
    both: Stores,
) -> None:
    first = both.trees[StoreName.ZOOKEEPER].connect()
    acknowledged: dict[str, int] = {}
    ending = asyncio.Event()
    writing = asyncio.create_task(_write(both, acknowledged, ending))
    writes = 0
    while (await both.states())[0] is not StoreState.LEAVING:
        with pytest.raises(_Died):
            await both.dying_move(writes, performs_last=False).run(1)
        writes += 1
    await both.move().abort(1, 5)
    assert await both.states() == [StoreState.ACTIVE, StoreState.INACTIVE]
    marker, _ = await read_marker(first)
    assert marker == Marker(StoreState.ACTIVE, 1, (1,), 5)
    await first.create(znodes.CONTROLLER, ephemeral=True)
    before = sum(acknowledged.values())
    await until(lambda: sum(acknowledged.values()) > before)
    with pytest.raises(NotReady):
        await both.move().run(1)
    await both.move().run(2)
    ending.set()
    await writing
    found = await nodes_of(both.trees[StoreName.QUORUM].connect(), _TOPICS)
    del found["/brokers/topics"]
    assert {path: version for path, (_, version) in found.items()} == acknowledged


async def test_a_move_that_is_not_complete_after_a_minute_is_aborted(both: Stores) -> None:
    """Broker 1 has begun the move, and stands still, with living sessions. Broker 2 waits for it."""
    source, target = (both.trees[name].connect() for name in StoreName)
    settings = znodes.encode_config({SETTING: StoreName.QUORUM.value})
    await source.create(znodes.config_path("brokers", znodes.DEFAULT_ENTITY), settings)
    await source.set(MARKER, Marker(StoreState.LEAVING, 1, (1,)).encoded())
    await target.set(MARKER, Marker(StoreState.FILLING, 1).encoded())
    await target.create(COPIER, b"1", ephemeral=True)
    now_s = 5.0
    migration = both.migration(2, lambda: now_s)
    await migration.look()
    now_s += ABORT_AFTER_S - 0.1
    await migration.look()
    assert await both.states() == [StoreState.LEAVING, StoreState.FILLING]
    now_s += 0.1
    await migration.look()
    assert await both.states() == [StoreState.ACTIVE, StoreState.INACTIVE]
    await target.delete(COPIER)
    await migration.look()
    assert await both.states() == [StoreState.ACTIVE, StoreState.INACTIVE]
    await migration.disconnect()


async def test_a_copier_cannot_complete_a_move_that_was_aborted_and_an_abort_cannot_undo_one(
    both: Stores,
) -> None:
    """The copier and the abort stop before each of their writes, in turn."""
    for copier_writes in range(2, 12):
        for abort_writes in range(3):
            stores_now = await both.states()
            source = both.trees[StoreName.ZOOKEEPER].connect()
            target = both.trees[StoreName.QUORUM].connect()
            marker, _ = await read_marker(source)
            assert marker is not None and stores_now[0] is StoreState.ACTIVE
            move = marker.move + 1
            copying = _Stepping()
            aborting = _Stepping()
            copier = asyncio.create_task(both.stepping_move(copying).run(move))
            await copying.until_written(copier_writes, copier)
            abort = asyncio.create_task(both.stepping_move(aborting).abort(move, 0))
            await aborting.until_written(abort_writes, abort)
            await copying.until_written(99, copier)
            await aborting.until_written(99, abort)
            await asyncio.gather(copier, abort, return_exceptions=True)
            found = await both.states()
            assert found.count(StoreState.ACTIVE) <= 1, (copier_writes, abort_writes, found)
            # Begin again with the first store.
            await source.set(MARKER, Marker(StoreState.ACTIVE, move).encoded())
            await target.set(MARKER, Marker(StoreState.INACTIVE, move).encoded())
            for session in (source, target):
                if await session.exists(znodes.CONTROLLER) is not None:
                    await session.delete(znodes.CONTROLLER)


async def test_pending_notifications_of_settings_are_sent_again(both: Stores) -> None:
    first, second = (both.trees[name].connect() for name in StoreName)
    await first.create(
        znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change("topics/orders"), sequential=True
    )
    await both.move().run(1)
    (name,) = await second.children(znodes.CONFIG_CHANGES)
    data, _ = await second.get(f"{znodes.CONFIG_CHANGES}/{name}")
    assert znodes.decode_config_change(name, data) == "topics/orders"


async def test_a_guarded_session_expires_and_fires_no_watches_after_a_move(both: Stores) -> None:
    session = await both.guarded()
    assert session is not None
    states: list[stores.SessionState] = []
    session.on_state(states.append)
    fired: list[stores.Event] = []
    await session.children("/brokers/topics", fired.append)
    await both.move().run(1)
    with pytest.raises(stores.SessionExpired):
        await session.create("/brokers/topics/late")
    assert states == [stores.SessionState.EXPIRED]
    await both.trees[StoreName.ZOOKEEPER].connect().create("/brokers/topics/stray")
    assert not fired
    await session.close()
