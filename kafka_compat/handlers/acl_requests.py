"""Shared code of the ACL APIs: conversion of protocol numbers to enumeration members, and filters.

An unassigned number becomes UNKNOWN, which matches nothing. UNKNOWN itself, 0, is invalid in a request, and
the connection is closed, as in Kafka.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import Any, Protocol, TypeVar

from kafka_compat.api.handler import RequestContext
from kafka_compat.deferred import HungUp
from kafka_compat.security.acls import bindings as acls
from kafka_compat.security.acls.bindings import Filter, PatternType
from kafka_compat.security.authorizer import Operation, ResourceType

log = logging.getLogger(__name__)

M = TypeVar("M", bound=IntEnum)


class WireFilter(Protocol):
    """The fields of DescribeAcls, and of each filter of DeleteAcls."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def refuse_unknown(ctx: RequestContext, *codes: int) -> None:
    """Raise HungUp if any of the codes is UNKNOWN."""
    if not all(codes):
        log.info("Closed the connection from %s: it sent an ACL with an UNKNOWN element", ctx.client_host)
        raise HungUp


def member(kind: type[M], code: int) -> M:
    """The enumeration member of a code; UNKNOWN, 0, for an unassigned code."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def filter_of(wire: WireFilter, version: int) -> Filter:
    """The filter of a request. Version 0 has no pattern types and means literal patterns."""
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
    """The codes that `refuse_unknown` checks."""
    return wire.resource_type_filter, wire.pattern_type_filter, wire.operation, wire.permission_type


def entry_fields(entry: acls.Entry) -> dict[str, Any]:
    """The fields of an entry in responses."""
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission,
    }


def pattern_fields(pattern: acls.Pattern) -> dict[str, Any]:
    """The fields of a pattern in responses."""
    return {
        "resource_type": pattern.resource_type,
        "resource_name": pattern.name,
        "pattern_type": pattern.pattern_type,
    }
