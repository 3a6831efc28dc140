"""Web console pages for this process: its clients, rejected connections, and log."""

from collections.abc import Sequence
from typing import Any, Final

from kafka_compat.http.routes import BadCall
from kafka_compat.long_work import Steps, batched
from kafka_compat.network.server import Server
from kafka_compat.page.listing import listed
from kafka_compat.page.visit import Data, Visit
from kafka_compat.security.authorizer import Operation

_CLIENT_COLUMNS: Final = {
    "client": "client_id",
    "software": "software",
    "user": "principal",
    "host": "host",
    "broker": "broker",
    "connections": "connections",
}
_UNKNOWN: Final = "unknown"


async def see_clients(visit: Visit) -> Data:
    """Return the connected clients. Connections with the same properties share a row."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    rows = await visit.finish(_rows(visit.observed.servers()))
    total = sum(row["connections"] for row in rows)
    return {
        "connections": total,
        "clients": listed(rows, visit.query, _CLIENT_COLUMNS, "-connections", "client_id"),
    }


def _rows(servers: Sequence[tuple[int, Server]]) -> Steps[list[dict[str, Any]]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for broker_id, server in servers:
        for some in batched(list(server.connections)):
            for one in some:
                session = one.session
                software = session.software_client_id, session.software_name, session.software_version
                key = (broker_id, one.listener_name, software, one.principal, one.peer_host)
                row = found.get(key)
                if row is None:
                    client_id, name, version = software
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


_REFUSAL_COLUMNS: Final = {"last": "last_ms", "host": "host", "times": "times"}


async def see_refused(visit: Visit) -> Data:
    """Return the clients that the brokers of this process have rejected."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    rows = [one._asdict() for one in visit.observed.refusals.last()]
    return {"refused": listed(rows, visit.query, _REFUSAL_COLUMNS, "-last", "reason")}


_LINE_COLUMNS: Final = {"time": "number"}
LEVELS: Final = {"": 0, "INFO": 20, "WARN": 30, "ERROR": 40}


async def see_logs(visit: Visit) -> Data:
    """Return the log lines, newest first. With `level`, return only lines of at least this level."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    level = visit.query.get("level", "")
    if level not in LEVELS:
        raise BadCall(f"level={level}: expected one of {', '.join(filter(None, LEVELS))}")
    rows = [line for line in visit.observed.log.lines() if line["level_number"] >= LEVELS[level]]
    return {
        "level": level,
        "levels": list(LEVELS),
        "lines": listed(rows, visit.query, _LINE_COLUMNS, "-time", "text"),
    }
