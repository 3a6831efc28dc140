"""SCRAM credentials of users in the metadata store (KIP-554): listing, validation and changes.

Credentials are stored as in Kafka, next to the user's quotas under /config/users; users.py caches them for
logins. The store contains no passwords, only values derived from passwords.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.entity_settings import stored_settings
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import is_number
from kafka_compat.coordination.nodes.znodes import node_name
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.security import scram_credential as scram

log = logging.getLogger(__name__)

_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class Deletion(NamedTuple):
    """A deletion of a user's credential for one mechanism."""

    user: str
    mechanism: int


class Upsertion(NamedTuple):
    """A user's new credential for one mechanism."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class Listed(NamedTuple):
    """One user's SCRAM iterations for each mechanism, or an error."""

    user: str
    iterations: dict[int, int]
    error: KafkaError | None = None


class ScramCredentials:
    """The stored SCRAM credentials. `on_changed` is called with the path of each changed user: `users/U`."""

    def __init__(self, store: MetadataStore, on_changed: Callable[[str], None]) -> None:
        self._store = store
        self._on_changed = on_changed

    async def describe(self, users: Sequence[str] | None) -> list[Listed]:
        """Return the SCRAM mechanisms of these users, or of all users if `users` is empty or None."""
        if not users:
            listed = []
            for name in sorted(unquote(node) for node in await self._nodes()):
                try:
                    iterations = await self._iterations(name)
                except MalformedNode as error:
                    log.error(
                        "Ignored invalid credentials of user %r: %s. Set the password again", name, error
                    )
                    continue
                if iterations:
                    listed.append(Listed(name, iterations))
            return listed
        return [await self._describe_one(user, count) for user, count in Counter(users).items()]

    async def _describe_one(self, user: str, count: int) -> Listed:
        if not user:
            return Listed(user, {}, _error(ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty"))
        if count > 1:
            problem = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            return Listed(user, {}, _error(ErrorCode.DUPLICATE_RESOURCE, problem))
        try:
            with store_errors_mapped():
                iterations = await self._iterations(user)
        except KafkaError as error:
            return Listed(user, {}, error)
        if iterations:
            return Listed(user, iterations)
        problem = f"Attempt to describe a user credential that does not exist: {user}"
        return Listed(user, {}, _error(ErrorCode.RESOURCE_NOT_FOUND, problem))

    async def alter(
        self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
    ) -> dict[str, KafkaError | None]:
        """Change users' credentials. Return an error for each user, or None if the change succeeded."""
        users = dict.fromkeys([item.user for item in deletions] + [item.user for item in upsertions])
        outcomes: dict[str, KafkaError | None] = {}
        for user in users:
            try:
                with store_errors_mapped():
                    await self._alter_one(
                        user,
                        [item for item in deletions if item.user == user],
                        [item for item in upsertions if item.user == user],
                    )
                outcomes[user] = None
            except KafkaError as error:
                # Break a reference cycle: the traceback refers to this frame, which refers to the outcomes.
                outcomes[user] = error.with_traceback(None)
        return outcomes

    async def _alter_one(
        self, user: str, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
    ) -> None:
        mechanisms = [item.mechanism for item in deletions] + [item.mechanism for item in upsertions]
        if not user:
            raise _error(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        if not _MECHANISMS.keys() >= set(mechanisms):
            raise _error(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        for item in upsertions:
            if item.iterations < scram.ITERATIONS_MIN:
                raise _error(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
            if item.iterations > scram.ITERATIONS_MAX:
                raise _error(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        if len(set(mechanisms)) < len(mechanisms):
            problem = "A user credential cannot be altered twice in the same request"
            raise _error(ErrorCode.DUPLICATE_RESOURCE, problem)
        settings = await self._settings(user)
        for deletion in deletions:
            if settings.pop(_MECHANISMS[deletion.mechanism], None) is None:
                problem = "Attempt to delete a user credential that does not exist"
                raise _error(ErrorCode.RESOURCE_NOT_FOUND, problem)
        for item in upsertions:
            name = _MECHANISMS[item.mechanism]
            credential = scram.from_salted(item.salted_password, item.salt, item.iterations, name)
            settings[name] = scram.encode(credential)
        path = f"users/{node_name(user)}"
        await self._store.put(f"/config/{path}", znodes.encode_config(settings))
        self._on_changed(path)

    async def _nodes(self) -> list[str]:
        return [node for node in await self._store.children("/config/users") if node != znodes.DEFAULT_ENTITY]

    async def _settings(self, user: str) -> dict[str, str]:
        return await stored_settings(self._store, znodes.config_path("users", node_name(user)))

    async def _iterations(self, user: str) -> dict[int, int]:
        settings = await self._settings(user)
        iterations = {}
        for mechanism, name in _MECHANISMS.items():
            if name in settings:
                count = settings[name].rpartition("iterations=")[2]
                if not is_number(count, scram.ITERATIONS_MAX):
                    path = znodes.config_path("users", node_name(user))
                    raise MalformedNode(path, f"{name} has no iteration count")
                iterations[mechanism] = int(count)
        return iterations


def _error(code: ErrorCode, problem: str) -> KafkaError:
    return KafkaError(code, problem)
