"""Quotas of users, clients and addresses in the metadata store (KIP-546): validation, storage and listing.

The format of the quotas under /config/users, /config/clients and /config/ips, and their effect, are the same
as in Kafka; `client_quota_manager` enforces them. A name of None stands for the default entity.
"""

import logging
import socket
from asyncio import get_running_loop
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.entity_settings import entity_paths, stored_settings
from kafka_compat.coordination.nodes.znodes import entity_name, node_name
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

USER, CLIENT, IP = "user", "client-id", "ip"
_KINDS = {"users": USER, "clients": CLIENT, "ips": IP}

Entity = dict[str, str | None]
"""Maps kinds (USER, CLIENT, IP) to names; None is the default. A client of a user has two kinds."""

_RATES: dict[str, type] = {
    "producer_byte_rate": int,
    "consumer_byte_rate": int,
    "request_percentage": float,
    "controller_mutation_rate": float,
}
_IP_RATES: dict[str, type] = {"connection_creation_rate": int}
_INT_MAX = 2**31 - 1
_EPSILON = 1e-6


class Condition(NamedTuple):
    """Filter for entities of one kind: the entity `name` (None: the default), or all if `any_name`."""

    kind: str
    name: str | None
    any_name: bool

    def holds(self, entity: Entity) -> bool:
        return self.kind in entity and (self.any_name or entity[self.kind] == self.name)


class Change(NamedTuple):
    """A quota to set, or to remove if the value is None."""

    key: str
    value: float | None


class ClientQuotas:
    """The stored quotas. Calls `on_changed` with the path of each changed entity (`users/U/clients/C`)."""

    def __init__(self, store: MetadataStore, on_changed: Callable[[str], None]) -> None:
        self._store = store
        self._on_changed = on_changed

    async def describe(
        self, conditions: Sequence[Condition], strict: bool
    ) -> list[tuple[Entity, dict[str, float]]]:
        """Return the entities that match all conditions and, with `strict`, have no other components.

        Raises KafkaError if the conditions contradict each other.
        """
        kinds = [condition.kind for condition in conditions]
        _check_kinds(kinds)
        found = []
        for path in await entity_paths(self._store):
            entity = _entity_of(path)
            if not all(condition.holds(entity) for condition in conditions):
                continue
            if strict and set(entity) - set(kinds):
                continue
            known = _IP_RATES if IP in entity else _RATES
            try:
                stored = await stored_settings(self._store, f"/config/{path}")
                quotas = {key: float(value) for key, value in stored.items() if key in known}
            except ValueError as error:
                log.error("Ignored invalid quotas in /config/%s: %s. Set the quotas again", path, error)
                continue
            if quotas:
                found.append((entity, quotas))
        return found

    async def alter(self, entity: Entity, changes: Iterable[Change], validate_only: bool) -> None:
        """Change the quotas of an entity. If any change is invalid, change nothing and raise KafkaError."""
        path = await _path_of(entity)
        quotas = await stored_settings(self._store, f"/config/{path}")
        for key, value in changes:
            if value is None:
                quotas.pop(key, None)
            else:
                quotas[key] = _checked(key, value, _IP_RATES if IP in entity else _RATES)
        if validate_only:
            return
        await self._store.put(f"/config/{path}", znodes.encode_config(quotas))
        self._on_changed(path)


def _entity_of(path: str) -> Entity:
    nodes = path.split("/")
    return {_KINDS[kind]: entity_name(name) for kind, name in zip(nodes[::2], nodes[1::2], strict=True)}


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        if not kind:
            raise _invalid("Unexpected empty filter component entity type")
        if kind not in (USER, CLIENT, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        if kinds.count(kind) > 1:
            raise _invalid(f"Duplicate {kind.removesuffix('-id')} filter component entity type")
    if IP in kinds and len(kinds) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used with "
            "user or clientId filter component."
        )


async def _path_of(entity: Mapping[str, str | None]) -> str:
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    nodes = {kind: node_name(name) for kind, name in entity.items()}
    if IP not in nodes:
        if USER not in nodes:
            return f"clients/{nodes[CLIENT]}"
        return f"users/{nodes[USER]}" + (f"/clients/{nodes[CLIENT]}" if CLIENT in nodes else "")
    if len(nodes) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
        )
    host = entity[IP]
    try:
        if host is not None:
            await get_running_loop().getaddrinfo(host, None)
    except (socket.gaierror, UnicodeError) as error:
        raise _invalid(f"{host} is not a valid IP or resolvable host.") from error
    return f"ips/{nodes[IP]}"


def _checked(key: str, value: float, known: Mapping[str, type]) -> str:
    """Validate a quota, and format it as Kafka stores it. Raises KafkaError if the quota is invalid."""
    if key not in known:
        raise _invalid(f"Invalid configuration key {key}")
    if known[key] is float:
        return str(value)
    whole = int(value + _EPSILON) if abs(value) < 2**63 else 0
    kind = "INT" if known is _IP_RATES else "LONG"
    if abs(whole - value) > _EPSILON or (kind == "INT" and abs(whole) > _INT_MAX):
        raise _invalid(f"Configuration {key} must be a {kind} value")
    return str(whole)


def _invalid(problem: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, problem)
