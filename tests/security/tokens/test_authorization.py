"""Creating and describing delegation tokens of other users needs the authorizer's permission. The owner, the
requester, and renewers of a token may describe it without permission."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_compat.broker import standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal
from tests.conformance.wire import Plain
from tests.security.logins import Login
from tests.security.tokens import world
from tests.security.tokens.world import PASSWORDS, Place
from tests.support.servers import Server
from tests.support.waiting import until

Asked = tuple[str, Operation, ResourceType, str]


class Rules:
    """An authorizer that allows the operations in `allowed`, and records its calls."""

    def __init__(self) -> None:
        self.allowed: set[Asked] = set()
        self.asked: list[Asked] = []

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logged: bool = True,
    ) -> bool:
        assert host == "127.0.0.1"
        assert logged
        asked = (principal.name, operation, resource_type, name)
        if resource_type in (ResourceType.USER, ResourceType.DELEGATION_TOKEN):
            self.asked.append(asked)
            return asked in self.allowed
        return True

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return True

    def questions(self) -> list[Asked]:
        """Return and clear the recorded calls."""
        asked, self.asked = self.asked, []
        return asked


class Room(NamedTuple):
    """A broker in the test process, and its authorizer."""

    place: Place
    rules: Rules


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    settings = {**world.settings(0, 0), "log.dirs": str(tmp_path / "logs"), "broker.id": "1"}
    broker = standalone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    server = Server(tmp_path / "server", port=broker.addresses["PLAINTEXT"][1])
    place = Place(server, broker.addresses["CLIENT"][1])
    await asyncio.to_thread(place.make_users)
    rules = Rules()
    broker.services.authorizer = rules
    yield Room(place, rules)
    await broker.stop()


async def as_user(room: Room, name: str) -> Login:
    """Wait until the broker has the credentials of all users, and log in."""
    await until(lambda: asyncio.to_thread(room.place.knows_users))
    assert name in PASSWORDS
    return await asyncio.to_thread(room.place.login, name)


async def create(login: Login, owner: str | None = None, renewers: tuple[str, ...] = ()) -> Plain:
    request: Plain = {"renewers": [{"principal_type": "User", "principal_name": each} for each in renewers]}
    if owner is not None:
        request |= {"owner_principal_type": "User", "owner_principal_name": owner}
    return await asyncio.to_thread(world.create, login, request)


async def seen(login: Login, *owners: str) -> set[str]:
    return {token["token_id"] for token in await asyncio.to_thread(world.described, login, *owners)}


async def test_creating_tokens_for_others_needs_permission(room: Room) -> None:
    login = await as_user(room, "alice")
    with login.connection:
        assert (await create(login))["error_code"] == 0
        assert (await create(login, "alice"))["error_code"] == 0
        assert room.rules.questions() == []
        refused = await create(login, "bob")
        assert refused["error_code"] == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused["principal_name"], refused["token_requester_principal_name"]) == ("bob", "alice")
        question = ("alice", Operation.CREATE_TOKENS, ResourceType.USER, "User:bob")
        assert room.rules.questions() == [question]
        room.rules.allowed.add(question)
        made = await create(login, "bob")
        assert made["error_code"] == 0
        assert await seen(login, "bob") == {made["token_id"]}


async def test_describing_tokens_of_others_needs_permission(room: Room) -> None:
    alice, bob, carol = [await as_user(room, name) for name in ("alice", "bob", "carol")]
    with alice.connection, bob.connection, carol.connection:
        first = (await create(alice))["token_id"]
        second = (await create(alice, renewers=("carol",)))["token_id"]
        assert await seen(alice) == {first, second}
        assert room.rules.questions() == []
        assert await seen(carol, "alice") == {second}
        token = ("carol", Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, first)
        user = ("carol", Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:alice")
        assert room.rules.questions() == [token, user]
        assert await seen(bob) == set()
        room.rules.allowed.add(("bob", Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, first))
        assert await seen(bob) == {first}
        room.rules.allowed.add(("bob", Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:alice"))
        assert await seen(bob) == await seen(bob, "alice") == {first, second}
        assert await seen(bob, "bob") == set()
        request: Plain = {"owners": []}
        room.rules.questions()
        answer = await asyncio.to_thread(bob.connection.ask, ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, request)
        assert answer["tokens"] == []
        assert room.rules.questions() == []
