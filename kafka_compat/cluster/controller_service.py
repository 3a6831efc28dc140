"""Participation of this broker in controller elections: it watches /controller, and acts as controller if it
is elected.

Rules
1. /controller and /controller_epoch change in one transaction, so that each term has a unique epoch.
2. A controller whose session is lost resigns at once. Its late requests and writes fail due to its old epoch.
3. As in Kafka, a controller whose /controller node is deleted by an operator resigns and runs for election
   again.
4. Modules that only a controller needs, a fifth of a clustered broker's imports, are imported in a thread,
   either when this broker is elected or, if it may be elected, after startup.
5. A standalone broker is the controller as long as it runs, without an election. Its term begins with the
   first request that needs a controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.cluster.controller_election import (
    ControllerEpoch,
    read_controller_epoch,
    run_for_controller,
)
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import NO_VERSION, MalformedNode, MalformedNodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.lazy import Lazy
from kafka_compat.long_work import LongWork
from kafka_compat.tasks import Background, Tasks

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.cluster.controller_settings import ControllerTermSettings
    from kafka_compat.cluster.controller_term import ControllerTerm
    from kafka_compat.cluster.controller_times import ControllerTimes
    from kafka_compat.coordination.controller import effects, events

log = logging.getLogger(__name__)

NOBODY = -1
RETRY_S = 0.1
FAILURE_PAUSE_S = 1.0


class ControllerService:
    """The controller role of one broker, across all its sessions (rules: see the module docstring)."""

    def __init__(
        self,
        broker_id: int,
        settings: Callable[[], ControllerTermSettings],
        now_ms: Callable[[], int],
        tasks: Tasks,
        long_work: LongWork,
        malformed: MalformedNodes | None = None,
    ) -> None:
        """`settings` returns the settings for a new term."""
        self._broker_id = broker_id
        self._settings = settings
        self._now_ms = now_ms
        self._tasks = tasks
        self._long_work = long_work
        self._malformed = malformed or MalformedNodes()
        self._following: Background | None = None
        self._changed = asyncio.Event()
        self.term: ControllerTerm | None = None
        """The current term, or None while this broker is not the controller."""
        self._held: tuple[MetadataStore, ControllerEpoch] | None = None
        """The store and epoch of a standalone broker (rule 5), or None in a cluster."""
        self._beginning = asyncio.Lock()
        self._times: Lazy[ControllerTimes] = Lazy(_new_times)
        self.controller_id = NOBODY
        """The ID of the broker registered in /controller, or NOBODY if there is none."""
        self.controller_changed = asyncio.Event()
        """An event that is set whenever `controller_id` changes. Tasks clear it before they wait."""
        self.on_controller_changed: list[Callable[[], None]] = []

    @property
    def times(self) -> ControllerTimes:
        """The controller statistics of this broker, over all of its terms."""
        return self._times.get()

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, according to its own state."""
        return self.term is not None or self._held is not None

    def start(self, store: MetadataStore) -> None:
        """Watch /controller and run for election in this session."""
        self._following = self._tasks.spawn(
            "watching the controller", partial(self._follow, store), restarts=True
        )

    def hold(self, store: MetadataStore, epoch: ControllerEpoch) -> None:
        """Become the controller of this standalone broker's own store (rule 5)."""
        self._held = store, epoch
        self._name(self._broker_id)

    async def get_ready(self) -> None:
        """Import the controller's modules in advance (rule 4)."""
        await asyncio.to_thread(_term_class)

    async def stop(self) -> None:
        """Leave the election, and resign if elected. /controller is deleted when the session ends."""
        if self._following is not None:
            await self._following.stop()
            self._following = None
        self._held = None
        self._name(NOBODY)

    async def begin(self) -> bool:
        """Start a standalone broker's term if necessary. Return whether this broker is the controller."""
        return await self._begun() is not None

    async def _begun(self) -> ControllerTerm | None:
        if self.term is not None or self._held is None:
            return self.term
        async with self._beginning:
            if self.term is None and self._held is not None:
                term = self._new_term(*self._held, await asyncio.to_thread(_term_class))
                self._following = self._tasks.spawn("running the controller", partial(self._serve_held, term))
        return self.term

    async def _serve_held(self, term: ControllerTerm) -> None:
        try:
            await term.run()
        finally:
            # Forget the term, so that the next request starts a new one.
            self.term = None

    async def ask(self, make: Callable[[Hashable], events.Event]) -> effects.ReplyValue | None:
        """Return the reply to the request from `make`, or None if this broker is not the controller."""
        term = await self._begun()
        return await term.ask(make) if term is not None else None

    async def drain(self, patience_s: float) -> None:
        """Wait up to `patience_s` seconds until all brokers have received this controller's decisions."""
        if self.term is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self.term.channels.drained()

    @property
    def unclean_elections(self) -> int:
        """The number of unclean leader elections in this term, or 0 if this broker is not the controller."""
        return self.term.machine.unclean_elections if self.term is not None else 0

    def topic_named(self, topic_id: UUID) -> str | None:
        """Return the name of a topic, or None if the ID is unknown or this broker is not the controller."""
        return self.term.machine.topic_named(topic_id) if self.term is not None else None

    def topic_settings_changed(self, topic: str) -> None:
        """Process a change of a topic's settings, if this broker is the controller."""
        if self.term is not None:
            self.term.topic_settings_changed(topic)

    def unclean_default_changed(self, allowed: bool) -> None:
        """Process a change of the default for unclean leader election, if this broker is the controller."""
        if self.term is not None:
            self.term.unclean_default_changed(allowed)

    def tell_of_malformed(self, error: MalformedNode, consequence: str) -> None:
        """Log a malformed node that was found during a request to the controller, but only once."""
        self._malformed.report(error, NO_VERSION, consequence)

    # --- election

    async def _follow(self, store: MetadataStore) -> None:
        while True:
            try:
                await self._step(store)
            except stores.SessionExpired:
                self._name(NOBODY)
                return
            except stores.ConnectionLost:
                await asyncio.sleep(RETRY_S)
            except Exception:
                # Retry after any failure, because a broker must know the controller.
                log.exception("Could not watch the controller node; retrying")
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
        except stores.NoNode:
            return
        if stat.ephemeral_owner == store.session_id:
            # The response to the write that elected this broker was lost. No other broker can have been
            # elected since, so the current epoch is this broker's epoch.
            await self._serve(store, await read_controller_epoch(store, self._malformed))
            return
        try:
            self._name(znodes.decode_controller(data).broker_id)
        except MalformedNode as error:
            self._malformed.report(error, stat.version, "no controller is elected")
            self._name(NOBODY)
        await self._changed.wait()

    async def _serve(self, store: MetadataStore, epoch: ControllerEpoch) -> None:
        term = self._new_term(store, epoch, await asyncio.to_thread(_term_class))
        running = asyncio.get_running_loop().create_task(term.run())
        self._name(self._broker_id)
        watching = asyncio.get_running_loop().create_task(self._until_removed(store))
        try:
            await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.term = None
            running.cancel()
            watching.cancel()
            outcomes = await asyncio.gather(running, watching, return_exceptions=True)
        log.info("Broker %d is no longer the controller", self._broker_id)
        from kafka_compat.cluster.controller_nodes import Deposed

        failure = outcomes[0]
        if isinstance(failure, stores.SessionExpired):
            raise failure
        if isinstance(failure, Exception) and not isinstance(failure, Deposed):
            log.error("Resigned as controller after an unexpected error", exc_info=failure)
            with suppress(stores.NoNode):
                await store.delete(znodes.CONTROLLER)
            # Let another broker be elected, because the failure may recur on this broker.
            await asyncio.sleep(FAILURE_PAUSE_S)

    def _new_term(
        self, store: MetadataStore, epoch: ControllerEpoch, term_class: type[ControllerTerm]
    ) -> ControllerTerm:
        log.info("Broker %d became the controller (epoch %d)", self._broker_id, epoch.controller_epoch)
        term = self.term = term_class(
            self._broker_id, epoch, store, self._settings(), self._malformed, self._long_work, self.times
        )
        return term

    async def _until_removed(self, store: MetadataStore) -> None:
        while True:
            self._changed.clear()
            try:
                stat = await store.exists(znodes.CONTROLLER, self._on_change)
            except stores.ConnectionLost:
                await asyncio.sleep(RETRY_S)
                continue
            if stat is None or stat.ephemeral_owner != store.session_id:
                return
            await self._changed.wait()

    def _on_change(self, event: stores.Event) -> None:
        self._changed.set()

    def _name(self, controller_id: int) -> None:
        if controller_id != self.controller_id:
            self.controller_id = controller_id
            self.controller_changed.set()
            for listener in self.on_controller_changed:
                listener()


def _new_times() -> ControllerTimes:
    from kafka_compat.cluster.controller_times import ControllerTimes

    return ControllerTimes()


def _term_class() -> type[ControllerTerm]:
    from kafka_compat.cluster.controller_term import ControllerTerm

    return ControllerTerm
