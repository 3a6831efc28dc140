"""Shared code of the ACL APIs: conversion of protocol numbers to enumeration members, and filters.

An unknown number becomes UNKNOWN (0), which matches nothing. A request that contains 0 itself is invalid, and
its connection is closed, as in Kafka.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafka_compat.api.handler import RequestContext
from kafka_compat.deferred import HungUp
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.security.acls import bindings as acls
from kafka_compat.security.acls.bindings import Filter, PatternType
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.security.acls.keeper import Keeper

log = logging.getLogger(__name__)

M = TypeVar("M", bound=IntEnum)


class WireFilter(Protocol):
    """The fields of a DescribeAcls request, and of each filter in a DeleteAcls request."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def refuse_unknown(ctx: RequestContext, *codes: int) -> None:
    """Raise HungUp if any of the codes is UNKNOWN (0)."""
    if not all(codes):
        log.info("Closed the connection from %s: an ACL type or operation was UNKNOWN", ctx.client_host)
        raise HungUp


def require_acls(ctx: RequestContext) -> Keeper:
    """Return the ACLs, which the client must be allowed to change. Raises KafkaError otherwise."""
    require_cluster(ctx, Operation.ALTER)
    if ctx.services.acls is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return ctx.services.acls


def member(kind: type[M], code: int) -> M:
    """Return the enumeration member for a code, or UNKNOWN (0) for an unknown code."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def filter_of(wire: WireFilter, version: int) -> Filter:
    """Return the filter in a request. Version 0 has no pattern types: its filters match literal patterns."""
    pattern_type = member(PatternType, wire.pattern_type_filter) if version else PatternType.LITERAL
    return Filter(
        acls.PatternFilter(
            member(ResourceType, wire.resource_type_filter), wire.resource_name_filter, pattern_type
        ),
        acls.EntryFilter(
            wire.principal_filter,
            wire.host_filter,
            member(Operation, wire.operation),
            member(acls.Permission, wire.permission_type),
        ),
    )


def codes_of(wire: WireFilter) -> tuple[int, int, int, int]:
    """Return the codes in a filter, for `refuse_unknown`."""
    return wire.resource_type_filter, wire.pattern_type_filter, wire.operation, wire.permission_type


def entry_fields(entry: acls.Entry) -> dict[str, Any]:
    """Return the response fields for an ACL entry."""
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission,
    }


def pattern_fields(pattern: acls.Pattern) -> dict[str, Any]:
    """Return the response fields for a resource pattern."""
    return {
        "resource_type": pattern.resource_type,
        "resource_name": pattern.name,
        "pattern_type": pattern.pattern_type,
    }
