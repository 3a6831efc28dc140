"""What `pip install` of the project and of each extra brings is enough: each in a virtual environment of its
own, which has nothing of what the tests have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.packaging import wheels
from tests.packaging.wheels import Installed
from tests.spark.environment import QUICK_START
from tests.support.servers import KafkaCompatBroker

RECORDS = 100


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (built,) = wheels.build(tmp_path_factory.mktemp("wheel"), "--pure")
    return built


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCompatBroker]:
    running = KafkaCompatBroker(tmp_path_factory.mktemp("broker"))
    running.start()
    producer = Producer({"bootstrap.servers": running.address})
    for number in range(RECORDS):
        producer.produce("numbers", str(number))
    assert producer.flush(30) == 0
    yield running
    running.stop()


def test_the_pure_wheel_holds_the_sources_alone_and_is_for_any_python(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheels.contents(wheel) == wheels.sources() | {"kafka_compat/py.typed"}


@pytest.mark.parametrize("extra", ["", "[fast]"])
def test_the_project_serves_and_takes_no_strange_names(wheel: Path, tmp_path: Path, extra: str) -> None:
    """Alone, and with what makes it faster."""
    installed = Installed(tmp_path / "venv", f"kafka-compat{extra} @ file://{wheel}")
    ask = (
        "import importlib.util as u; import kafka_compat.storage.log, kafka_compat.coordination.zookeeper, "
        "kafka_compat.broker, kafka_compat.cli.local_cluster; "
        "print([n for n in ('storage', 'coordination', 'tests', 'pytest', 'pyspark') if u.find_spec(n)])"
    )
    assert installed.run(installed.python, "-c", ask).strip() == "[]"
    said = installed.serve(tmp_path / "data")
    assert ("on the loop of uvloop" in said) == (extra == "[fast]")


_FIVE_LINES = """\
from confluent_kafka import Producer
def test_flights(kafka):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("flights", b"EWR")
    assert producer.flush() == 0
"""


def test_five_lines_are_a_test_where_only_a_client_and_pytest_are_installed(
    wheel: Path, tmp_path: Path
) -> None:
    requirements = (f"kafka-compat @ file://{wheel}", "pytest", "confluent-kafka")
    installed = Installed(tmp_path / "venv", *requirements)
    (tmp_path / "test_flights.py").write_text(_FIVE_LINES)
    said = installed.run(
        *(
            installed.python,
            "-m",
            "pytest",
            "-q",
            "--rootdir",
            str(tmp_path),
            str(tmp_path / "test_flights.py"),
        ),
        environment={"PYTEST_ADDOPTS": ""},
    )
    assert "1 passed" in said


def test_the_extra_spark_archives_a_topic(wheel: Path, tmp_path: Path, broker: KafkaCompatBroker) -> None:
    installed = Installed(tmp_path / "venv", f"kafka-compat[spark] @ file://{wheel}")
    line = [installed.program, "pipeline", "archive", "--bootstrap-server", broker.address]
    archive = tmp_path / "archive"
    said = installed.run(*line, "--topic", "numbers", "--to", str(archive), "--json", environment=QUICK_START)
    assert f'"rows": {RECORDS}' in said
    said = installed.run(*line, "--topic", "absent", "--to", str(tmp_path / "other"), exit_code=2)
    assert "No such topic" in said
    installed.run(
        *(installed.program, "pipeline", "report", "--log-dir", str(broker.log_dir)),
        *("--plot", str(tmp_path / "report.png")),
        environment=QUICK_START,
    )
