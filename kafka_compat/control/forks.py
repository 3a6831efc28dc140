"""Forks of topics, over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_compat.control.topic_fork import fork_topic
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.http.routes import Answer, BadCall, Call, Route

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.broker.services import BrokerServices
    from kafka_compat.groups.coordinator import GroupCoordinator

_NOT_FOUND = 404
_CONFLICT = 409
_UNAVAILABLE = 503
_STATUS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _NOT_FOUND,
    ErrorCode.TOPIC_ALREADY_EXISTS: _CONFLICT,
    ErrorCode.KAFKA_STORAGE_ERROR: _UNAVAILABLE,
}


class Forks:
    """The route; it answers when the fork can be used, and would survive a kill of the broker."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = brokers

    def routes(self, prefix: str) -> list[Route]:
        """What is served."""
        return [
            Route(
                "POST",
                prefix + "/topics/{topic}/fork",
                self._fork,
                "make a second topic that holds what this one holds now, without a copy of its records",
                {
                    "name": "string: of the new topic",
                    "groups": "true, or an array of strings: groups that get the same positions there",
                },
            )
        ]

    async def _fork(self, call: Call) -> Answer:
        began_s = time.perf_counter()
        source, name = call.path["topic"], call.body.get("name")
        if not isinstance(name, str):
            raise BadCall(f"name={name!r}: expected the name of a topic")
        wanted = _groups(call)
        services = [each.services for each in self._brokers]
        groups: list[str] = []

        async def then() -> None:
            if wanted != []:
                groups.extend(await copy_positions(services, source, name, wanted))

        try:
            created = await fork_topic(services, source, name, then)
        except KafkaError as error:
            status = _STATUS.get(error.code, 400)
            raise BadCall(f"{error.code.name} {error.message or ''}".strip(), status) from None
        return {
            "name": name,
            "partitions": len(created.partitions),
            "groups": sorted(groups),
            "took_ms": round((time.perf_counter() - began_s) * 1000, 3),
        }


def _groups(call: Call) -> list[str] | None:
    """None for all."""
    given = call.body.get("groups", [])
    if given is True:
        return None
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return given
    raise BadCall(f"groups={given!r}: expected true, or an array of their names")


async def copy_positions(
    brokers: Sequence[BrokerServices], source: str, name: str, wanted: list[str] | None
) -> list[str]:
    """Give groups (None: all) the positions in the topic `name` that they have in `source`: the groups of
    these brokers that have any. KafkaError.
    """
    copied: list[str] = []
    for broker in brokers:
        groups = broker.coordinators.groups.made
        if groups is not None:
            copied += await _copy_positions(groups, source, name, wanted)
    return copied


async def _copy_positions(
    groups: GroupCoordinator, source: str, name: str, wanted: list[str] | None
) -> list[str]:
    if groups.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The groups are not known yet.")
    stored: dict[str, asyncio.Future[ErrorCode]] = {}

    def outcome(group: str) -> asyncio.Future[ErrorCode]:
        return stored.setdefault(group, asyncio.get_running_loop().create_future())

    copied = groups.copy_offsets(source, name, wanted, lambda group, error: outcome(group).set_result(error))
    for group in copied:
        error = await outcome(group)
        if error:
            raise KafkaError(error, f"The positions of group {group} cannot be stored.")
    return copied
