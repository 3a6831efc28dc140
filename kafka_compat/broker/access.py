"""What a broker reads of ACLs and delegation tokens when it starts, where its settings ask for them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.cluster.broker_context import BrokerContext
from kafka_compat.tasks import OnFailure, Tasks

if TYPE_CHECKING:
    from kafka_compat.broker.services import BrokerServices


async def read_acls(services: BrokerServices, context: BrokerContext, tasks: Tasks) -> None:
    """Have an authorizer decide who may do what."""
    authorizer = context.config.authorizer
    if authorizer is None:
        return
    from kafka_compat.security.acls.authorizer import AclAuthorizer
    from kafka_compat.security.acls.keeper import Keeper
    from kafka_compat.security.acls.rules import Rules
    from kafka_compat.security.principal import Principal

    super_users = [Principal(kind, name) for kind, name in authorizer.super_users]
    rules = Rules(super_users, allow_if_no_acl=authorizer.allow_if_no_acl)
    services.acls = Keeper(context.store, rules, tasks, context.clock.now_ms)
    await services.acls.start()
    services.authorizer = AclAuthorizer(rules)


async def read_delegation_tokens(services: BrokerServices, context: BrokerContext, tasks: Tasks) -> None:
    """Know the tokens by which clients may log in."""
    config = context.config
    key = config.delegation_token_key
    if key is None:
        return
    from kafka_compat.security.tokens.delegation_token import Terms
    from kafka_compat.security.tokens.keeper import Keeper

    terms = Terms(
        config.int("delegation.token.max.lifetime.ms"), config.int("delegation.token.expiry.time.ms")
    )
    services.delegation_tokens = Keeper(context.store, key, terms, tasks, context.clock.now_ms)
    await services.delegation_tokens.start()


def keep_removing_delegation_tokens(services: BrokerServices, context: BrokerContext, tasks: Tasks) -> None:
    """Remove those that have expired, while this broker is the controller."""
    tokens, metadata = services.delegation_tokens, context.metadata
    if tokens is None:
        return

    def is_controller() -> bool:
        return metadata.controller_id == metadata.local_id

    interval_s = context.config.int("delegation.token.expiry.check.interval.ms") / 1000
    work = partial(tokens.keep_removing, is_controller, interval_s)
    tasks.spawn("removing delegation tokens that have expired", work, OnFailure.RESTART)
