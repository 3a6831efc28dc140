"""ACL changes in the metadata store reach all brokers, despite races, lost responses and lost sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kafka_compat.coordination.nodes.following import NOTICE_MAX_AGE_MS
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.coordination.store.metadata_store import MetadataStoreError
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.long_work import LongWork
from kafka_compat.security.acls import bindings as acls
from kafka_compat.security.acls.bindings import Binding, Filter, Pattern, PatternType, Permission, path_of
from kafka_compat.security.acls.keeper import WRITES_MAX, Deleted, Keeper
from kafka_compat.security.acls.rules import Rules, Verdict
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal
from kafka_compat.tasks import Tasks
from tests.cluster.embedded import until
from tests.coordination.losing_answers import LosingAnswers

ANN = Principal("User", "ann")
ORDERS = Pattern(ResourceType.TOPIC, "orders", PatternType.LITERAL)
PREFIX = Pattern(ResourceType.TOPIC, "or", PatternType.PREFIXED)
READ = acls.Entry("User:ann", "*", Operation.READ, Permission.ALLOW)
EVERY_ENTRY = acls.EntryFilter(None, None, Operation.ANY, Permission.ANY)
EVERYTHING = Filter(acls.PatternFilter(ResourceType.ANY, None, PatternType.ANY), EVERY_ENTRY)


class Member:
    """The ACLs of one broker."""

    def __init__(self, tree: EmbeddedMetadataStore, now_ms: Callable[[], int]) -> None:
        self.tree = tree
        self.session: EmbeddedSession = tree.connect()
        self.store = LosingAnswers(self.session)
        self.rules = Rules()
        self.tasks = Tasks()
        self.keeper = Keeper(self.store, self.rules, self.tasks, now_ms)

    def verdict(self, name: str = "orders", operation: Operation = Operation.READ) -> Verdict:
        return self.rules.decide(ANN, "10.0.0.1", operation, ResourceType.TOPIC, name)

    def known(self) -> set[Binding]:
        return {
            Binding(pattern, entry)
            for pattern, entries in self.keeper.candidates(EVERYTHING)
            for entry in entries
        }

    async def create(self, *bindings: Binding) -> None:
        assert await self.keeper.create(bindings) == [None] * len(bindings)

    async def delete(self, *filters: Filter) -> list[list[Deleted]]:
        turn = await LongWork(asyncio.get_running_loop()).begin()
        return await self.keeper.delete(filters or (EVERYTHING,), turn)

    async def expire(self) -> None:
        await self.session.expire()

    def reconnect(self) -> None:
        self.session = self.store.session = self.tree.connect()


class World:
    """The ACLs of several brokers on one metadata store, with a common clock."""

    def __init__(self, path: Path) -> None:
        self.now_ms = 1_000_000
        self.tree = EmbeddedMetadataStore(str(path / "tree.journal"), lambda: self.now_ms)
        self.members: list[Member] = []

    async def member(self) -> Member:
        member = Member(self.tree, lambda: self.now_ms)
        self.members.append(member)
        await member.keeper.start()
        return member

    async def clear_notices(self) -> None:
        session = self.tree.connect()
        for folder in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
            for name in await session.children(folder):
                await session.delete(f"{folder}/{name}")

    async def close(self) -> None:
        for member in self.members:
            await member.tasks.close()
        await self.tree.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.close()


def filter_for(pattern: Pattern) -> Filter:
    return Filter(acls.PatternFilter(*pattern), EVERY_ENTRY)


async def test_changes_apply_immediately_on_their_broker_and_shortly_after_on_other_brokers(
    world: World,
) -> None:
    one, other = await world.member(), await world.member()
    assert one.verdict() is Verdict.CLOSED
    await one.create(Binding(PREFIX, READ))
    assert one.verdict() is Verdict.ALLOWED
    await until(lambda: other.verdict() is Verdict.ALLOWED)
    deny = READ._replace(permission=Permission.DENY)
    await other.create(Binding(ORDERS, deny))
    assert other.verdict() is Verdict.DENIED
    await until(lambda: one.verdict() is Verdict.DENIED)
    ((gone,),) = [item for item in await one.delete(filter_for(ORDERS))]
    assert gone == Deleted(Binding(ORDERS, deny), None)
    assert one.verdict() is Verdict.ALLOWED
    await until(lambda: other.verdict() is Verdict.ALLOWED)
    late = await world.member()
    assert late.known() == {Binding(PREFIX, READ)}


async def test_concurrent_changes_to_the_same_acls_are_all_kept(world: World) -> None:
    members = [await world.member() for _ in range(3)]
    wanted = {
        Binding(ORDERS, READ._replace(host=f"10.0.{number}.{round_}"))
        for number in range(3)
        for round_ in range(4)
    }

    async def add(number: int) -> None:
        for round_ in range(4):
            await members[number].create(Binding(ORDERS, READ._replace(host=f"10.0.{number}.{round_}")))

    await asyncio.gather(*map(add, range(3)))
    for member in members:
        await until(lambda member=member: member.known() == wanted)  # type: ignore[misc]
    outcomes = await asyncio.gather(*(member.delete(filter_for(ORDERS)) for member in members))
    taken = [item.binding for ((*found,),) in outcomes for item in found if item.error is None]
    assert set(taken) == wanted
    for member in members:
        await until(lambda member=member: not member.known())  # type: ignore[misc]


async def test_a_filter_for_a_single_pattern_finds_acls_that_the_broker_does_not_know_yet(
    world: World,
) -> None:
    member = await world.member()
    other = await world.member()
    await other.tasks.close()
    await member.create(Binding(ORDERS, READ))
    assert not other.known()
    assert await other.delete(filter_for(ORDERS)) == [[Deleted(Binding(ORDERS, READ), None)]]


async def test_a_broker_that_missed_a_notification_does_not_undo_the_change(world: World) -> None:
    """Each change checks the version of the node, even if the broker's copy of the ACLs would not change."""
    member, deaf = await world.member(), await world.member()
    await member.create(Binding(ORDERS, READ))
    await until(lambda: len(deaf.known()) == 1)
    await deaf.tasks.close()
    write = READ._replace(operation=Operation.WRITE)
    await member.create(Binding(ORDERS, write))
    only_read = filter_for(ORDERS)._replace(entry=EVERY_ENTRY._replace(operation=Operation.READ))
    assert await deaf.delete(only_read) == [[Deleted(Binding(ORDERS, READ), None)]]
    assert deaf.known() == {Binding(ORDERS, write)}
    await member.delete()
    await deaf.create(Binding(ORDERS, write))
    await until(lambda: member.known() == {Binding(ORDERS, write)})


@pytest.mark.parametrize("lost", [[True], [False], [False, True], [True, False, True]])
async def test_changes_succeed_even_if_requests_or_responses_are_lost(world: World, lost: list[bool]) -> None:
    member, other = await world.member(), await world.member()
    member.store.lost = list(lost)
    await member.create(Binding(ORDERS, READ))
    await until(lambda: other.verdict() is Verdict.ALLOWED)
    member.store.lost = list(lost)
    assert await member.delete() == [[Deleted(Binding(ORDERS, READ), None)]]
    await until(lambda: other.verdict() is Verdict.CLOSED)
    assert member.verdict() is Verdict.CLOSED


async def test_a_change_fails_if_the_store_never_responds(world: World) -> None:
    member = await world.member()
    member.store.lost = [False] * WRITES_MAX
    (error,) = await member.keeper.create([Binding(ORDERS, READ)])
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert member.verdict() is Verdict.CLOSED
    await member.expire()
    (error,) = await member.keeper.create([Binding(ORDERS, READ)])
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.REQUEST_TIMED_OUT


async def test_all_acls_are_read_again_after_a_session_is_lost(world: World) -> None:
    """Changes are found even if their notices have been deleted."""
    away, other = await world.member(), await world.member()
    gone = Pattern(ResourceType.GROUP, "gone", PatternType.LITERAL)
    await other.create(Binding(gone, READ), Binding(ORDERS, READ))
    await until(lambda: len(away.known()) == 2)
    await away.expire()
    await other.delete(filter_for(gone))
    await other.create(Binding(PREFIX, READ))
    await other.create(Binding(ORDERS, READ._replace(operation=Operation.WRITE)))
    await world.clear_notices()
    assert len(away.known()) == 2, "the ACLs changed without a session"
    away.reconnect()
    await until(lambda: away.known() == other.known())
    await other.create(Binding(PREFIX, READ._replace(operation=Operation.ALTER)))
    await until(lambda: away.known() == other.known())


async def test_old_notifications_are_deleted(world: World) -> None:
    one, other = await world.member(), await world.member()
    for number in range(5):
        await one.create(Binding(ORDERS, READ._replace(host=str(number))))
    await until(lambda: len(other.known()) == 5)
    world.now_ms += NOTICE_MAX_AGE_MS + 1
    await one.create(Binding(ORDERS, READ))
    session = world.tree.connect()

    async def is_cleared() -> bool:
        return len(await session.children("/kafka-acl-changes")) == 1

    await until(is_cleared)
    assert len(one.known()) == 6


MALFORMED = (
    b"no JSON",
    b'{"version":2,"acls":[]}',
    b'{"version":1}',
    b'{"version":1,"acls":[{"principal":"ann","permissionType":"Deny","operation":"Read","host":"*"}]}',
    b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Maybe","operation":"Read","host":"*"}]}',
    b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Deny","operation":"Any","host":"*"}]}',
)


@pytest.mark.parametrize("data", MALFORMED)
async def test_an_unreadable_node_denies_all_access_until_it_is_repaired(
    world: World, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    before = await world.member()
    await before.create(Binding(ORDERS, READ), Binding(PREFIX, READ))
    session = world.tree.connect()
    whole, _ = await session.get(path_of(ORDERS))
    await session.set(path_of(ORDERS), data)
    late = await world.member()
    told = [item for item in caplog.records if item.levelno == logging.ERROR]
    assert {path_of(ORDERS) in item.getMessage() for item in told} == {True}
    assert len(told) <= 2, "more than one error of each broker"
    assert late.verdict() is Verdict.DENIED
    assert late.verdict("orders-2") is Verdict.ALLOWED
    assert before.verdict() is Verdict.ALLOWED, "the last known ACLs are not in effect"
    assert late.known() == {Binding(PREFIX, READ)}
    (error,) = await late.keeper.create([Binding(ORDERS, READ)])
    assert isinstance(error, KafkaError)
    assert path_of(ORDERS) in error.message
    await session.set(path_of(ORDERS), b"broken again")
    await session.set(path_of(ORDERS), whole)
    await until(lambda: late.verdict() is Verdict.ALLOWED)


@pytest.mark.parametrize("data", [None, b"", b"orders", b"NOTHING:orders", b"TOPIC:", b"TOPIC:a/b", b"\xff"])
async def test_an_unreadable_notification_does_not_block_later_notifications(
    world: World, data: bytes | None
) -> None:
    one, other = await world.member(), await world.member()
    session = world.tree.connect()
    for folder in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
        await session.create(f"{folder}/acl_changes_", data, sequential=True)
        await session.create(f"{folder}/something else")
    await one.create(Binding(ORDERS, READ), Binding(PREFIX, READ))
    await until(lambda: other.known() == one.known())


async def test_unknown_paths_are_ignored(world: World) -> None:
    session = world.tree.connect()
    await session.ensure("/kafka-acl/Spaceship/one")
    member = await world.member()
    await member.create(Binding(ORDERS, READ))
    assert member.known() == {Binding(ORDERS, READ)}


async def test_a_change_and_its_notification_are_written_in_one_transaction(world: World) -> None:
    """No notice is written without its change, and no change without its notice."""
    member = await world.member()
    session = world.tree.connect()
    await session.delete_tree("/kafka-acl-changes")
    (error,) = await member.keeper.create([Binding(ORDERS, READ)])
    assert error is not None
    assert await session.exists(path_of(ORDERS)) is None
    await session.ensure("/kafka-acl-changes")
    await member.create(Binding(ORDERS, READ))
    assert len(await session.children("/kafka-acl-changes")) == 1
    await member.create(Binding(ORDERS, READ))
    assert len(await session.children("/kafka-acl-changes")) == 1, "a notice without a change"
    with pytest.raises(MetadataStoreError):
        await session.create(path_of(ORDERS))
