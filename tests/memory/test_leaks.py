"""Memory is freed without the garbage collector after every kind of client action, and no registry keeps an
entry.

Each test performs an action on a broker in this process, with names that contain MARK. Afterwards, no object
in the process may mention these names, and repetitions must not increase the number of objects of any type.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kafka_compat.broker import standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.nodes import following
from tests.memory.churn import SHORT_EXPIRIES
from tests.memory.client_actions import ACTS, USER, Act, Place
from tests.memory.expiries import EXPIRIES_OF_A_TEST, TIMES
from tests.memory.leftover_objects import (
    counts,
    examine_from_now_on,
    grown,
    nothing_left,
    started,
    without_collector,
)
from tests.memory.share_actions import SHARE_ACTS
from tests.security.authority import Authority
from tests.support import campaign

SETTINGS = {
    **SHORT_EXPIRIES,
    **EXPIRIES_OF_A_TEST,
    "broker.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:0,SASL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{USER}",
    "delegation.token.master.key": "secret",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "connection.failed.authentication.delay.ms": "0",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.session.timeout.ms": "1500",
    "group.share.min.session.timeout.ms": "1500",
    "group.share.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def key_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("authority")).sign("broker").store


_COUNTING = {"kafka.compat.http.listener": "http://127.0.0.1:0"}
"""A broker with an HTTP listener keeps metrics in addition to everything that another broker keeps."""
_BROKERS: dict[str, dict[str, str]] = (
    {"counting": _COUNTING, "plain": {}} if campaign.enabled() else {"counting": _COUNTING}
)


@pytest.fixture(autouse=True, scope="module")
def _no_collector() -> Iterator[None]:
    with without_collector():
        yield


@pytest.fixture(params=list(_BROKERS.values()), ids=list(_BROKERS))
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, key_store: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    # Notices of changed ACLs and tokens normally stay for 15 minutes, as in Kafka.
    monkeypatch.setattr(following, "NOTICE_MAX_AGE_MS", -1)
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(key_store)}
    settings = {**SETTINGS, **keys, **request.param, "log.dirs": f"{tmp_path}/1,{tmp_path}/2"}
    examine_from_now_on()
    broker = standalone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    started()
    addresses = {name: f"{host}:{port}" for name, (host, port) in broker.addresses.items()}
    yield Place(addresses["PLAINTEXT"], addresses["TLS"], addresses["SASL"])
    await broker.stop()


@pytest.mark.parametrize("act", [*ACTS, *SHARE_ACTS], ids=lambda act: act.__name__)
async def test_repeated_actions_do_not_leak_objects(place: Place, act: Act) -> None:
    await asyncio.to_thread(act, place)  # creates objects that the first such action needs
    await nothing_left()
    # Other activity of the broker does not create this many objects twice.
    growth = []
    for _ in range(2):
        before = counts()
        for _ in range(TIMES):
            await asyncio.to_thread(act, place)
        await nothing_left()
        growth.append(await grown(before, TIMES))
        if not growth[-1]:
            return
    assert growth[0] & growth[1] == set()
