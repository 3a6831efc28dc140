"""Fixtures for all tests: brokers as processes, Apache Kafka, and campaigns.

broker          a fresh kafka-compat broker for one test
start_broker    start_broker({"log.segment.bytes": "1048576"}): a broker with these settings
shared_broker   one kafka-compat broker for the whole run
genuine         Apache Kafka 3.9.1 with ZooKeeper, one for each module, or for all of tests/conformance
genuine_41      Apache Kafka 4.1.0 (KRaft), likewise
campaign        whether tests run with campaign counts (--campaign)
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from kafka_compat.storage.log import log as log_module
from tests.conformance.features import disable_consumer_groups
from tests.support import campaign as campaigns
from tests.support import servers
from tests.support.compiled import COMPILED
from tests.support.servers import IMPATIENT, GenuineKafka, KafkaCompatBroker, StartBroker

# The duration of an example depends on the machine and its load.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")


IN_ONE_WORKER = ("tests/conformance/", "tests/interop/", "tests/pipelines/")
"""Directories whose files share servers that take a while to start: several Kafka versions, or Spark."""

DESCRIPTORS_LEFT_MAX = 60
"""Shared servers that a module starts, and their clients, keep some descriptors open."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--campaign",
        action="store_true",
        help=f"run the long campaigns at full count (as {campaigns.VARIABLE}=1)",
    )
    parser.addoption(
        "--bootstrap",
        metavar="ADDRESS",
        help="run tests/clients/test_matrix.py against the brokers at this address, without comparing "
        "Apache Kafka; group.min.session.timeout.ms must be 1000 on the brokers",
    )

    parser.addoption(
        "--expect-compiled",
        action="store_true",
        help="fail unless the build of scripts/compile is tested",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--campaign"):
        os.environ[campaigns.VARIABLE] = "1"
    config.addinivalue_line(
        "markers", "interpreted(reason): not for the compiled form, in which functions cannot be replaced"
    )
    if config.getoption("--expect-compiled") and not COMPILED:
        raise pytest.UsageError(f"{log_module.__file__} is not compiled; run scripts/test --compiled")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker of xdist whole files, or whole directories of IN_ONE_WORKER."""
    if config.getoption("dist") != "loadfile":
        return None
    scheduler = LoadFileScheduling(config, log)
    by_file = scheduler._split_scope
    scheduler._split_scope = lambda nodeid: next(
        (each for each in IN_ONE_WORKER if nodeid.startswith(each)), by_file(nodeid)
    )
    return scheduler


def pytest_report_header() -> str:
    return f"kafka-compat: {'compiled' if COMPILED else 'as Python'}, {log_module.__file__}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # First what takes minutes in one worker, so that the other workers do not wait for it at the end.
    items.sort(key=lambda item: not item.nodeid.startswith(IN_ONE_WORKER))
    for item in items:
        mark = item.get_closest_marker("interpreted")
        if COMPILED and mark is not None:
            item.add_marker(pytest.mark.skip(reason=f"not compiled: {mark.args[0]}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.extend((f"log of {name}", text) for name, text in servers.running_logs())
    return report


@pytest.fixture(autouse=True, scope="module")
def descriptors_given_back() -> Iterator[None]:
    """Fail if a module leaves many files or sockets open: select() supports no descriptor above 1023."""
    before = _open_descriptors()
    yield
    if _open_descriptors() - before > DESCRIPTORS_LEFT_MAX:
        gc.collect()
        left = _open_descriptors() - before
        assert left <= DESCRIPTORS_LEFT_MAX, f"{left} descriptors were left open by this module"


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="session")
def campaign() -> bool:
    """Whether this run is a campaign."""
    return campaigns.enabled()


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Return a function that starts a broker with the given settings and a new directory. All are stopped
    after the test.
    """
    started: list[KafkaCompatBroker] = []

    def start(overrides: Mapping[str, str] | None = None) -> KafkaCompatBroker:
        broker = KafkaCompatBroker(tmp_path / f"broker-{len(started)}", overrides)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture
def broker(start_broker: StartBroker) -> KafkaCompatBroker:
    """A new kafka-compat broker for this test."""
    return start_broker()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCompatBroker]:
    """A kafka-compat broker for all tests that do not stop it or count its topics. Its transaction.version,
    share.version and group.version are 0, because most tests compare it with Kafka 3.9.
    """
    settings = {**IMPATIENT, "kafka.compat.transaction.version": "0", "kafka.compat.share.version": "0"}
    server = KafkaCompatBroker(tmp_path_factory.mktemp("kafka-compat"), settings)
    server.start()
    disable_consumer_groups(server.address)
    yield server
    server.stop()


# Within two minutes, a server that nothing uses needs more CPU time than it took to start.
@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    """Apache Kafka 3.9.1 with ZooKeeper, the reference for behaviour."""
    with servers.kafka_39(tmp_path_factory.mktemp("kafka-3.9.1")) as running:
        yield running


@pytest.fixture(scope="module")
def genuine_41(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    """Apache Kafka 4.1.0 (KRaft), the reference for features that ZooKeeper mode lacks."""
    with servers.kafka_41(tmp_path_factory.mktemp("kafka-4.1.0")) as running:
        yield running
