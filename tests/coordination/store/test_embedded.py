"""The embedded metadata store: its guarantees while it runs, and its contents after a crash."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, StoreFailed
from kafka_compat.coordination.store.journal import CorruptJournal, decode
from kafka_compat.coordination.store.metadata_store import Event, EventKind, MetadataStoreError, Operation
from kafka_compat.coordination.store.tree import Tree


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "metadata.journal")


def size_of(path: str) -> int:
    return os.stat(path).st_size


def bytes_of(path: str) -> bytes:
    return Path(path).read_bytes()


async def test_nodes_survive_a_restart_with_their_versions(path: str) -> None:
    store = EmbeddedMetadataStore(path)
    session = store.connect()
    await session.create("/a", b"\x00\xff one")
    await session.create("/a/b", None)
    await session.set("/a", b"two")
    _, before = await session.get("/a")
    await store.close()

    store = EmbeddedMetadataStore(path)
    session = store.connect()
    data, after = await session.get("/a")
    assert (data, after) == (b"two", before)
    assert await session.get("/a/b") == (None, (await session.exists("/a/b")))
    assert await session.children("/") == ["a"]
    await store.close()


async def test_sequence_numbers_of_nodes_increase_and_are_never_reused(path: str) -> None:
    store = EmbeddedMetadataStore(path)
    session = store.connect()
    await session.create("/changes")
    first = await session.create("/changes/change_", b"1", sequential=True)
    assert first == "/changes/change_0000000000"
    await session.delete(first)
    second = await session.create("/changes/change_", b"2", sequential=True)
    assert second > first
    await session.delete(second)
    await store.close()
    store = EmbeddedMetadataStore(path)
    assert await store.connect().create("/changes/change_", sequential=True) > second
    await store.close()


async def test_ephemeral_nodes_of_a_killed_process_are_deleted_and_epochs_still_increase(path: str) -> None:
    killed = EmbeddedMetadataStore(path)
    session = killed.connect()
    await session.create("/broker", ephemeral=True)
    epoch = (await session.get("/broker"))[1].czxid
    # Do not close the store: the file is read in the state that a killed process leaves.
    store = EmbeddedMetadataStore(path)
    again = store.connect()
    assert await again.exists("/broker") is None
    await again.create("/broker", ephemeral=True)
    assert (await again.get("/broker"))[1].czxid > epoch
    await store.close()


async def test_changes_are_visible_only_after_they_are_on_disk(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    store = EmbeddedMetadataStore(path)
    writer, reader = store.connect(), store.connect()
    may_sync = threading.Event()
    really_sync = os.fsync

    def slow_sync(file: int) -> None:
        may_sync.wait(10)
        really_sync(file)

    monkeypatch.setattr(os, "fsync", slow_sync)
    events: list[Event] = []
    await reader.exists("/a", events.append)
    write = asyncio.ensure_future(writer.create("/a", b"1"))
    await asyncio.sleep(0)  # the write begins
    refused = asyncio.ensure_future(writer.create("/a"))
    read = asyncio.ensure_future(reader.get("/a"))
    done, _ = await asyncio.wait([write, read, refused], timeout=0.05)
    assert not done
    assert not events
    may_sync.set()
    assert await write == "/a"
    assert (await read)[0] == b"1"
    with pytest.raises(stores.NodeExists):
        await refused
    assert events == [Event(EventKind.CREATED, "/a")]
    await store.close()


async def test_a_change_is_readable_only_after_its_watch_has_fired(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EmbeddedMetadataStore(path)
    session = store.connect()
    await session.create("/a", b"1")
    told: list[Event] = []
    await session.get("/a", told.append)
    writing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    under_way = asyncio.Event()

    async def append(lines: bytes) -> None:
        under_way.set()
        await writing

    async def read() -> tuple[bytes | None, list[Event]]:
        data, _ = await session.get("/a")
        return data, list(told)

    monkeypatch.setattr(store, "_append", append)
    change = asyncio.ensure_future(session.set("/a", b"2"))
    await under_way.wait()
    # The writer resumes in the same event loop iteration as the reader, and before it.
    writing.set_result(None)
    assert await asyncio.ensure_future(read()) == (b"2", [Event(EventKind.CHANGED, "/a")])
    await change
    await store.close()


async def test_pending_changes_share_an_fsync(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = EmbeddedMetadataStore(path)
    session = store.connect()
    syncs = 0
    really_sync = os.fsync

    def counting_sync(file: int) -> None:
        nonlocal syncs
        syncs += 1
        really_sync(file)

    monkeypatch.setattr(os, "fsync", counting_sync)
    await asyncio.gather(*(session.create(f"/node-{index}") for index in range(200)))
    assert syncs <= 3
    await store.close()


async def test_a_canceled_write_does_not_affect_other_writes(path: str) -> None:
    store = EmbeddedMetadataStore(path)
    session = store.connect()
    first = asyncio.ensure_future(session.create("/a"))
    second = asyncio.ensure_future(session.create("/b"))
    await asyncio.sleep(0)  # the writes begin
    first.cancel()
    assert await second == "/b"
    assert await session.children("/") == ["a", "b"]
    await store.close()


async def test_a_change_waits_while_the_disk_is_full(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_compat.coordination.store.embedded.FULL_DISK_RETRY_S", 0.01)
    store = EmbeddedMetadataStore(path)
    session = store.connect()
    await session.create("/kept")
    size_before = size_of(path)
    write, refused = os.write, asyncio.Event()
    loop = asyncio.get_running_loop()

    def half_a_line(file: int, data: memoryview) -> int:
        """Write a few bytes before failing with ENOSPC."""
        if size_of(path) == size_before:
            return write(file, data[:10])
        loop.call_soon_threadsafe(refused.set)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "write", half_a_line)
        change = asyncio.create_task(session.create("/later"))
        await refused.wait()
        assert not change.done()
    assert await change == "/later"
    assert size_of(path) > size_before
    await store.close()
    assert await EmbeddedMetadataStore(path).connect().children("/") == ["kept", "later"]


async def test_all_acknowledged_changes_are_restored_after_a_disk_failure(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EmbeddedMetadataStore(path)
    session = store.connect()
    await session.create("/kept")

    def fails(file: int, data: memoryview) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", fails)
        with pytest.raises(StoreFailed, match="Input/output"):
            await session.create("/lost")
        with pytest.raises(StoreFailed):
            await session.get("/kept")
    assert await EmbeddedMetadataStore(path).connect().children("/") == ["kept"]


async def test_compaction_shrinks_the_file_and_keeps_all_nodes(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_compat.coordination.store.journal.COMPACT_BYTES_MIN", 20_000)
    store = EmbeddedMetadataStore(path)
    session = store.connect()
    await session.create("/counter", b"")
    largest = 0
    for number in range(1500):
        await session.set("/counter", str(number).encode() * 10)
        largest = max(largest, size_of(path))
    before = await session.get("/counter")
    assert largest < 40_000
    await store.close()
    store = EmbeddedMetadataStore(path)
    assert await store.connect().get("/counter") == before
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    await store.close()


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
DATA = st.none() | st.binary(max_size=6)
VERSIONS = st.sampled_from([-1, -1, 0, 1])
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(stores.Create, PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(stores.SetData, PATHS, DATA, VERSIONS),
    st.builds(stores.Delete, PATHS, VERSIONS),
    st.builds(stores.Check, PATHS, VERSIONS),
)


class Model:
    """A reference implementation of the store, which copies a dictionary for every transaction."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes | None, int, bool]] = {}
        self.created: dict[str, int] = {"/": 0}

    def multi(self, operations: list[Operation]) -> type[MetadataStoreError] | None:
        nodes, created = dict(self.nodes), dict(self.created)
        for operation in operations:
            path = operation.path
            parent = path.rpartition("/")[0] or "/"
            if isinstance(operation, stores.Create):
                if parent != "/" and parent not in nodes:
                    return stores.NoNode
                if parent != "/" and nodes[parent][2]:
                    return stores.NoChildrenForEphemerals
                if operation.sequential:
                    path += f"{created.get(parent, 0):010d}"
                if path in nodes:
                    return stores.NodeExists
                nodes[path] = (operation.data, 0, operation.ephemeral)
                created[path] = 0
                created[parent] = created.get(parent, 0) + 1
                continue
            if path not in nodes:
                return stores.NoNode
            _, version, ephemeral = nodes[path]
            if operation.version not in (-1, version):
                return stores.BadVersion
            if isinstance(operation, stores.SetData):
                nodes[path] = (operation.data, version + 1, ephemeral)
            elif isinstance(operation, stores.Delete):
                if any(other.startswith(path + "/") for other in nodes):
                    return stores.NotEmpty
                del nodes[path]
        self.nodes, self.created = nodes, created
        return None


def contents(tree: Tree) -> dict[str, tuple[bytes | None, int, bool]]:
    return {
        path: (node.data, node.version, bool(node.owner)) for path, node in tree.nodes.items() if path != "/"
    }


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), max_size=25),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=20)), min_size=4, max_size=4),
)
def test_all_acknowledged_changes_survive_a_crash_at_any_byte(
    transactions: list[list[Operation]], crashes: list[tuple[float, bytes]]
) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        path = os.path.join(directory, "journal")
        states: list[dict[str, tuple[bytes | None, int, bool]]] = [{}]
        acknowledged_at: list[int] = []

        async def run() -> bytes:
            store = EmbeddedMetadataStore(path)
            session, model = store.connect(), Model()
            acknowledged_at.append(size_of(path))
            for operations in transactions:
                expected = model.multi(operations)
                try:
                    await session.multi(operations)
                    assert expected is None
                except stores.TransactionFailed as failed:
                    assert type(failed.cause) is expected
                states.append(model.nodes)
                acknowledged_at.append(size_of(path))
            whole = bytes_of(path)
            await store.close()
            return whole

        whole = asyncio.run(run())
        assert contents(decode(whole, path)[0]) == states[-1]
        first = acknowledged_at[0]
        for fraction, garbage in crashes:
            cut = first + round(fraction * (len(whole) - first))
            written = whole[:cut] + garbage
            Path(path).write_bytes(written)
            tree, _, size = decode(written, path)
            # Garbage may happen to be what was cut off.
            pairs = enumerate(zip(whole, written, strict=False))
            intact = next((at for at, (left, right) in pairs if left != right), min(len(whole), len(written)))
            survivors = sum(1 for size in acknowledged_at if size <= intact) - 1
            assert contents(tree) == states[survivors]
            reopened = EmbeddedMetadataStore(path)
            kept = {name: node for name, node in states[survivors].items() if not node[2]}
            assert contents(reopened._tree) == kept
            assert size_of(path) == size
            asyncio.run(reopened.close())


def test_a_damaged_journal_is_truncated_only_after_its_acknowledged_changes(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "journal")

    async def write() -> tuple[list[int], bytes]:
        store = EmbeddedMetadataStore(path)
        session = store.connect()
        sizes = []
        for index in range(3):
            await session.create(f"/acknowledged-{index}")
            sizes.append(size_of(path))
        await asyncio.gather(*(session.create(f"/together-{index}") for index in range(3)))
        whole = bytes_of(path)
        await store.close()
        return sizes, whole

    sizes, whole = asyncio.run(write())
    hole = whole.index(b"/together-1")
    Path(path).write_bytes(whole[:hole] + b"\0" * 4 + whole[hole + 4 :])
    names = EmbeddedMetadataStore(path)._tree.nodes
    assert {"/acknowledged-2", "/together-0"} <= set(names)
    assert "/together-2" not in names

    damaged = whole[: sizes[0] + 20] + b"\0" + whole[sizes[0] + 21 :]
    Path(path).write_bytes(damaged)
    with pytest.raises(CorruptJournal, match="damaged at byte"):
        EmbeddedMetadataStore(path)
    assert Path(path).read_bytes() == damaged
    Path(path).write_bytes(b"PK" + whole)
    with pytest.raises(CorruptJournal, match="is not a metadata journal"):
        EmbeddedMetadataStore(path)


WRITER = """
import asyncio, sys
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore

async def main():
    session = EmbeddedMetadataStore(sys.argv[1]).connect()
    number = 0
    while True:
        await session.create(f"/node-{number}", b"x" * 100)
        print(number, flush=True)
        number += 1

asyncio.run(main())
"""


def test_killing_a_process_during_a_write_does_not_lose_acknowledged_changes(path: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = -1
    for line in process.stdout:
        acknowledged = int(line)
        if acknowledged == 150:
            break
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split()
    process.wait()
    process.stdout.close()
    # The kill may have truncated the last line.
    acknowledged += max(0, len(rest) - 1)
    names = EmbeddedMetadataStore(path)._tree.nodes
    assert all(f"/node-{number}" in names for number in range(acknowledged + 1))
    assert len(names) - 1 <= acknowledged + 3
