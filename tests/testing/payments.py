"""Programs for simulations, in which two workers pay orders. `careful` is correct. `hasty` has a bug: its
workers commit offsets before they pay, so a kill in between loses the payment.
"""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from kafka_compat.testing import Faults, Simulation

ORDERS = 30
FAULTS = Faults(process_kills=2.0)
"""With these faults, about one in fifty seeds finds the bug."""


async def pay(paid: set[bytes], order: bytes) -> None:
    """Record the payment in an external database."""
    await asyncio.sleep(0.05)  # the database takes its time
    paid.add(order)


async def work(simulation: Simulation, paid: set[bytes], commits_first: bool) -> None:
    """Pay orders until canceled."""
    async with AIOKafkaConsumer(
        "orders",
        group_id="payments",
        bootstrap_servers=simulation.bootstrap_servers,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ) as consumer:
        while True:
            found = await consumer.getmany(timeout_ms=1000, max_records=5)
            if commits_first:
                await consumer.commit()
            for records in found.values():
                for record in records:
                    await pay(paid, record.value)
            if not commits_first:
                await consumer.commit()


async def connected(simulation: Simulation) -> AIOKafkaProducer:
    """Return a producer, after waiting for the first broker."""
    while True:
        producer = AIOKafkaProducer(bootstrap_servers=simulation.bootstrap_servers, enable_idempotence=True)
        try:
            await producer.start()
            return producer
        except KafkaError:
            await producer.stop()
            await asyncio.sleep(1)  # retry interval


async def order(simulation: Simulation, orders: list[bytes]) -> None:
    """Send each order until it is acknowledged."""
    producer = await connected(simulation)
    for each in orders:
        while True:
            try:
                await producer.send_and_wait("orders", each)
                break
            except KafkaError as error:
                simulation.note(f"ordering {each!r} again: {error!r}")
                await asyncio.sleep(1)  # retry interval
        await asyncio.sleep(simulation.random.uniform(0, 1))  # orders come at random moments
    await producer.stop()


async def shop(simulation: Simulation, commits_first: bool) -> None:
    """Send orders while faults occur. After the faults end, all orders must be paid."""
    paid: set[bytes] = set()
    orders = [b"%d" % number for number in range(ORDERS)]
    for number in range(2):
        simulation.process(f"worker {number}", work, simulation, paid, commits_first)
    await order(simulation, orders)
    await simulation.calm()
    for _ in range(120):
        if len(paid) == ORDERS:
            return
        await asyncio.sleep(1)  # polling interval, in simulated time
    raise AssertionError(f"never paid: {[each for each in orders if each not in paid]}")


async def careful(simulation: Simulation) -> None:
    await shop(simulation, commits_first=False)


async def hasty(simulation: Simulation) -> None:
    await shop(simulation, commits_first=True)
