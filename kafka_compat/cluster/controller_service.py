"""Who the controller is, and this broker's candidacy: whenever there is none, it runs for it.

Rules
1. /controller and /controller_epoch change in one transaction, so that each reign has an epoch of its own.
2. A broker whose session is lost resigns at once; what it still has on its way is fenced by its epoch.
3. A controller whose node is removed by hand resigns and runs again, as Kafka's does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from contextlib import suppress
from uuid import UUID

from coordination import controller_model as model
from coordination import znodes
from coordination.metadata_store import (
    ConnectionLost,
    Event,
    MetadataStore,
    MetadataStoreError,
    NoNode,
    SessionExpired,
)
from kafka_compat.cluster.controller_nodes import RETRY_S, Deposed, Reign, run_for_controller
from kafka_compat.cluster.controller_reign import ControllerReign, ReignSettings

log = logging.getLogger(__name__)

NOBODY = -1


class ControllerService:
    """See the rules above. One for the life of a broker, over all of its sessions."""

    def __init__(self, broker_id: int, settings: ReignSettings, now_ms: Callable[[], int]) -> None:
        self._broker_id = broker_id
        self._settings = settings
        self._now_ms = now_ms
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._reign: ControllerReign | None = None
        self.controller_id = NOBODY
        """The broker that /controller names; NOBODY while there is none."""
        self.controller_changed = asyncio.Event()
        """Set whenever `controller_id` becomes another; those who wait clear it first."""
        self.on_controller_changed: list[Callable[[], None]] = []

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._reign is not None

    @property
    def reign(self) -> Reign | None:
        """The reign of this broker; None while it is not the controller."""
        return self._reign.epochs if self._reign is not None else None

    def start(self, store: MetadataStore) -> None:
        """Follow /controller, and run for it, in this session."""
        self._task = asyncio.get_running_loop().create_task(self._follow(store))

    async def stop(self) -> None:
        """Resign if need be; the node itself goes with the session."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._name(NOBODY)

    async def ask(self, make: Callable[[Hashable], model.Event]) -> model.ReplyValue | None:
        """The controller's reply to a request; None when this broker is not the controller."""
        return await self._reign.ask(make) if self._reign is not None else None

    async def told(self, patience_s: float) -> None:
        """Wait until all brokers know what this broker decided as controller; not for longer than that."""
        if self._reign is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self._reign.told()

    def topic_named(self, topic_id: UUID) -> str | None:
        """The topic with an id, as the controller knows it, if this broker is it."""
        return self._reign.topic_named(topic_id) if self._reign is not None else None

    def topic_settings_changed(self, topic: str) -> None:
        """Tell the controller, if it is this broker, that a topic's settings changed."""
        if self._reign is not None:
            self._reign.topic_settings_changed(topic)

    def unclean_default_changed(self, allowed: bool) -> None:
        """Tell it that unclean.leader.election.enable of the brokers changed."""
        if self._reign is not None:
            self._reign.unclean_default_changed(allowed)

    # --- the campaign

    async def _follow(self, store: MetadataStore) -> None:
        while True:
            try:
                await self._step(store)
            except SessionExpired:
                self._name(NOBODY)
                return
            except ConnectionLost:
                await asyncio.sleep(RETRY_S)
            except MetadataStoreError:
                log.exception("following the controller failed; it is tried again")
                await asyncio.sleep(RETRY_S)

    async def _step(self, store: MetadataStore) -> None:
        self._changed.clear()
        stat = await store.exists(znodes.CONTROLLER, self._on_change)
        if stat is None:
            self._name(NOBODY)
            reign = await run_for_controller(store, self._broker_id, self._now_ms())
            if reign is not None:
                await self._serve(store, reign)
            return
        try:
            data, stat = await store.get(znodes.CONTROLLER)
        except NoNode:
            return
        if stat.ephemeral_owner == store.session_id:
            # The answer to our election was lost. Nobody can have been elected since, so the epoch is ours.
            data, stat = await store.get(znodes.CONTROLLER_EPOCH)
            await self._serve(store, Reign(int(data or b"0"), stat.version))
            return
        self._name(znodes.decode_controller(data).broker_id)
        await self._changed.wait()

    async def _serve(self, store: MetadataStore, epochs: Reign) -> None:
        """Be the controller until the node is gone, or another's."""
        log.info("broker %d is the controller, epoch %d", self._broker_id, epochs.controller_epoch)
        reign = self._reign = ControllerReign(self._broker_id, epochs, store, self._settings)
        running = asyncio.get_running_loop().create_task(reign.run())
        self._name(self._broker_id)
        watching = asyncio.get_running_loop().create_task(self._until_removed(store))
        try:
            await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._reign = None
            running.cancel()
            watching.cancel()
            outcomes = await asyncio.gather(running, watching, return_exceptions=True)
        log.info("broker %d is the controller no more", self._broker_id)
        failure = outcomes[0]
        if isinstance(failure, SessionExpired):
            raise failure
        if isinstance(failure, Exception) and not isinstance(failure, Deposed):
            log.error("the controller failed and resigns", exc_info=failure)
            with suppress(NoNode):
                await store.delete(znodes.CONTROLLER)
            # Another broker gets the chance: what failed here may fail here again.
            await asyncio.sleep(1)

    async def _until_removed(self, store: MetadataStore) -> None:
        while True:
            self._changed.clear()
            try:
                stat = await store.exists(znodes.CONTROLLER, self._on_change)
            except ConnectionLost:
                await asyncio.sleep(RETRY_S)
                continue
            if stat is None or stat.ephemeral_owner != store.session_id:
                return
            await self._changed.wait()

    def _on_change(self, event: Event) -> None:
        self._changed.set()

    def _name(self, controller_id: int) -> None:
        if controller_id != self.controller_id:
            self.controller_id = controller_id
            self.controller_changed.set()
            for listener in self.on_controller_changed:
                listener()
