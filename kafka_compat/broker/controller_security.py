"""Users and ACLs of the cluster for a process that is only a controller.

Until the store can be read, only super users are authorized, and no user with SCRAM credentials can log in.
After a session has expired, everything is read again in a new session.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kafka_compat.cluster.broker_context import EntityChanges
from kafka_compat.cluster.config_changes import ConfigChanges
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.metadata_store import MetadataStoreError, SessionState
from kafka_compat.security.acls.authorizer import AclAuthorizer
from kafka_compat.security.acls.keeper import Keeper
from kafka_compat.security.acls.rules import Rules
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.broker.controller_listener import ControllerListener
    from kafka_compat.cluster.shared_store import ConnectStore
    from kafka_compat.config import BrokerConfig
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.storage.clock import Clock

log = logging.getLogger(__name__)

_RETRY_S: Final = 1.0


class ControllerSecurity:
    """The users and ACLs of controller listeners, read from the store."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, listener: ControllerListener, connect: ConnectStore
    ) -> None:
        self._config = config
        self._clock = clock
        self._listener = listener
        self._connect = connect

    async def follow(self) -> None:
        """Read the users and ACLs, and follow their changes until the task is canceled."""
        while True:
            session = await self._connect()
            ended = asyncio.Event()

            def changed(state: SessionState, ended: asyncio.Event = ended) -> None:
                if state in (SessionState.EXPIRED, SessionState.CLOSED):
                    ended.set()

            session.on_state(changed)
            tasks = Tasks()
            try:
                await self._read(session, tasks)
                await ended.wait()
            except MetadataStoreError as error:
                log.warning("Could not read the users and ACLs: %r; retrying", error)
                await asyncio.sleep(_RETRY_S)
            finally:
                await tasks.close()
                await session.close()

    async def _read(self, session: MetadataStore, tasks: Tasks) -> None:
        await session.ensure_all(znodes.PERSISTENT_PATHS)
        changes = EntityChanges(tasks)
        following = ConfigChanges(tasks, changes.tell, self._clock.now_ms)
        await following.begin(session)
        if self._listener.entrances is not None:
            await self._listener.entrances.load_users(session, changes)
        settings = self._config.authorizer
        if settings is not None:
            rules = Rules.configured(settings)
            await Keeper(session, rules, tasks, self._clock.now_ms).start()
            self._listener.set_authorizer(AclAuthorizer(rules))
        await following.start(session)
