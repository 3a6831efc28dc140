"""Who the controller is, and this broker's candidacy: whenever there is none, it runs for it.

Rules
1. /controller and /controller_epoch change in one transaction, so that each term has an epoch of its own.
2. A broker whose session is lost resigns at once; what it still has on its way is fenced by its epoch.
3. A controller whose node is removed by hand resigns and runs again, as Kafka's does.
4. What only a controller needs is imported in a thread: by who is elected, or, behind the start, by who may
   be. It is a fifth of what a broker of a cluster imports.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafka_compat.cluster.controller_election import (
    ControllerEpoch,
    read_controller_epoch,
    run_for_controller,
)
from kafka_compat.cluster.controller_settings import ControllerTermSettings
from kafka_compat.cluster.controller_times import ControllerTimes
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import NO_VERSION, MalformedNode, MalformedNodes
from kafka_compat.coordination.store.metadata_store import (
    ConnectionLost,
    Event,
    MetadataStore,
    NoNode,
    SessionExpired,
)
from kafka_compat.long_work import LongWork
from kafka_compat.tasks import Background, OnFailure, Tasks

if TYPE_CHECKING:
    from kafka_compat.cluster.controller_term import ControllerTerm
    from kafka_compat.coordination.controller import events, replies

log = logging.getLogger(__name__)

NOBODY = -1
RETRY_S = 0.1
FAILURE_PAUSE_S = 1.0


class ControllerService:
    """See the rules above. One for the life of a broker, over all of its sessions."""

    def __init__(
        self,
        broker_id: int,
        settings: ControllerTermSettings,
        now_ms: Callable[[], int],
        tasks: Tasks,
        long_work: LongWork,
        malformed: MalformedNodes | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._settings = settings
        self._now_ms = now_ms
        self._tasks = tasks
        self._long_work = long_work
        self._malformed = malformed or MalformedNodes()
        self._following: Background | None = None
        self._changed = asyncio.Event()
        self._term: ControllerTerm | None = None
        self.times = ControllerTimes()
        """What it was at in all its terms, and how long it took."""
        self.controller_id = NOBODY
        """The broker that /controller names; NOBODY while there is none."""
        self.controller_changed = asyncio.Event()
        """Set whenever `controller_id` becomes another; those who wait clear it first."""
        self.on_controller_changed: list[Callable[[], None]] = []

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._term is not None

    @property
    def epoch(self) -> ControllerEpoch | None:
        """The epoch of this broker as controller; None while it is not."""
        return self._term.epoch if self._term is not None else None

    def start(self, store: MetadataStore) -> None:
        """Follow /controller, and run for it, in this session."""
        self._following = self._tasks.spawn(
            "following the controller", partial(self._follow, store), OnFailure.RESTART
        )

    async def get_ready(self) -> None:
        """Be able to serve as controller without delay: see rule 4."""
        await asyncio.to_thread(_term_class)

    async def stop(self) -> None:
        """Resign if need be; the node itself goes with the session."""
        if self._following is not None:
            await self._following.stop()
            self._following = None
        self._name(NOBODY)

    async def ask(self, make: Callable[[Hashable], events.Event]) -> replies.ReplyValue | None:
        """The controller's reply to a request; None when this broker is not the controller."""
        return await self._term.ask(make) if self._term is not None else None

    async def told(self, patience_s: float) -> None:
        """Wait until all brokers know what this broker decided as controller; not for longer than that."""
        if self._term is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self._term.told()

    @property
    def unclean_elections(self) -> int:
        """How many partitions got a leader that may miss records, in this term of this broker."""
        return self._term.unclean_elections if self._term is not None else 0

    @property
    def term(self) -> ControllerTerm | None:
        """What it does as the controller; None while it is not."""
        return self._term

    def topic_named(self, topic_id: UUID) -> str | None:
        """The topic with an id, as the controller knows it, if this broker is it."""
        return self._term.topic_named(topic_id) if self._term is not None else None

    def topic_settings_changed(self, topic: str) -> None:
        """Tell the controller, if it is this broker, that a topic's settings changed."""
        if self._term is not None:
            self._term.topic_settings_changed(topic)

    def unclean_default_changed(self, allowed: bool) -> None:
        """Tell it that unclean.leader.election.enable of the brokers changed."""
        if self._term is not None:
            self._term.unclean_default_changed(allowed)

    def tell_of_malformed(self, error: MalformedNode, consequence: str) -> None:
        """Have the log told of a node that a request to the controller came upon; once."""
        self._malformed.tell(error, NO_VERSION, consequence)

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
            except Exception:
                # Whatever it is: a broker that does not know the controller is of no use.
                log.exception("following the controller failed; it is tried again")
                await asyncio.sleep(FAILURE_PAUSE_S)

    async def _step(self, store: MetadataStore) -> None:
        self._changed.clear()
        stat = await store.exists(znodes.CONTROLLER, self._on_change)
        if stat is None:
            self._name(NOBODY)
            epoch = await run_for_controller(store, self._broker_id, self._now_ms(), self._malformed)
            if epoch is not None:
                await self._serve(store, epoch)
            return
        try:
            data, stat = await store.get(znodes.CONTROLLER)
        except NoNode:
            return
        if stat.ephemeral_owner == store.session_id:
            # The answer to our election was lost. Nobody can have been elected since, so the epoch is ours.
            await self._serve(store, await read_controller_epoch(store, self._malformed))
            return
        try:
            self._name(znodes.decode_controller(data).broker_id)
        except MalformedNode as error:
            self._malformed.tell(error, stat.version, "nobody is the controller")
            self._name(NOBODY)
        await self._changed.wait()

    async def _serve(self, store: MetadataStore, epoch: ControllerEpoch) -> None:
        """Be the controller until the node is gone, or another's."""
        log.info("broker %d is the controller, epoch %d", self._broker_id, epoch.controller_epoch)
        term_class = await asyncio.to_thread(_term_class)
        term = self._term = term_class(
            self._broker_id, epoch, store, self._settings, self._malformed, self._long_work, self.times
        )
        running = asyncio.get_running_loop().create_task(term.run())
        self._name(self._broker_id)
        watching = asyncio.get_running_loop().create_task(self._until_removed(store))
        try:
            await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._term = None
            running.cancel()
            watching.cancel()
            outcomes = await asyncio.gather(running, watching, return_exceptions=True)
        log.info("broker %d is the controller no more", self._broker_id)
        from kafka_compat.cluster.controller_nodes import Deposed

        failure = outcomes[0]
        if isinstance(failure, SessionExpired):
            raise failure
        if isinstance(failure, Exception) and not isinstance(failure, Deposed):
            log.error("the controller failed and resigns", exc_info=failure)
            with suppress(NoNode):
                await store.delete(znodes.CONTROLLER)
            # Another broker gets the chance: what failed here may fail here again.
            await asyncio.sleep(FAILURE_PAUSE_S)

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


def _term_class() -> type[ControllerTerm]:
    from kafka_compat.cluster.controller_term import ControllerTerm

    return ControllerTerm
