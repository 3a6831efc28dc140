"""A small program, simulated before the seeds are: what is imported and compiled on the way is there then."""

from __future__ import annotations

from kafka_compat.testing.simulation.faults import Faults
from kafka_compat.testing.simulation.run import Options, run
from kafka_compat.testing.simulation.simulation import Simulation


async def _program(simulation: Simulation) -> None:
    try:
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    except ImportError:
        return
    at = {"bootstrap_servers": simulation.bootstrap_servers}
    async with AIOKafkaProducer(enable_idempotence=True, **at) as producer:
        await producer.send_and_wait("warm-up", b"")
    await simulation.calm()
    broker = simulation.brokers[0]
    broker.kill()
    broker.start()
    await broker.ready.wait()
    async with AIOKafkaConsumer(
        "warm-up", group_id="warm-up", auto_offset_reset="earliest", **at
    ) as consumer:
        await consumer.getone()
        await consumer.commit()


def warm_up() -> None:
    """Takes half a second. What goes wrong in it is of no interest here: it will go wrong in the seeds."""
    run(0, _program, Options(faults=Faults.none(), timeout_s=60.0), with_journal=False)
