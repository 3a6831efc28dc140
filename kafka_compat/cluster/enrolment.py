"""Registration of a broker during its lifetime. The broker registers, takes part in controller elections and
watches settings. After a session expires, it repeats these steps in a new session.

Rules
1. As long as the broker runs, it is registered or tries to register. All errors are retried, and unexpected
   errors are logged.
2. A session in which registration failed is closed before the next attempt, because a registration in that
   session could block the attempt.
3. In another tree than before, to which a migration has moved the metadata, the broker epoch starts anew, and
   the broker waits for the others before it takes part in the election: it would replace missing leaders.
4. If the broker does not support a finalized feature of the cluster, it shuts down instead of registering.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from kafka_compat.cluster.config_changes import ConfigChanges
from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.cluster.features import FinalizedFeatures
from kafka_compat.cluster.moved_members import until_registered
from kafka_compat.cluster.registration import register
from kafka_compat.cluster.shared_store import ConnectStore, CurrentSession
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
from kafka_compat.coordination.store.metadata_store import (
    MetadataStore,
    MetadataStoreError,
    SessionExpired,
    SessionState,
)
from kafka_compat.tasks import CannotGoOn, Tasks

log = logging.getLogger(__name__)

RECONNECT_S = 1.0
UNKNOWN_EPOCH = -1


class Enrolment:
    def __init__(
        self,
        current: CurrentSession,
        connect_store: ConnectStore,
        tasks: Tasks,
        *,
        features: FinalizedFeatures,
        service: ControllerService,
        config_changes: ConfigChanges,
        now_ms: Callable[[], int],
        wait_s: float,
    ) -> None:
        """`wait_s` is the maximum wait, in seconds, until the previous run's registration expires."""
        self.broker_epoch = UNKNOWN_EPOCH
        """The epoch of the current registration (KIP-380)."""
        self._current = current
        self._connect_store = connect_store
        self._tasks = tasks
        self._features = features
        self._service = service
        self._config_changes = config_changes
        self._now_ms = now_ms
        self._wait_s = wait_s
        self._info: BrokerInfo
        self._reentering = False
        self._tree_id: str | None = None
        self.is_leaving = False
        """Whether the broker is leaving the cluster. Expired sessions are then no longer replaced."""

    async def enter(self, info: BrokerInfo) -> None:
        """Register in the current session, and start the tasks that depend on it. Raises NodeExists if
        another broker is registered with this ID, UnsupportedFeatures, or another MetadataStoreError.
        """
        self._info = info
        session = self._current.session
        session.on_state(lambda state: self._session_changed(session, state))
        if self._tree_id not in (None, session.tree_id):
            # The IDs of changes in the other tree, and therefore broker epochs, may be lower.
            self.broker_epoch = UNKNOWN_EPOCH
        await self._features.start(session)
        self.broker_epoch = await register(session, info, self._now_ms(), self._wait_s)
        if self._tree_id not in (None, session.tree_id):
            await until_registered(session)
        self._tree_id = session.tree_id
        self._service.start(session)
        await self._config_changes.start(session)

    async def enter_first(self, info: BrokerInfo) -> None:
        """Register at startup, in a new session if the first one has ended since it was opened, for example
        because the metadata has moved. Raises the errors of `enter` other than SessionExpired.
        """
        self._reentering = True
        try:
            while True:
                session = self._current.session
                with suppress(SessionExpired):
                    await self.enter(info)
                    if session.state is not SessionState.EXPIRED:
                        return
                log.warning("The metadata session ended during startup; opening another one")
                await self._step_back()
                await session.close()
                self._current.session = await self._connect_store()
        finally:
            self._reentering = False

    async def leave(self) -> None:
        """Stop the tasks that depend on the session. The broker stays registered until the session ends."""
        self.is_leaving = True
        await self._step_back()

    async def _step_back(self) -> None:
        await self._service.stop()
        await self._config_changes.stop()
        await self._features.stop()

    def _session_changed(self, session: MetadataStore, state: SessionState) -> None:
        if state is SessionState.EXPIRED and not self.is_leaving:
            log.warning("The metadata session expired; registering broker %d again", self._info.broker_id)
            # Do not start a second registration: the current one detects the expiry itself.
            if not self._reentering:
                self._reentering = True
                self._tasks.spawn("registering the broker again", self._reenter, restarts=True)

    async def _reenter(self) -> None:
        while not self.is_leaving:
            await self._step_back()
            if await self._enter_again():
                break
            await asyncio.sleep(RECONNECT_S)
        self._reentering = False

    async def _enter_again(self) -> bool:
        """Try once to register in a new session, and return whether this succeeded. Reraises CannotGoOn."""
        session: MetadataStore | None = None
        try:
            session = self._current.session = await self._connect_store()
            await self.enter(self._info)
        except Exception as error:
            if session is not None:
                await session.close()
            if isinstance(error, CannotGoOn):
                raise
            if isinstance(error, MetadataStoreError):
                log.warning("Could not re-register the broker: %r; retrying", error)
            else:
                log.exception("Could not re-register the broker; retrying")
            return False
        return session.state is not SessionState.EXPIRED
