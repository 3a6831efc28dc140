"""Whatever comes and goes is freed when it ends, though the garbage collector is off, and no registry keeps
an entry of it.

Each test does something with a broker of this process, by names with MARK, and ends it; then nothing in the
process mentions these names any more, and there are no more objects of any type than after the same thing was
done before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kafka_compat.broker import lone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.memory.churn import SHORT_EXPIRIES, churn_once
from tests.memory.traces import MARK, counts, nothing_left, without_collector

TIMES = 3
AT_ONCE = {
    "transactional.id.expiration.ms": "1500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "producer.id.expiration.ms": "1500",
    "producer.id.expiration.check.interval.ms": "100",
    "offsets.retention.check.interval.ms": "100",
    "log.segment.delete.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}

Act = Callable[[str], None]
"""Blocking: does something at an address."""


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    settings = {
        **SHORT_EXPIRIES,
        **AT_ONCE,
        "broker.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
    }
    broker = lone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    ((host, port),) = broker.addresses.values()
    with without_collector():
        yield f"{host}:{port}"
    await broker.stop()


def connect(address: str, what: str = "client") -> Connection:
    return Connection(address, client_id=f"{MARK}-{what}")


def ask(address: str, key: ApiKey, version: int, request: Plain) -> Plain:
    with connect(address) as connection:
        return connection.ask(key, version, request)


def a_connection(address: str) -> None:
    with connect(address) as connection:
        connection.ask(ApiKey.API_VERSIONS, 3, {"client_software_name": f"{MARK}-software"})


def a_connection_in_the_middle_of_a_request(address: str) -> None:
    with connect(address) as connection:
        connection.ask(ApiKey.API_VERSIONS, 0, {})
        connection.send(b"\0\0\1\0" + f"{MARK}-half".encode())


def a_round(address: str) -> None:
    churn_once(address, MARK)


ACTS: list[Act] = [a_connection, a_connection_in_the_middle_of_a_request, a_round]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
async def test_nothing_is_left(address: str, act: Act) -> None:
    await asyncio.to_thread(act, address)  # makes what is made for the first of its kind
    await nothing_left()
    # Whatever else the broker makes meanwhile, it does not make as often as that, twice.
    growth = []
    for _ in range(2):
        before = counts()
        for _ in range(TIMES):
            await asyncio.to_thread(act, address)
        await nothing_left()
        growth.append({name for name, count in (counts() - before).items() if count >= TIMES})
    assert growth[0] & growth[1] == set()
