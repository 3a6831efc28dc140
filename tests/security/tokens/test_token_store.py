"""Delegation token changes in the metadata store reach all brokers, and no concurrent change is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from kafka_compat.cluster.shared_store import CurrentSession
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.coordination.store.metadata_store import MetadataStore, Watch
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.security.principal import Principal, TokenHolder
from kafka_compat.security.scram_credential import MECHANISMS
from kafka_compat.security.tokens import delegation_token
from kafka_compat.security.tokens import delegation_token as model
from kafka_compat.security.tokens.delegation_token import Terms
from kafka_compat.security.tokens.keeper import Issued, Keeper
from kafka_compat.tasks import Tasks
from tests.cluster.embedded import until
from tests.coordination.losing_answers import LosingAnswers

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
TERMS = Terms(100_000, 10_000)


class Brokers:
    """Token keepers on one metadata store, each with its own session, and a manual clock."""

    def __init__(self, directory: Path) -> None:
        self.tree = EmbeddedMetadataStore(str(directory / "journal"))
        self.now_ms = 1_000_000
        self.tasks = Tasks()

    async def keeper(self, session: MetadataStore | None = None) -> Keeper:
        store = session or self.tree.connect()
        keeper = Keeper(store, "key", TERMS, self.tasks, lambda: self.now_ms)
        await keeper.start()
        return keeper


@pytest.fixture
async def brokers(tmp_path: Path) -> AsyncIterator[Brokers]:
    found = Brokers(tmp_path)
    yield found
    await found.tasks.close()
    await found.tree.close()


def ids(keeper: Keeper) -> dict[str, int]:
    """The expiry time of each token, by token id."""
    return {issued.token.token_id: issued.token.expires_ms for issued in keeper.issued()}


def knows(keeper: Keeper, token_id: str) -> bool:
    return token_id in ids(keeper)


def ends(keeper: Keeper, issued: Issued, at_ms: int) -> bool:
    return ids(keeper)[issued.token.token_id] == at_ms


async def create(keeper: Keeper, lifetime_ms: int = -1) -> Issued:
    return await keeper.create(ALICE, ALICE, (BOB,), lifetime_ms)


async def test_changes_on_one_broker_reach_other_brokers(brokers: Brokers) -> None:
    one, other = await brokers.keeper(), await brokers.keeper()
    token, secret = await create(one)
    await until(lambda: ids(other) == ids(one))
    brokers.now_ms += 5000
    ends_ms = await other.renew(BOB, secret, -1)
    assert ends_ms == brokers.now_ms + TERMS.expiry_ms
    await until(lambda: ids(one) == {token.token_id: ends_ms})
    for mechanism in MECHANISMS:
        found = one.find(token.token_id, mechanism)
        assert found is not None
        assert found.owner == ALICE
        assert isinstance(found.owner, TokenHolder)
        assert found.expires_ms == ends_ms
    await other.expire(ALICE, secret, -1)
    await until(lambda: not ids(one))
    assert one.find(token.token_id, "SCRAM-SHA-256") is None
    late = await brokers.keeper()
    assert not ids(late)


async def test_a_token_expired_by_another_broker_does_not_reappear(brokers: Brokers) -> None:
    """Another broker renews the token before it has received the notice of the expiry."""
    one, other = await brokers.keeper(), await brokers.keeper()
    for attempt in range(20):
        token, secret = await create(one)
        await until(partial(knows, other, token.token_id))
        outcomes = await asyncio.gather(
            one.expire(ALICE, secret, -1), other.renew(ALICE, secret, attempt), return_exceptions=True
        )
        renewed = outcomes[1]
        assert isinstance(renewed, int) or (
            isinstance(renewed, KafkaError) and renewed.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        )
        await until(lambda: not ids(one) and not ids(other))
        reader = brokers.tree.connect()
        assert await reader.children(delegation_token.TOKENS) == []
        await reader.close()


class Deaf(CurrentSession):
    """A session that delays notices until `hears` is set."""

    def __init__(self, session: EmbeddedSession) -> None:
        super().__init__(session)
        self.hears = asyncio.Event()
        self.hears.set()

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        if path == delegation_token.CHANGES:
            await self.hears.wait()
        return await super().children(path, watch)


async def test_a_broker_with_unread_notifications_uses_the_token_in_the_store(brokers: Brokers) -> None:
    """It does not renew a token that expired on another broker, and renews one whose expiry another broker
    changed.
    """
    session = Deaf(brokers.tree.connect())
    one, late = await brokers.keeper(), await brokers.keeper(session)
    short, long = await create(one), await create(one)
    await until(lambda: len(ids(late)) == 2)
    await one.expire(ALICE, short.hmac, 3)
    session.hears.clear()
    await until(partial(ends, late, short, brokers.now_ms + 3))
    await one.expire(ALICE, short.hmac, 0)
    await one.expire(ALICE, long.hmac, 20)
    brokers.now_ms += 1
    assert ids(late)[short.token.token_id] > brokers.now_ms, "the notice was not delayed"
    with pytest.raises(KafkaError) as refused:
        await late.renew(ALICE, short.hmac, -1)
    assert refused.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert await late.renew(ALICE, long.hmac, 7) == brokers.now_ms + 7
    session.hears.set()
    await until(lambda: ids(late) == ids(one))


async def test_concurrent_changes_are_all_applied(brokers: Brokers) -> None:
    keepers = [await brokers.keeper() for _ in range(3)]
    token, secret = await create(keepers[0])
    await until(lambda: all(token.token_id in ids(keeper) for keeper in keepers))
    periods_ms = range(1, 31)
    ends_ms = await asyncio.gather(
        *(keepers[period % 3].renew(ALICE, secret, period) for period in periods_ms)
    )
    assert sorted(ends_ms) == [brokers.now_ms + period for period in periods_ms]
    await until(lambda: ids(keepers[0]) == ids(keepers[1]) == ids(keepers[2]))


async def test_changes_missed_during_a_lost_session_are_read_by_a_new_session(brokers: Brokers) -> None:
    one = await brokers.keeper()
    current = CurrentSession(brokers.tree.connect())
    following = Keeper(current, "key", TERMS, brokers.tasks, lambda: brokers.now_ms)
    await following.start()
    kept, gone = await create(one), await create(one)
    await until(lambda: len(ids(following)) == 2)
    session = current.session
    assert isinstance(session, EmbeddedSession)
    await session.expire()
    await one.expire(ALICE, gone.hmac, -1)
    added = await create(one)
    current.session = brokers.tree.connect()
    await until(lambda: ids(following).keys() == {kept.token.token_id, added.token.token_id})
    assert await following.renew(ALICE, added.hmac, 5) == brokers.now_ms + 5


async def test_only_the_controller_deletes_expired_tokens(brokers: Brokers) -> None:
    one, other = await brokers.keeper(), await brokers.keeper()
    short, long = await create(one, 10), await create(one)
    await until(lambda: len(ids(other)) == 2)
    brokers.now_ms += 11
    is_controller = False
    asked = asyncio.Event()

    def has_the_office() -> bool:
        asked.set()
        return is_controller

    removing = asyncio.create_task(other.keep_removing(has_the_office, 0.001))
    await asked.wait()
    assert len(ids(other)) == 2
    for keeper in (one, other):
        with pytest.raises(KafkaError) as refused:
            await keeper.renew(ALICE, short.hmac, 5)
        assert refused.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED
    is_controller = True
    await until(lambda: ids(one).keys() == ids(other).keys() == {long.token.token_id})
    removing.cancel()


async def test_startup_does_not_wait_for_derived_credentials(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each derivation takes milliseconds. A token that is needed earlier is derived immediately."""
    one = await brokers.keeper()
    token, _ = await create(one)
    real = model.credential_of
    go_on = threading.Event()
    loop_thread = threading.get_ident()

    def slow(secret: bytes, mechanism: str) -> object:
        if threading.get_ident() != loop_thread:
            assert go_on.wait(10)
        return real(secret, mechanism)

    monkeypatch.setattr(model, "credential_of", slow)
    try:
        late = await brokers.keeper()
        found = late.find(token.token_id, "SCRAM-SHA-512")
        assert found is not None
        assert late.find(token.token_id, "SCRAM-SHA-512") == found, "the credential was derived again"
    finally:
        go_on.set()
    # Only the tasks that follow the notices of each keeper remain.
    await until(lambda: len(brokers.tasks) == 2)


async def test_a_token_too_large_for_zookeeper_is_rejected(brokers: Brokers) -> None:
    keeper = await brokers.keeper()
    for count, fits in ((10_000, True), (40_000, False)):
        renewers = tuple(Principal("User", f"{number:020}") for number in range(count))
        try:
            await keeper.create(ALICE, ALICE, renewers, -1)
            assert fits
        except KafkaError as error:
            assert error.code is ErrorCode.INVALID_REQUEST
            assert not fits
    assert len(ids(keeper)) == 1


async def test_repr_does_not_contain_the_secret(brokers: Brokers) -> None:
    issued = await create(await brokers.keeper())
    assert repr(issued.hmac) not in repr(issued)
    assert issued.token.token_id in repr(issued)


async def test_a_malformed_node_affects_only_its_token_until_repaired(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    one = await brokers.keeper()
    token, secret = await create(one)
    writer = brokers.tree.connect()
    notice = f"{delegation_token.CHANGES}/{delegation_token.CHANGE_PREFIX}"
    path = delegation_token.path_of(token.token_id)
    data, _ = await writer.get(path)

    async def write(new: bytes | None) -> None:
        await writer.set(path, new)
        await writer.create(notice, token.token_id.encode(), sequential=True)

    await write(b"{}")
    await until(lambda: not ids(one))
    assert f"{path}: version is missing" in caplog.text
    assert one.find(token.token_id, "SCRAM-SHA-256") is None
    await write(data)
    await until(lambda: bool(ids(one)))
    assert await one.renew(ALICE, secret, 5) == brokers.now_ms + 5
    await writer.create(notice, b"a/b", sequential=True)
    other, _ = await create(one)
    await until(lambda: "is not a token ID" in caplog.text)
    assert other.token_id in ids(one)


@pytest.mark.parametrize("lost", [[True], [False], [True, False, True]], ids=["answer", "request", "both"])
async def test_changes_succeed_even_if_requests_or_responses_are_lost(
    brokers: Brokers, lost: list[bool]
) -> None:
    session = LosingAnswers(brokers.tree.connect())
    one, other = await brokers.keeper(session), await brokers.keeper()
    session.lost = list(lost)
    token, secret = await create(one)
    await until(lambda: ids(other) == ids(one) == {token.token_id: brokers.now_ms + TERMS.expiry_ms})
    brokers.now_ms += 5000
    session.lost = list(lost)
    ends_ms = await one.renew(BOB, secret, -1)
    assert ends_ms == brokers.now_ms + TERMS.expiry_ms
    await until(lambda: ids(other) == ids(one) == {token.token_id: ends_ms})
    session.lost = list(lost)
    await one.expire(ALICE, secret, -1)
    await until(lambda: ids(other) == ids(one) == {})
