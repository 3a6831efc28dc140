"""Run each seed of a simulation in a separate process.

Rules
1. A keeper is a fresh interpreter that imports the program once. Its strings have the same hashes in every
   run (PYTHONHASHSEED=0), and its objects the same addresses, so that sets have the same order.
2. It forks for each seed, so that the program's module state is always the initial state.
3. A keeper exits with its parent process. A fork exits at the end of its seed. A seed that takes longer than
   REAL_TIMEOUT_S of real time is killed, because it may compute endlessly while simulated time stands still.
"""

import contextlib
import gc
import importlib.util
import logging
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Self

from kafka_compat.testing.simulation.faults import Faults
from kafka_compat.testing.simulation.run import Main, Options, Report, run
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
    """Simulate a small program before the first seed, to import and compile the required code. This takes
    half a second. Errors are ignored, because they occur again when a seed runs.
    """
    run(0, _program, Options(faults=Faults.none(), timeout_s=60.0), with_journal=False)


REAL_TIMEOUT_S = 120.0
_CHUNK_BYTES = 1 << 20
_ADDR_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF
"""Argument with which personality() only returns the current value (linux/personality.h)."""


class Keeper:
    """Handle of a keeper process (rule 1). Raises TypeError if `main` cannot be passed to the process."""

    def __init__(self, main: Main, options: Options) -> None:
        work = _Work(main, options)
        context = get_context("spawn")
        self.answers, inside = context.Pipe()
        self._process = context.Process(target=_keep, args=(inside, work), name="simulations", daemon=True)
        with _hashes_as_always(), _addresses_as_always():
            self._process.start()
        inside.close()

    def begin(self, seed: int, *, with_journal: bool) -> None:
        """Start a seed. Its report arrives in `answers`."""
        # Ignore the error if the keeper has exited: `report` then raises an error with the reason.
        with contextlib.suppress(BrokenPipeError):
            self.answers.send((seed, with_journal))

    def report(self) -> Report:
        """Wait for the next report, and return it. Raises RuntimeError if the keeper has ended."""
        try:
            found = self.answers.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError("the process of the simulation ended: see its output above") from None
        if isinstance(found, str):
            raise RuntimeError(f"the program could not be loaded for its simulation:\n{found}")
        assert isinstance(found, Report)
        return found

    def close(self) -> None:
        """End the keeper process."""
        self.answers.close()
        self._process.terminate()
        self._process.join()


class _Last:
    """The keeper of the last `simulate`, reused so that a test with many seeds loads its program once."""

    keeper: Keeper | None = None
    work: tuple[Main, Options] | None = None


def run_apart(seed: int, main: Main, options: Options) -> Report:
    """Run one seed in a keeper process, and return its report with the journal."""
    if _Last.keeper is None or _Last.work != (main, options):
        if _Last.keeper is not None:
            _Last.keeper.close()
        _Last.keeper, _Last.work = Keeper(main, options), (main, options)
    keeper = _Last.keeper
    try:
        keeper.begin(seed, with_journal=True)
        return keeper.report()
    except BaseException:
        _Last.keeper = None
        keeper.close()
        raise


class Keepers:
    """Context manager with several keeper processes, for many seeds."""

    def __init__(self, count: int, main: Main, options: Options) -> None:
        self._keepers = [Keeper(main, options) for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for keeper in self._keepers:
            keeper.close()

    def run(self, seeds: Iterable[int]) -> Iterator[Report]:
        """Run seeds, and yield their reports in order of completion, with the journals of failed seeds."""
        left = iter(seeds)
        busy: dict[Connection, Keeper] = {}
        for keeper in self._keepers:
            self._next(keeper, left, busy)
        while busy:
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                keeper = busy.pop(ready)
                yield keeper.report()
                self._next(keeper, left, busy)

    def _next(self, keeper: Keeper, left: Iterator[int], busy: dict[Connection, Keeper]) -> None:
        seed = next(left, None)
        if seed is not None:
            keeper.begin(seed, with_journal=False)
            busy[keeper.answers] = keeper


class _Work:
    """A program that can be passed to a keeper process. Its function is found by module and name, or by file
    if the module cannot be imported by name, as in pytest.
    """

    def __init__(self, main: Main, options: Options) -> None:
        try:
            self._pickled = pickle.dumps((main, options))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"a simulation runs in its own process, to which {main!r} cannot be passed: {error}. Define "
                "the function at module level, or run one seed with here=True"
            ) from error
        self._module = getattr(main, "__module__", "__main__")
        self._file: str | None = getattr(sys.modules.get(self._module), "__file__", None)

    def load(self) -> tuple[Main, Options]:
        """Import the program, and return its function and options."""
        if self._module != "__main__" and self._file is not None and self._module not in sys.modules:
            try:
                importlib.import_module(self._module)
            except ImportError:
                self._load_file(self._file)
        found: tuple[Main, Options] = pickle.loads(self._pickled)
        return found

    def _load_file(self, path: str) -> None:
        specification = importlib.util.spec_from_file_location(self._module, path)
        if specification is None or specification.loader is None:
            return
        module = importlib.util.module_from_spec(specification)
        sys.modules[self._module] = module
        specification.loader.exec_module(module)


@contextlib.contextmanager
def _hashes_as_always() -> Iterator[None]:
    name = "PYTHONHASHSEED"
    before = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextlib.contextmanager
def _addresses_as_always() -> Iterator[None]:
    """Disable address space randomization for processes started in the `with` block, if Linux allows it. This
    is needed because None and objects without `__hash__` are hashed by address.
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    import ctypes

    personality = ctypes.CDLL(None).personality
    before = personality(_ASK)
    personality(before | _ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        personality(before)


def _keep(asked: Connection, work: _Work) -> None:
    # Let only the parent process handle Ctrl-C. When it exits, `asked` closes, and this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        main, options = work.load()
    except BaseException:
        asked.send(traceback.format_exc())
        return
    # Suppress log messages about simulated failures: a run with many seeds would print too many.
    logging.getLogger().addHandler(logging.NullHandler())
    warm_up()
    gc.collect()
    gc.freeze()
    while True:
        try:
            seed, with_journal = asked.recv()
        except (EOFError, OSError):
            return
        asked.send(_forked(seed, main, options, with_journal))


def _forked(seed: int, main: Main, options: Options, with_journal: bool) -> Report:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            report = run(seed, main, options, with_journal=with_journal)
            with open(writer, "wb") as file:
                pickle.dump(report, file)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    try:
        pickled = _read(reader)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if pickled is None:
        return _lost(seed, f"it did not end within {REAL_TIMEOUT_S:g} s of real time")
    if not pickled:
        return _lost(seed, "its process ended: see its output above")
    report = pickle.loads(pickled)
    assert isinstance(report, Report)
    return report


def _read(descriptor: int) -> bytes | None:
    found = bytearray()
    until_s = time.monotonic() + REAL_TIMEOUT_S
    while True:
        if not select.select([descriptor], [], [], max(0.0, until_s - time.monotonic()))[0]:
            return None
        part = os.read(descriptor, _CHUNK_BYTES)
        if not part:
            return bytes(found)
        found += part


def _lost(seed: int, why: str) -> Report:
    return Report(seed, 0.0, 0, "", [], why)
