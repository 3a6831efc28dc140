"""Checks shared by the delegation token APIs: whether tokens are enabled and the client may manage them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.api.handler import RequestContext
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.security.principal import ANONYMOUS, TokenHolder

if TYPE_CHECKING:
    from kafka_compat.security.tokens.keeper import Keeper


def may_ask(ctx: RequestContext) -> bool:
    """Return whether the client may manage tokens: it must be authenticated, but not by a token."""
    listeners = ctx.services.config.listeners
    name = ctx.listener_name
    protocol = next(item.security_protocol for item in listeners if item.name == name)
    if protocol == "PLAINTEXT" or isinstance(ctx.principal, TokenHolder):
        return False
    return protocol != "SSL" or ctx.principal != ANONYMOUS


def tokens_for(ctx: RequestContext) -> Keeper:
    """Return the delegation tokens. Raises KafkaError if they are disabled or the client may not use them."""
    if not may_ask(ctx):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = ctx.services.delegation_tokens
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens
