"""The initial users of a cluster: SCRAM credentials from a file, stored before any client can log in.

This is the equivalent of `kafka-storage format --add-scram` in KRaft: the first user can create others.
kafka.compat.scram.credentials.file sets the path of the file. Each version of the file is imported once per
cluster, so that later changes and deletions persist; the metadata store records the import. The file contains
no passwords, only values derived from them.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Final

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.entity_settings import stored_settings
from kafka_compat.coordination.nodes.znodes import node_name
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode
from kafka_compat.errors import StartupError
from kafka_compat.security import scram_credential as scram
from kafka_compat.security.scram_credential import Credential

log = logging.getLogger(__name__)

SETTING: Final = "kafka.compat.scram.credentials.file"
_TAKEN: Final = "/kafka_compat/scram_credentials"

Users = Mapping[str, Mapping[str, Credential]]
"""Maps user names to their credentials by mechanism."""


def encode(users: Users) -> bytes:
    """Encode users as the content of a credentials file: JSON, with credentials in Kafka's notation."""
    entries = {
        user: {mechanism: scram.encode(item) for mechanism, item in credentials.items()}
        for user, credentials in users.items()
    }
    return json.dumps(entries, indent=2, ensure_ascii=False).encode() + b"\n"


def decode(content: bytes) -> dict[str, dict[str, Credential]]:
    """Decode the content of a credentials file. Raises ValueError if it is invalid."""
    entries = json.loads(content)
    if not isinstance(entries, dict):
        raise ValueError("expected an object with a member for each user")
    users: dict[str, dict[str, Credential]] = {}
    for user, credentials in entries.items():
        if not user or not isinstance(credentials, dict):
            raise ValueError(f"expected a credential for each mechanism of user {user!r}")
        users[user] = {}
        for mechanism, text in credentials.items():
            if mechanism not in scram.MECHANISMS:
                raise ValueError(f"{mechanism} of user {user!r} is not one of {', '.join(scram.MECHANISMS)}")
            try:
                users[user][mechanism] = scram.decode(str(text))
            except ValueError:
                expected = "salt=...,stored_key=...,server_key=...,iterations=..."
                raise ValueError(f"{mechanism} of user {user!r} is not {expected}") from None
    return users


async def take_over(path: str, store: MetadataStore) -> None:
    """Import a file's users, unless this content was imported before. An invalid file raises StartupError.

    If the file does not exist, a warning is logged, and the broker starts.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        log.warning("Did not import users: file %s does not exist. Check %s", path, SETTING)
        return
    except OSError as error:
        raise StartupError(f"cannot read {SETTING}={path}: {error.strerror or error}") from error
    try:
        users = decode(content)
    except ValueError as error:
        raise StartupError(f"{SETTING}={path} contains no users: {error}") from error
    mark = f"{_TAKEN}/{hashlib.sha256(content).hexdigest()}"
    if await store.exists(mark) is not None:
        return
    for user, credentials in users.items():
        await _store(store, user, credentials)
    # Write this mark last. If the broker crashes earlier, the import is repeated with the same result.
    await store.ensure(mark)
    log.info("Imported users from %s (total: %d)", path, len(users))


async def _store(store: MetadataStore, user: str, credentials: Mapping[str, Credential]) -> None:
    entity = f"users/{node_name(user)}"
    path = f"/config/{entity}"
    settings = await stored_settings(store, path)
    settings.update({mechanism: scram.encode(item) for mechanism, item in credentials.items()})
    await store.put(path, znodes.encode_config(settings))
    if await _others(store):
        await store.create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(entity), sequential=True)


async def _others(store: MetadataStore) -> bool:
    """Return whether other brokers are running, which must be notified of the imported users."""
    try:
        return bool(await store.children(znodes.BROKER_IDS))
    except NoNode:
        return False
