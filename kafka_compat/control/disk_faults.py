"""Disks that fill up, fail or become slow, over HTTP: the routes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.control.faulty_disks import DiskFault, Disks
from kafka_compat.http.routes import Answer, BadCall, Call, Route, integer

if TYPE_CHECKING:
    from kafka_compat.broker import Broker

_NOT_FOUND = 404
_KINDS = ("full", "failed", "slow_ms")
_BODY = {
    "broker": "integer: whose; all without it",
    "log_dir": "string: its path; all without it",
    "full": "boolean: nothing more can be written (ENOSPC), until this is lifted",
    "failed": "boolean: whatever is read or written fails (EIO), and the directory is offline from then on, "
    "until the broker is started again",
    "slow_ms": "integer: how much longer each write and sync takes",
}


class DiskFaults:
    """All return the directories as they are then."""

    def __init__(self, brokers: Sequence[Broker], disks: Disks) -> None:
        self._brokers = brokers
        self._disks = disks

    def routes(self, prefix: str) -> list[Route]:
        """What is served."""
        path = prefix + "/disks"
        return [
            Route("GET", path, self._all, "the log directories, and what is wrong with them"),
            Route("POST", path, self._break, "have disks be full, fail, or be slow from now on", _BODY),
            Route("DELETE", path, self._lift, "have all disks work again, but for what is offline"),
        ]

    async def _all(self, call: Call) -> Answer:
        return [
            {
                "broker": broker.broker_id,
                "log_dir": path,
                "is_offline": path in broker.services.log_dirs.offline,
                **_shown(self._disks.faults.get(path)),
            }
            for broker, path in self._paths()
        ]

    async def _break(self, call: Call) -> Answer:
        body = call.body
        given = [kind for kind in _KINDS if body.get(kind)]
        if len(given) != 1:
            raise BadCall(f"expected one of {', '.join(_KINDS)}, and not {', '.join(given) or 'none'}")
        fault = DiskFault(
            is_full=body.get("full") is True,
            has_failed=body.get("failed") is True,
            slow_ms=integer(call, "slow_ms", least=1) if "slow_ms" in body else 0,
        )
        broker_id = integer(call, "broker", least=0) if "broker" in body else None
        log_dir = body.get("log_dir")
        meant = [
            path
            for broker, path in self._paths()
            if broker_id in (None, broker.broker_id) and log_dir in (None, path)
        ]
        if not meant:
            known = ", ".join(f"{path} of broker {broker.broker_id}" for broker, path in self._paths())
            raise BadCall(f"there is no such log directory: expected one of {known}", _NOT_FOUND)
        self._disks.faults.update(dict.fromkeys(meant, fault))
        return await self._all(call)

    async def _lift(self, call: Call) -> Answer:
        self._disks.faults.clear()
        return await self._all(call)

    def _paths(self) -> Iterator[tuple[Broker, str]]:
        for broker in self._brokers:
            for path in broker.services.log_dirs.directories:
                yield broker, path


def _shown(fault: DiskFault | None) -> dict[str, Any]:
    fault = fault or DiskFault()
    return {"full": fault.is_full, "failed": fault.has_failed, "slow_ms": fault.slow_ms}
