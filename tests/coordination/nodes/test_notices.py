"""Change notices: each is delivered once and in order, and old ones are deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.coordination.nodes.following import NOTICE_MAX_AGE_MS, Notices
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.metadata_store import ConnectionLost, Event, MetadataStore, Stat, Watch

FOLDER = "/changes"


class Listener:
    """A broker that listens for notices."""

    def __init__(self) -> None:
        self.heard: list[bytes | None] = []
        self.watched: list[Event] = []
        self.now_ms = 0
        self.fails_at: bytes | None = None
        self.notices = Notices(FOLDER, "change_", self._hear, lambda: self.now_ms)

    async def _hear(self, path: str, data: bytes | None) -> None:
        assert path.startswith(f"{FOLDER}/change_")
        if data == self.fails_at:
            raise ConnectionLost("the connection broke")
        self.heard.append(data)

    async def hear(self, store: MetadataStore) -> None:
        await self.notices.hear(store, self.watched.append)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MetadataStore]:
    tree = EmbeddedMetadataStore(str(tmp_path / "tree.journal"), lambda: 0)
    session = tree.connect()
    await session.ensure(FOLDER)
    yield session
    await tree.close()


async def tell(store: MetadataStore, *payloads: bytes) -> None:
    for payload in payloads:
        await store.create(f"{FOLDER}/change_", payload, sequential=True)


async def test_new_notifications_are_delivered_once_and_in_order(store: MetadataStore) -> None:
    listener = Listener()
    await tell(store, b"known")
    await listener.notices.pass_over(store)
    await tell(store, b"1", b"2")
    for name in ("a", "change_", "change_x", "change_12345678901", "z"):
        await store.create(f"{FOLDER}/{name}")
    await listener.hear(store)
    await listener.hear(store)
    assert listener.heard == [b"1", b"2"]
    await tell(store, b"3")
    assert listener.watched
    await listener.hear(store)
    assert listener.heard == [b"1", b"2", b"3"]


async def test_notifications_without_a_listener_are_delivered_later(store: MetadataStore) -> None:
    """This also holds if the directory was empty before."""
    listener = Listener()
    assert not listener.notices.has_begun
    await listener.notices.pass_over(store)
    assert listener.notices.has_begun
    await tell(store, b"1")
    await listener.hear(store)
    assert listener.heard == [b"1"]


async def test_a_notification_is_delivered_again_after_its_listener_has_failed(store: MetadataStore) -> None:
    listener = Listener()
    await tell(store, b"1", b"2", b"3")
    listener.fails_at = b"2"
    with pytest.raises(ConnectionLost):
        await listener.hear(store)
    assert listener.heard == [b"1"]
    listener.fails_at = None
    await listener.hear(store)
    assert listener.heard == [b"1", b"2", b"3"]


async def test_old_notifications_are_delivered_and_then_deleted(store: MetadataStore) -> None:
    listener, other = Listener(), Listener()
    await tell(store, b"1", b"2")
    listener.now_ms = NOTICE_MAX_AGE_MS
    await listener.hear(store)
    assert len(await store.children(FOLDER)) == 2
    listener.now_ms += 1
    await other.hear(store)
    await listener.hear(store)
    assert await store.children(FOLDER) == []
    assert listener.heard == other.heard == [b"1", b"2"]


async def test_known_notifications_are_not_read_again(
    store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    await tell(store, *(b"%d" % number for number in range(50)))
    await listener.hear(store)
    await tell(store, b"new")
    read: list[str] = []
    get = store.get

    async def counted(path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        read.append(path)
        return await get(path, watch)

    monkeypatch.setattr(store, "get", counted)
    await listener.hear(store)
    assert listener.heard[-1] == b"new"
    # The new notification, and the oldest one, which may be obsolete.
    assert len(read) == 2
