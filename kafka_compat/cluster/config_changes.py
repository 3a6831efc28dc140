"""Notifications of changed settings under /config/changes, written and read by all brokers, as in Kafka.

If a notification cannot be read or a change cannot be applied, later notifications are still processed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.following import Notices
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError
from kafka_compat.tasks import Background, Tasks

log = logging.getLogger(__name__)

RETRY_S = 0.1
FAILURE_PAUSE_S = 1.0


async def announce(store: MetadataStore, entity_path: str) -> None:
    """Notify all brokers that the settings of an entity such as `topics/T` or `brokers/N` have changed."""
    await store.create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(entity_path), sequential=True)


class ConfigChanges:
    """A reader of notifications. It calls `changed` with the path of each entity whose settings changed."""

    def __init__(
        self,
        tasks: Tasks,
        changed: Callable[[str], Awaitable[None]],
        now_ms: Callable[[], int],
        malformed: MalformedNodes | None = None,
    ) -> None:
        self._tasks = tasks
        self._malformed = malformed or MalformedNodes()
        self._changed = changed
        self._notices = Notices(znodes.CONFIG_CHANGES, "config_change_", self._obey, now_ms)
        self._listening: Background | None = None
        self._tree_id: str | None = None

    async def begin(self, store: MetadataStore) -> None:
        """Skip existing notifications. Call this before reading any settings, so that no change is missed."""
        await self._notices.pass_over(store)
        self._tree_id = store.tree_id

    async def start(self, store: MetadataStore) -> None:
        """Process notifications in this session. Skip existing notifications if `begin` was not called.

        If the metadata has moved to another tree, process all notifications: the earlier ones may have moved
        with it.
        """
        if not self._notices.has_begun:
            await self._notices.pass_over(store)
        elif self._tree_id not in (None, store.tree_id):
            self._notices.forget()
        self._tree_id = store.tree_id
        self._listening = self._tasks.spawn(
            "watching for configuration changes", partial(self._listen, store), restarts=True
        )

    async def stop(self) -> None:
        if self._listening is not None:
            await self._listening.stop()

    async def _listen(self, store: MetadataStore) -> None:
        while True:
            something = asyncio.Event()

            def changed(event: stores.Event, something: asyncio.Event = something) -> None:
                something.set()

            try:
                await self._notices.hear(store, changed)
                await something.wait()
            except stores.SessionExpired:
                return
            except MetadataStoreError as error:
                log.info("Could not read the configuration changes: %r; retrying", error)
                await asyncio.sleep(RETRY_S)
            except Exception:
                log.exception("Could not watch for configuration changes; retrying")
                await asyncio.sleep(FAILURE_PAUSE_S)

    async def _obey(self, path: str, data: bytes | None) -> None:
        try:
            await self._changed(znodes.decode_config_change(path, data))
        except MalformedNode as error:
            self._malformed.report_notice(error)
        except MetadataStoreError:
            raise
        except Exception:
            log.exception("Could not apply the configuration change announced by %s", path)
