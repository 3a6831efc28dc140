"""Programs that use quixstreams, faust, FastStream or Celery, while they and the broker are killed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import NewTopic

from tests.others import scenarios
from tests.others.flow import PARTITIONS, Flow
from tests.others.program import WAIT_S, Program
from tests.others.servers import kill_and_start
from tests.others.suite import Outcomes, Side, Suite
from tests.others.virtualenv import Virtualenv
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import Server

_PROGRAMS = Path(__file__).with_name("programs")
_TASKS = 60

_QUIXSTREAMS = Virtualenv("quixstreams", ["quixstreams==3.28.1"])
_FAUST = Virtualenv("faust-streaming", ["faust-streaming==0.15.3", "setuptools<81"])
_FASTSTREAM = Virtualenv("faststream", ["faststream[kafka,confluent]==0.7.8"])
_CELERY = Virtualenv("celery", ["celery==5.7.0", "kombu[confluentkafka]"])


def _started(environment: Virtualenv, program: str, flow: Flow, directory: Path, *arguments: str) -> Program:
    """Start a program between the topics of a flow."""
    line = [environment.python(), str(_PROGRAMS / program), flow.broker.address, flow.lines, flow.counts]
    return Program(directory / "program.log", [*line, *arguments])


def _quixstreams(broker: Server, directory: Path, *, guarantee: str) -> None:
    """A stateful count, whose state is in a changelog topic that the program creates."""
    flow = Flow(broker, f"quixstreams-{guarantee}")
    flow.create_topics()
    state = str(directory / "state")
    flow.with_kills(
        lambda: _started(_QUIXSTREAMS, "quixstreams_counts.py", flow, directory, state, guarantee)
    )
    flow.check_at_least_once()
    if guarantee == "exactly-once":
        flow.check_once()
        flow.check_counts()


def _faust(broker: Server, directory: Path, *, guarantee: str) -> None:
    """A count in a table, whose state is in a changelog topic."""
    flow = Flow(broker, f"faust-{guarantee.replace('_', '-')}")
    # faust compares the numbers of partitions before it has created the topic.
    changelog = NewTopic(f"{flow.name}-seen-changelog", PARTITIONS, 1, config={"cleanup.policy": "compact"})
    flow.create_topics(changelog)
    state = str(directory / "state")
    flow.with_kills(lambda: _started(_FAUST, "faust_counts.py", flow, directory, state, guarantee))
    flow.check_at_least_once()


def _faststream(broker: Server, directory: Path, *, library: str, mode: str) -> None:
    """A subscriber that publishes each record again."""
    flow = Flow(broker, f"faststream-{library}-{mode}")
    flow.create_topics()
    # On confluent, FastStream commits positions in the background. They may include the records that it
    # handles next, which a kill would lose.
    flow.with_kills(
        lambda: _started(_FASTSTREAM, "faststream_copies.py", flow, directory, library, mode),
        kill_program=library == "aiokafka",
    )
    flow.check_at_least_once()


def _celery(broker: Server, directory: Path, *, kill_worker: bool) -> None:
    """A worker whose tasks each note their number in a file."""
    notes = directory / "notes"
    notes.touch()
    environment = {"ADDRESS": broker.address, "NOTES": str(notes), "PYTHONPATH": str(_PROGRAMS)}
    python = _CELERY.python()

    def start() -> Program:
        arguments = ["worker", "--pool=solo", "--without-gossip", "--without-mingle", "--loglevel=info"]
        line = [python, "-m", "celery", "--app=celery_tasks", *arguments]
        return Program(directory / "worker.log", line, environment=environment)

    def send(first: int, end: int) -> None:
        line = [python, str(_PROGRAMS / "celery_tasks.py"), "send", str(first), str(end)]
        Program(directory / "sender.log", line, environment=environment).end()

    def done() -> set[int]:
        return {int(line) for line in notes.read_text().split()}

    def await_tasks(worker: Program, end: int) -> None:
        def all_done() -> bool:
            assert worker.running, "the worker ended"
            return done() >= set(range(end))

        wait_until(all_done, WAIT_S, f"tasks up to {end}", 0.5)

    worker = start()
    try:
        send(0, _TASKS // 2)
        await_tasks(worker, _TASKS // 2)
        if kill_worker:
            worker.kill()
            send(_TASKS // 2, _TASKS)
            worker = start()
        else:
            kill_and_start(broker)
            send(_TASKS // 2, _TASKS)
        await_tasks(worker, _TASKS)
    finally:
        worker.kill()


def _suite(
    name: str,
    version: str,
    link: str,
    found: Mapping[str, scenarios.BrokerScenario],
    environment: Virtualenv,
) -> Suite:
    def run(side: Side, directory: Path) -> Outcomes:
        environment.python()
        return scenarios.play_on_one_broker(found, side, directory)

    return Suite(
        name=name,
        version=version,
        source="PyPI",
        servers=f"Kafka {NEWEST_VERSION}, one broker",
        run=run,
        link=link,
        tests="scenarios",
    )


SUITES: Sequence[Suite] = (
    _suite(
        "quixstreams",
        "3.28.1",
        "https://github.com/quixio/quix-streams",
        {
            "counts with exactly-once are exact when the broker and the program are killed": (
                functools.partial(_quixstreams, guarantee="exactly-once")
            ),
            "no record is lost with at-least-once when the broker and the program are killed": (
                functools.partial(_quixstreams, guarantee="at-least-once")
            ),
        },
        _QUIXSTREAMS,
    ),
    _suite(
        "faust-streaming",
        "0.15.3",
        "https://github.com/faust-streaming/faust",
        {
            "no record is lost with at_least_once when the broker and the program are killed": (
                functools.partial(_faust, guarantee="at_least_once")
            ),
            "no record is lost with exactly_once when the broker and the program are killed": (
                functools.partial(_faust, guarantee="exactly_once")
            ),
        },
        _FAUST,
    ),
    _suite(
        "FastStream",
        "0.7.8",
        "https://github.com/ag2ai/faststream",
        {
            f"no record of a {mode} subscriber on {library} is lost when {killed} killed": (
                functools.partial(_faststream, library=library, mode=mode)
            )
            for library, killed in (
                ("aiokafka", "the broker and the program are"),
                ("confluent", "the broker is"),
            )
            for mode in ("single", "batch")
        },
        _FASTSTREAM,
    ),
    _suite(
        "Celery",
        "5.7.0",
        "https://github.com/celery/celery",
        {
            "all tasks are done when the broker is killed": functools.partial(_celery, kill_worker=False),
            "all tasks are done when the worker is killed": functools.partial(_celery, kill_worker=True),
        },
        _CELERY,
    ),
)
