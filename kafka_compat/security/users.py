"""In-memory cache of SCRAM credentials, so that logins never wait for the metadata store."""

import logging
from collections.abc import Mapping

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.entity_settings import stored_settings
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.znodes import entity_name
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.security import scram_credential as scram
from kafka_compat.security.scram_credential import Credential
from kafka_compat.tasks import asked_for_all

log = logging.getLogger(__name__)

_READS_AT_ONCE = 100
_NOTHING: Mapping[str, Credential] = {}


class Users:
    """Cache of the credentials of all users."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._credentials: dict[str, Mapping[str, Credential]] = {}

    def credential(self, name: str, mechanism: str) -> Credential | None:
        """Return the user's credential for a mechanism, or None if the user has none."""
        return self._credentials.get(name, _NOTHING).get(mechanism)

    async def load(self) -> None:
        """Read all credentials."""
        nodes = await self._store.children("/config/users")
        users = [node for node in nodes if node != znodes.DEFAULT_ENTITY]
        await asked_for_all(users, self._reread, _READS_AT_ONCE)

    async def changed(self, entity_path: str) -> None:
        """Reload the user in a change notification (`users/U`). Ignore notifications for other entities."""
        kind, _, node = entity_path.partition("/")
        if kind == "users" and node != znodes.DEFAULT_ENTITY and "/" not in node:
            await self._reread(node)

    async def _reread(self, node: str) -> None:
        name = entity_name(node)
        assert name is not None
        path = znodes.config_path("users", node)
        try:
            settings = await stored_settings(self._store, path)
        except MalformedNode as error:
            log.error("User %r cannot log in: %s. Set the password again", name, error)
            settings = {}
        credentials = {}
        for mechanism in scram.MECHANISMS:
            if mechanism in settings:
                try:
                    credentials[mechanism] = scram.decode(settings[mechanism])
                except ValueError:
                    # Do not log the stored text, because passwords could be guessed from it.
                    log.error(
                        "User %r cannot log in with %s: %s is malformed. Set the password again",
                        name,
                        mechanism,
                        path,
                    )
        if credentials:
            self._credentials[name] = credentials
        else:
            self._credentials.pop(name, None)
