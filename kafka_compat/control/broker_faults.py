"""Brokers that stand still, or do not reach each other, over HTTP: the routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.control.links import Links
from kafka_compat.http.routes import Answer, BadCall, Call, Route, integer, natural

if TYPE_CHECKING:
    from kafka_compat.broker import Broker

_NOT_FOUND = 404
_CONFLICT = 409


class BrokerFaults:
    """All return how the broker is then."""

    def __init__(self, brokers: Sequence[Broker], links: Links) -> None:
        self._brokers = brokers
        self._links = links

    def routes(self, prefix: str) -> list[Route]:
        """What is served."""
        path = prefix + "/brokers"
        one = path + "/{broker}"
        return [
            Route("GET", path, self._all, "the brokers, and what they do not reach"),
            Route("POST", one + "/pause", self._pause, "have a broker stand still: it answers nobody"),
            Route("POST", one + "/resume", self._resume, "have it go on"),
            Route(
                "POST",
                one + "/cut",
                self._cut,
                "have a broker and another, or what coordinates them, not reach each other",
                {
                    "from": "integer: the other broker",
                    "coordination": "boolean: ZooKeeper's part: the session expires after "
                    "zookeeper.session.timeout.ms",
                },
            ),
            Route("POST", one + "/mend", self._mend, "have it reach everything again"),
            Route(
                "POST", one + "/expire", self._expire, "have its session with what coordinates brokers end"
            ),
        ]

    async def _all(self, call: Call) -> Answer:
        return [self._shown(broker) for broker in self._brokers]

    async def _pause(self, call: Call) -> Answer:
        broker = self._found(call)
        self._links.pause(broker)
        return self._shown(broker)

    async def _resume(self, call: Call) -> Answer:
        broker = self._found(call)
        self._links.resume(broker.broker_id)
        return self._shown(broker)

    async def _cut(self, call: Call) -> Answer:
        broker = self._found(call)
        if ("from" in call.body) == (call.body.get("coordination") is True):
            raise BadCall("expected one of from, the id of another broker, and coordination=true")
        if "from" not in call.body:
            self._session(broker)
            self._links.cut_coordination(broker.broker_id)
            return self._shown(broker)
        other = integer(call, "from", least=0)
        if other == broker.broker_id or other not in [each.broker_id for each in self._brokers]:
            raise BadCall(f"from={other}: expected another of {self._known()}", _NOT_FOUND)
        self._links.cut(broker.broker_id, other)
        return self._shown(broker)

    async def _mend(self, call: Call) -> Answer:
        broker = self._found(call)
        self._links.mend(broker.broker_id)
        return self._shown(broker)

    async def _expire(self, call: Call) -> Answer:
        broker = self._found(call)
        self._session(broker)
        await self._links.coordination[broker.broker_id].expire()
        return self._shown(broker)

    def _session(self, broker: Broker) -> None:
        if broker.broker_id not in self._links.coordination:
            raise BadCall(
                f"broker {broker.broker_id} has no session that can be ended here: expected one of several "
                "brokers of a process (--brokers)",
                _CONFLICT,
            )

    def _found(self, call: Call) -> Broker:
        broker_id = natural(call.path["broker"], "the broker")
        for broker in self._brokers:
            if broker.broker_id == broker_id:
                return broker
        raise BadCall(f"there is no broker {broker_id} here: expected one of {self._known()}", _NOT_FOUND)

    def _known(self) -> str:
        return ", ".join(str(broker.broker_id) for broker in self._brokers)

    def _shown(self, broker: Broker) -> dict[str, Any]:
        broker_id = broker.broker_id
        return {
            "broker": broker_id,
            "is_paused": broker_id in self._links.paused,
            "cut_from": self._cut_from(broker_id),
            "is_cut_from_coordination": broker_id in self._links.cut_off,
        }

    def _cut_from(self, broker_id: int) -> list[int]:
        return sorted(other for pair in self._links.cuts if broker_id in pair for other in pair - {broker_id})
