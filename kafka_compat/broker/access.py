"""What a broker reads of ACLs and delegation tokens when it starts, where its settings ask for them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.cluster.broker_context import BrokerContext
from kafka_compat.tasks import OnFailure, Tasks

if TYPE_CHECKING:
    from kafka_compat.broker.services import BrokerServices
    from kafka_compat.cluster.membership import Membership


async def read_acls(services: BrokerServices[Membership], context: BrokerContext, tasks: Tasks) -> None:
    """Have an authorizer decide who may do what."""
    authorizer = context.config.authorizer
    if authorizer is None:
        return
    from kafka_compat.security.acls import made

    services.authorizer, services.acls = await made.make(
        authorizer, context.store, tasks, context.clock.now_ms
    )


async def read_delegation_tokens(
    services: BrokerServices[Membership], context: BrokerContext, tasks: Tasks
) -> None:
    """Know the tokens by which clients may log in."""
    config = context.config
    key = config.delegation_token_key
    if key is None:
        return
    from kafka_compat.security.tokens import made

    services.delegation_tokens = await made.make(config, key, context.store, tasks, context.clock.now_ms)


def keep_removing_delegation_tokens(
    services: BrokerServices[Membership], context: BrokerContext, tasks: Tasks
) -> None:
    """Remove those that have expired, while this broker is the controller."""
    tokens, metadata = services.delegation_tokens, context.metadata
    if tokens is None:
        return

    def is_controller() -> bool:
        return metadata.controller_id == metadata.local_id

    interval_s = context.config.int("delegation.token.expiry.check.interval.ms") / 1000
    work = partial(tokens.keep_removing, is_controller, interval_s)
    tasks.spawn("removing delegation tokens that have expired", work, OnFailure.RESTART)
