"""Simulations: they find a planted bug, and each run can be reproduced byte for byte."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from kafka_compat.testing import Faults, Simulation, SimulationFailed, search, simulate
from tests.support import campaign
from tests.testing import payments
from tests.testing.simulation import consumer_groups

PROJECT = Path(__file__).parents[3]
CALM = Faults.none()
SEEDS = campaign.rounds(250, 10_000)
"""Normal runs stop at the first failing seed."""
REPLAYED = campaign.rounds(2, 200)


@pytest.mark.timeout(campaign.rounds(300, 7_200))
def test_seeds_find_a_planted_bug_and_reproduce_it() -> None:
    found = search(
        payments.hasty, range(SEEDS), faults=payments.FAULTS, stop_at=None if campaign.enabled() else 1
    )
    assert found.failures
    for failure in found.failures[: campaign.rounds(1, 5)]:
        assert failure.error is not None and "never paid: [b'" in failure.error
        for _ in range(2):
            with pytest.raises(SimulationFailed, match="never paid") as failed:
                simulate(failure.seed, payments.hasty, faults=payments.FAULTS)
            assert failed.value.report == failure
    print(f"{len(found.failures)} of {found.seeds} seeds in {found.took_s:.0f} s")


@pytest.mark.timeout(campaign.rounds(300, 7_200))
def test_a_correct_program_passes_with_every_seed() -> None:
    found = search(payments.careful, range(campaign.rounds(10, 10_000)), faults=payments.FAULTS)
    assert [failure.error for failure in found.failures] == []


@pytest.mark.timeout(campaign.rounds(300, 7_200))
@pytest.mark.parametrize(("brokers", "seeds"), [(1, REPLAYED), (3, REPLAYED // 2)])
def test_a_seed_produces_the_same_run_in_another_process(brokers: int, seeds: int) -> None:
    """Python's string hashes, which determine the order of sets, differ between the processes."""
    faults = Faults(process_kills=2.0, broker_kills=2.0)
    text = (
        "from kafka_compat.testing import Faults, simulate\nfrom tests.testing import payments\n"
        "if __name__ == '__main__':\n"
        f"    for seed in range({seeds}):\n"
        f"        faults = Faults(**{asdict(faults)})\n"
        f"        report = simulate(seed, payments.careful, brokers={brokers}, faults=faults)\n"
        "        print(report.digest, report.simulated_s, report.steps)\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", text],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONHASHSEED": hashes},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hashes in ("1", "random")
    ]
    one, other = (child.communicate(timeout=campaign.rounds(250, 3_600))[0].splitlines() for child in running)
    assert len(set(one)) == seeds
    assert one == other


async def _uses_time_and_chance(simulation: Simulation) -> None:
    began_s, began_of_day_s = time.monotonic(), time.time()
    await asyncio.sleep(1_000)  # simulated time
    assert 1_000 <= time.monotonic() - began_s < 1_001
    assert 1_000 <= time.time() - began_of_day_s < 1_001
    slept_s = await asyncio.to_thread(_sleeps)
    simulation.note(f"{uuid.uuid4()} {random.random()} {os.urandom(4).hex()} {slept_s:.6f}")


def _sleeps() -> float:
    began_s = time.perf_counter()
    time.sleep(5)  # simulated time, in a thread
    return time.perf_counter() - began_s


def test_time_randomness_and_threads_are_determined_by_the_seed() -> None:
    reports = [simulate(seed, _uses_time_and_chance, faults=CALM) for seed in (1, 1, 2)]
    assert reports[0].simulated_s > 1_005
    assert reports[0].digest == reports[1].digest != reports[2].digest


async def _is_killed(simulation: Simulation) -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("began")
        try:
            await asyncio.sleep(10)  # the work that is interrupted
        finally:
            seen.append("finally")

    process = simulation.process("worker", work)
    await asyncio.sleep(5)  # the work is half done
    process.pause()
    await asyncio.sleep(20)  # the work would be done within this time
    assert seen == ["began"]
    process.resume()
    await asyncio.sleep(0.1)  # the resumed process ends its work
    assert seen == ["began", "finally"] and process.ended.is_set()
    other = simulation.process("other", work)
    await asyncio.sleep(5)  # the work is half done
    other.kill()
    await asyncio.sleep(20)  # the work would be done within this time
    other.start()
    await other.ended.wait()
    assert seen[2:] == ["began", "began", "finally"]


def test_simulated_processes_can_be_killed_and_paused() -> None:
    simulate(1, _is_killed, faults=CALM)


async def _broker_is_killed(simulation: Simulation) -> None:
    at = {"bootstrap_servers": simulation.bootstrap_servers}
    broker = simulation.brokers[0]
    async with AIOKafkaProducer(**at) as producer:
        for number in range(3):
            await producer.send_and_wait("flights", b"%d" % number)
            broker.kill()
            await asyncio.sleep(1)  # the broker is down for this time
            broker.start()
            await broker.ready.wait()
    async with AIOKafkaConsumer("flights", auto_offset_reset="earliest", **at) as consumer:
        assert [(await consumer.getone()).value for _ in range(3)] == [b"0", b"1", b"2"]


def test_a_killed_broker_keeps_all_acknowledged_records() -> None:
    for seed in range(3):
        report = simulate(seed, _broker_is_killed, faults=CALM)
        assert sum("killed" in line for line in report.journal) == 3


async def _broker_cannot_start(simulation: Simulation) -> None:
    raise AssertionError("start of the process")


def test_an_invalid_setting_is_reported() -> None:
    with pytest.raises(SimulationFailed, match=r"num\.partitions"):
        simulate(1, _broker_cannot_start, settings={"num.partitions": "many"})


async def _waits_for_ever(simulation: Simulation) -> None:
    await asyncio.Event().wait()


async def _asks_a_real_socket(simulation: Simulation) -> None:
    socket.create_connection(("kafka-1", 9092))


@pytest.mark.parametrize(
    ("main", "message"),
    [
        (_waits_for_ever, "main has not ended after 100 s of simulated time"),
        (_asks_a_real_socket, "a simulation has no blocking sockets"),
    ],
)
def test_unsupported_calls_are_reported(main: object, message: str) -> None:
    with pytest.raises(SimulationFailed, match=message):
        simulate(1, main, timeout_s=100, faults=CALM)  # type: ignore[arg-type]


def test_a_program_that_another_process_cannot_import_is_rejected() -> None:
    async def main(simulation: Simulation) -> None:
        simulation.note("here")

    with pytest.raises(TypeError, match="Define the function at module level"):
        simulate(1, main)
    assert any(line.endswith("  here") for line in simulate(1, main, faults=CALM, here=True).journal)


def test_a_simulation_restores_the_functions_that_it_replaced() -> None:
    before = (time.monotonic, time.time, time.sleep, os.urandom, socket.socket, random.getstate())
    simulate(1, _uses_time_and_chance, faults=CALM, here=True)
    assert (time.monotonic, time.time, time.sleep, os.urandom, socket.socket, random.getstate()) == before
    assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 10


class _Busy:
    """Threads of this process that use the functions replaced by a simulation, and processes that compete for
    the processors.
    """

    def __init__(self) -> None:
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._use, daemon=True) for _ in range(3)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._interval_s = sys.getswitchinterval()
        self.rounds = 0
        self.problems: list[object] = []

    def __enter__(self) -> _Busy:
        # Switch between threads a thousand times as often as by default.
        sys.setswitchinterval(5e-6)
        for thread in self._threads:
            thread.start()
        line = [sys.executable, "-c", "while True: pass"]
        self._processes += [subprocess.Popen(line) for _ in range(2 * (os.cpu_count() or 1))]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        sys.setswitchinterval(self._interval_s)
        for process in self._processes:
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join()

    def _use(self) -> None:
        try:
            while not self._over.is_set():
                began_s = time.monotonic()
                time.sleep(0.0005)  # a short sleep in real time is what is tested
                if not 0.0005 <= time.monotonic() - began_s < 60:
                    self.problems.append("a sleep did not use real time")
                if abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) > 60:
                    self.problems.append("time.time() returned simulated time")
                random.random(), random.choice("ab"), uuid.uuid4(), os.urandom(8)
                with socket.socket() as made:
                    if not isinstance(made, socket.socket) or made.getsockname()[0] != "0.0.0.0":
                        self.problems.append(made)
                gc.collect(0)
                self.rounds += 1
        except Exception as error:
            self.problems.append(error)


@pytest.mark.parametrize(("main", "here"), [(_uses_time_and_chance, True), (payments.careful, False)])
def test_a_seed_produces_the_same_run_on_a_busy_machine(
    main: Callable[[Simulation], Coroutine[Any, Any, None]], here: bool
) -> None:
    """With `here`, the simulation runs in this process, while its other threads continue in real time."""
    faults = CALM if here else payments.FAULTS
    alone = simulate(1, main, faults=faults, here=here)
    with _Busy() as busy:
        reports = [simulate(1, main, faults=faults, here=here) for _ in range(campaign.rounds(2, 50))]
    assert busy.problems == [] and busy.rounds > 0
    assert {(report.digest, report.simulated_s, report.steps) for report in reports} == {
        (alone.digest, alone.simulated_s, alone.steps)
    }


@pytest.mark.parametrize("brokers", [1, 3])
def test_consumer_groups_of_kafka_4_are_enabled_and_survive_killed_brokers(brokers: int) -> None:
    for seed in range(campaign.rounds(3, 300)):
        simulate(seed, consumer_groups.main, brokers=brokers, faults=Faults(broker_kills=2.0), timeout_s=600)
