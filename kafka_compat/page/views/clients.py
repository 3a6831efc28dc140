"""The connected clients of this process: by client id, software, user and address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.long_work import Steps, batched
from kafka_compat.page.listing import listed
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.network.server import Server
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_COLUMNS: Final = {
    "client": "client_id",
    "software": "software",
    "user": "principal",
    "host": "host",
    "broker": "broker",
    "connections": "connections",
}
_UNKNOWN: Final = "unknown"


async def see(visit: Visit) -> Data:
    """Connections that have said the same of themselves are one row."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    rows = await visit.finish(_rows(visit.observed.servers()))
    total = sum(row["connections"] for row in rows)
    return {
        "connections": total,
        "clients": listed(rows, visit.query, _COLUMNS, "-connections", "client_id"),
    }


def _rows(servers: Sequence[tuple[int, Server]]) -> Steps[list[dict[str, Any]]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for broker_id, server in servers:
        for some in batched(list(server.connections)):
            for one in some:
                session = one.session
                told = session.software_client_id, session.software_name, session.software_version
                key = (
                    broker_id,
                    one.listener_name,
                    told,
                    one.principal,
                    one.peer_host,
                )
                row = found.get(key)
                if row is None:
                    client_id, name, version = told
                    found[key] = row = {
                        "client_id": client_id or "",
                        "software": "" if name == _UNKNOWN else name,
                        "version": "" if version == _UNKNOWN else version,
                        "principal": str(one.principal),
                        "host": one.peer_host,
                        "listener": one.listener_name,
                        "broker": broker_id,
                        "connections": 0,
                    }
                row["connections"] += 1
            yield None
    return list(found.values())
