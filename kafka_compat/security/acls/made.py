"""A broker's authorizer with what it stands on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafka_compat.config.authorizer import AuthorizerSettings
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.security.acls.authorizer import AclAuthorizer
from kafka_compat.security.acls.keeper import Keeper
from kafka_compat.security.acls.rules import Rules
from kafka_compat.security.principal import Principal
from kafka_compat.tasks import Tasks


class Made(NamedTuple):
    """The authorizer decides by the ACLs that the keeper keeps."""

    authorizer: AclAuthorizer
    keeper: Keeper


async def make(
    settings: AuthorizerSettings, store: MetadataStore, tasks: Tasks, now_ms: Callable[[], int]
) -> Made:
    """With all ACLs read. MetadataStoreError."""
    super_users = [Principal(kind, name) for kind, name in settings.super_users]
    rules = Rules(super_users, allow_if_no_acl=settings.allow_if_no_acl)
    keeper = Keeper(store, rules, tasks, now_ms)
    await keeper.start()
    return Made(AclAuthorizer(rules), keeper)
