"""Delegation tokens are valid on all brokers of `serve --brokers` and `serve --processes`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.security.logins import Refused, log_in_by_token
from tests.security.tokens.world import Place, create, expire, settings
from tests.support.ports import adjacent_ports
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, Server, metadata

COUNT = 3


@pytest.fixture(params=["--brokers", "--processes"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[KafkaCompatBroker, list[Place]]]:
    """The command, and the brokers that it runs."""
    plain, sasl = adjacent_ports(COUNT), adjacent_ports(COUNT)
    arguments = [request.param, str(COUNT)]
    command = KafkaCompatBroker(tmp_path / "all", settings(plain, sasl), port=plain, arguments=arguments)
    del command.overrides["broker.id"]
    command.start()
    found = [Place(Server(tmp_path / str(n), port=plain + n), sasl + n) for n in range(COUNT)]
    for place in found:
        wait_until(partial(_serves, place), 30, "the broker responds")
    found[0].make_users()
    yield command, found
    command.stop()


def _serves(place: Place) -> bool:
    return metadata(place.server.port) is not None


def _knows(place: Place, token_id: str, secret: bytes) -> bool:
    try:
        log_in_by_token(place.sasl, token_id, secret).connection.close()
    except (OSError, Refused):
        return False
    return True


def test_a_token_is_valid_on_all_brokers_even_after_a_kill(
    places: tuple[KafkaCompatBroker, list[Place]],
) -> None:
    command, brokers = places
    for place in brokers:
        wait_until(place.knows_users, 20, "users can log in")
    first, last = brokers[0].login("alice"), brokers[-1].login("alice")
    with first.connection, last.connection:
        kept, ended = create(first), create(first)
        for token in (kept, ended):
            for place in brokers:
                known = partial(_knows, place, token["token_id"], token["hmac"])
                wait_until(known, 20, "the token is valid")
        assert expire(last, ended["hmac"])["error_code"] == 0
    command.restart(kill=True)
    for place in brokers:
        wait_until(partial(_knows, place, kept["token_id"], kept["hmac"]), 30, "the token is valid")
        assert not _knows(place, ended["token_id"], ended["hmac"])
