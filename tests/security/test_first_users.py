"""The users file is imported before clients can log in, and only once per cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.errors import StartupError
from kafka_compat.security import first_users
from kafka_compat.security import scram_credential as scram
from kafka_compat.security.scram_credential import Credential

MECHANISM = "SCRAM-SHA-512"
CHANGES = "/config/changes"

credentials = st.builds(Credential, st.binary(), st.binary(), st.binary(), st.integers(4096, 16384))


@given(
    users=st.dictionaries(
        st.text(min_size=1), st.dictionaries(st.sampled_from(sorted(scram.MECHANISMS)), credentials)
    )
)
def test_a_users_file_is_read_back_unchanged(users: dict[str, dict[str, Credential]]) -> None:
    try:
        content = first_users.encode(users)
    except UnicodeEncodeError:
        return
    assert first_users.decode(content) == users


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MetadataStore]:
    embedded = EmbeddedMetadataStore(str(tmp_path / "metadata.journal"))
    session = embedded.connect()
    await session.ensure_all(znodes.PERSISTENT_PATHS)
    yield session
    await session.close()
    await embedded.close()


def write(path: Path, **passwords: str) -> str:
    path.write_bytes(
        first_users.encode(
            {
                user: {MECHANISM: scram.from_password(password, b"salt", 4096, MECHANISM)}
                for user, password in passwords.items()
            }
        )
    )
    return str(path)


async def stored(store: MetadataStore, user: str) -> dict[str, str]:
    path = f"/config/users/{user}"
    return znodes.decode_config(path, (await store.get(path))[0])


async def test_users_are_stored_as_by_kafka(store: MetadataStore, tmp_path: Path) -> None:
    await store.put("/config/users/alice", znodes.encode_config({"producer_byte_rate": "1024"}))
    await first_users.take_over(write(tmp_path / "users", alice="secret", **{"b o": "other"}), store)
    expected = scram.encode(scram.from_password("secret", b"salt", 4096, MECHANISM))
    assert await stored(store, "alice") == {"producer_byte_rate": "1024", MECHANISM: expected}
    assert MECHANISM in await stored(store, "b%20o")
    assert await store.children(CHANGES) == [], "there is no running broker to notify"


async def test_running_brokers_learn_of_new_users(store: MetadataStore, tmp_path: Path) -> None:
    await store.ensure(znodes.broker_path(7))
    await first_users.take_over(write(tmp_path / "users", alice="secret"), store)
    (change,) = await store.children(CHANGES)
    data, _ = await store.get(f"{CHANGES}/{change}")
    assert znodes.decode_config_change(CHANGES, data) == "users/alice"


async def test_later_changes_to_users_are_kept(store: MetadataStore, tmp_path: Path) -> None:
    path = write(tmp_path / "users", alice="secret", bob="secret")
    await first_users.take_over(path, store)
    await store.delete("/config/users/alice")
    await store.put("/config/users/bob", znodes.encode_config({MECHANISM: "another"}))
    await first_users.take_over(path, store)
    assert await store.exists("/config/users/alice") is None
    assert await stored(store, "bob") == {MECHANISM: "another"}
    # A file with different credentials is imported again.
    await first_users.take_over(write(tmp_path / "users", alice="new", bob="new"), store)
    assert (await stored(store, "bob"))[MECHANISM] != "another"
    assert await store.exists("/config/users/alice") is not None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "contains no users"),
        (b"\xff", "contains no users"),
        (b"[]", "expected an object"),
        (b'{"alice": 1}', "a credential for each mechanism"),
        (b'{"": {}}', "a credential for each mechanism"),
        (b'{"alice": {"PLAIN": "x"}}', "PLAIN of user 'alice' is not one of SCRAM-SHA-256"),
        (b'{"alice": {"SCRAM-SHA-512": "very-secret"}}', "is not salt="),
    ],
)
async def test_an_invalid_users_file_aborts_startup(
    store: MetadataStore, tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "users"
    path.write_bytes(content)
    with pytest.raises(StartupError, match=problem) as caught:
        await first_users.take_over(str(path), store)
    assert "very-secret" not in str(caught.value)
    assert await store.children("/config/users") == []


async def test_a_missing_users_file_is_reported(
    store: MetadataStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await first_users.take_over(str(tmp_path / "users"), store)
    assert "Did not import users" in caplog.text
