"""HTTP routes of the control API for faults: create, list, await and delete rules."""

import random
from typing import Any

from kafka_compat.control.fault import Fault
from kafka_compat.control.hooks import FaultRules
from kafka_compat.control.pulse import TIMEOUT, Pulse
from kafka_compat.control.rule import Rule
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.http.routes import NOT_FOUND, Answer, BadCall, Call, Route, integer, natural
from kafka_compat.protocol.json_form import api_named

_KINDS = ("error", "delay_ms", "drop", "lose_answer", "cut", "corrupt")
_NAMED = ("topic", "group", "transactional_id")
_BODY = {
    "api": "string: only requests of this API, such as Produce or OffsetCommit (default: all)",
    "version": "integer: only this version of the API",
    "client_id": "string: only requests of this client",
    "broker": "integer: only requests to this broker",
    "topic": "string: only requests for this topic",
    "partition": "integer: only requests for this partition (of `topic`); other partitions do not fail",
    "group": "string: only requests for this group",
    "transactional_id": "string: only requests for this transactional ID",
    "skip": "integer: number of matching requests to skip before the first hit",
    "count": "integer: number of requests to hit (default: no limit)",
    "probability": "number: probability that a request is hit, from 0 to 1",
    "seed": "integer: seed for probability: the same seed hits the same requests",
    "error": "string: return this error, such as NOT_LEADER_OR_FOLLOWER, without processing the request",
    "delay_ms": "integer: delay the response by this many milliseconds",
    "drop": "boolean: close the connection without processing the request",
    "lose_answer": "boolean: process the request, and close the connection instead of responding",
    "cut": "boolean: process the request, send half of the response, and close the connection",
    "corrupt": "boolean: process the request, and flip bits of the response; for Fetch, of its records",
}


class FaultRoutes:
    """Routes that create, list, await and delete faults."""

    def __init__(self, rules: FaultRules, pulse: Pulse) -> None:
        self._rules = rules
        self._pulse = pulse

    def routes(self, prefix: str) -> list[Route]:
        path = prefix + "/faults"
        return [
            Route("POST", path, self._make, "add a fault: make requests fail", _BODY),
            Route("GET", path, self._all, "all faults, with their hits"),
            Route("DELETE", path, self._remove_all, "remove all faults"),
            Route("DELETE", path + "/{number}", self._remove, "remove a fault"),
            Route(
                "GET",
                path + "/{number}/await",
                self._await,
                "wait until the fault has hit a number of requests",
                query={"hits": "integer: minimum number of hits", **TIMEOUT},
            ),
        ]

    async def _make(self, call: Call) -> Answer:
        body = call.body
        given = [kind for kind in _KINDS if body.get(kind)]
        if len(given) != 1:
            raise BadCall(f"expected one of {', '.join(_KINDS)}, not {', '.join(given) or 'none'}")
        rule = Rule(
            self._rules.next_number(),
            _fault(call),
            dict(body),
            api=_api(body.get("api")),
            version=integer(call, "version", least=0) if "version" in body else None,
            client_id=_text(call, "client_id"),
            broker=integer(call, "broker", least=0) if "broker" in body else None,
            partition=integer(call, "partition", least=0) if "partition" in body else None,
            named={name: text for name in _NAMED if (text := _text(call, name)) is not None},
            skip=integer(call, "skip", least=0) if "skip" in body else 0,
            count=integer(call, "count", least=1) if "count" in body else None,
            probability=_probability(call),
            corrupts=body.get("corrupt") is True,
            chance=random.Random(integer(call, "seed", least=0) if "seed" in body else None),
        )
        self._rules.rules[rule.number] = rule
        return _shown(rule)

    async def _all(self, call: Call) -> Answer:
        return [_shown(rule) for rule in self._rules.rules.values()]

    async def _remove_all(self, call: Call) -> Answer:
        self._rules.rules.clear()

    async def _remove(self, call: Call) -> Answer:
        rule = self._found(call)
        del self._rules.rules[rule.number]
        return _shown(rule)

    async def _await(self, call: Call) -> Answer:
        rule = self._found(call)
        hits = natural(call.query.get("hits", "1"), "hits")

        def late(timeout_ms: int) -> str:
            return f"fault {rule.number} was hit by {rule.hits} requests, not {hits}, within {timeout_ms} ms"

        return await self._pulse.answer(call, lambda: rule.hits >= hits, lambda: _shown(rule), late)

    def _found(self, call: Call) -> Rule:
        text = call.path["number"]
        rule = self._rules.rules.get(natural(text, "the fault"))
        if rule is None:
            raise BadCall(f"unknown fault {text}", NOT_FOUND)
        return rule


def _shown(rule: Rule) -> dict[str, Any]:
    return {"number": rule.number, "hits": rule.hits, **rule.asked}


def _fault(call: Call) -> Fault:
    body = call.body
    if "error" in body:
        name = body["error"]
        if not isinstance(name, str) or name not in ErrorCode.__members__ or name == "NONE":
            raise BadCall(f"error={name!r}: expected a Kafka error, such as NOT_LEADER_OR_FOLLOWER")
        return Fault(error=KafkaError(ErrorCode[name]))
    if "delay_ms" in body:
        return Fault(delay_ms=integer(call, "delay_ms", least=1))
    if "cut" in body:
        return Fault(mangle=lambda whole: whole[: len(whole) // 2])
    return Fault(is_dropped=body.get("drop") is True, is_lost=body.get("lose_answer") is True)


def _api(name: object) -> int | None:
    if name is None:
        return None
    found = api_named(name) if isinstance(name, str) else None
    if found is None:
        raise BadCall(f"api={name!r}: expected a Kafka API, such as Produce or OffsetCommit")
    return found


def _probability(call: Call) -> float:
    value = call.body.get("probability", 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadCall(f"probability={value!r}: expected a number from 0 to 1")
    return float(value)


def _text(call: Call, name: str) -> str | None:
    value = call.body.get(name)
    if value is not None and not isinstance(value, str):
        raise BadCall(f"{name}={value!r}: expected text")
    return value
