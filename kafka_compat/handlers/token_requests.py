"""Shared code of the delegation token APIs: whether tokens are enabled, and which clients may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.api.handler import RequestContext
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.security.principal import ANONYMOUS, TokenHolder

if TYPE_CHECKING:
    from kafka_compat.security.tokens.keeper import Keeper


def may_ask(ctx: RequestContext) -> bool:
    """Return whether the client is authenticated, but not by a token, which it could then extend forever."""
    listeners = ctx.services.config.listeners
    name = ctx.listener_name
    protocol = next(item.security_protocol for item in listeners if item.name == name)
    if protocol == "PLAINTEXT" or isinstance(ctx.principal, TokenHolder):
        return False
    return protocol != "SSL" or ctx.principal != ANONYMOUS


def tokens_for(ctx: RequestContext) -> Keeper:
    """Return the tokens. Raises KafkaError if the client may not use them, or if tokens are disabled."""
    if not may_ask(ctx):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = ctx.services.delegation_tokens
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens
