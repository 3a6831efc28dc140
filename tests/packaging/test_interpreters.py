"""Every Python version in setup.cfg: installation, a broker, and tests with the pytest fixtures."""

from __future__ import annotations

import configparser
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging import interpreters, wheels
from tests.packaging.checkouts import Checkout
from tests.packaging.interpreters import Debian
from tests.support import campaign
from tests.support.servers import PROJECT

_FOUND = interpreters.found()
_TRIED = list(_FOUND) if campaign.enabled() else list(_FOUND)[-1:]
"""Normal runs test only the newest version, because each takes half a minute."""

_CHECK = """\
from confluent_kafka import Consumer, Producer

def test_flights(kafka):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("flights", b"EWR")
    assert producer.flush() == 0
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["flights"])
    message = consumer.poll(30)
    assert message is not None and message.value() == b"EWR"
    consumer.close()
"""


def test_the_tested_versions_match_setup_cfg() -> None:
    settings = configparser.ConfigParser()
    settings.read(PROJECT / "setup.cfg", encoding="utf-8")
    named = [line.rpartition(" :: ")[2] for line in settings["metadata"]["classifiers"].split("\n")]
    assert tuple(name for name in named if name.startswith("3.")) == interpreters.VERSIONS
    script = (PROJECT / "scripts" / "setup-venv").read_text(encoding="utf-8")
    assert " ".join(f"python{version}" for version in reversed(interpreters.VERSIONS)) in script


@pytest.mark.skipif(not _TRIED, reason="no other Python version found")
@pytest.mark.skipif(not campaign.enabled(), reason="installs many packages: with --campaign")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", _TRIED)
def test_other_python_versions_run_a_broker_and_the_fixtures(tmp_path: Path, version: str) -> None:
    (wheel,) = wheels.build(tmp_path / "wheel", "--pure")
    environment = tmp_path / "venv"
    wheels.run([_FOUND[version], "-m", "venv", str(environment)])
    python = str(environment / "bin" / "python")
    project = f"kafka-compat[fast,otel,schemas,telemetry] @ file://{wheel}"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    wheels.run([*install, project, "pytest", "confluent-kafka"])
    assert wheels.run([python, "-V"]).startswith(f"Python {version}.")
    (tmp_path / "test_flights.py").write_text(_CHECK)
    line = [python, "-W", "error::SyntaxWarning", "-m", "pytest", "-q", "--rootdir", str(tmp_path)]
    said = wheels.run([*line, str(tmp_path / "test_flights.py")], {"PYTEST_ADDOPTS": ""})
    assert "1 passed" in said and "warning" not in said, said


@pytest.fixture
def debian(tmp_path: Path) -> Iterator[tuple[Debian, Path]]:
    """A Debian with Python 3.14 that contains a clean checkout, and the checkout's path in the chroot."""
    tree = Debian()
    if tree.missing():
        pytest.skip(tree.missing())
    tree.make()
    work = tree.root / "work"
    shutil.rmtree(work, ignore_errors=True)
    Checkout(work)
    yield tree, Path("/work/checkout")
    shutil.rmtree(work, ignore_errors=True)


@pytest.mark.skipif(not campaign.enabled(), reason="creates a Debian chroot and compiles: with --campaign")
@pytest.mark.timeout(3600)
def test_python_3_14_installs_compiles_and_runs_a_broker_and_the_fixtures(
    debian: tuple[Debian, Path],
) -> None:
    """Libraries without a wheel for this version are built by the C compiler."""
    tree, checkout = debian
    tree.run(f"{checkout}/scripts/compile")
    python = f"{checkout}/.venv/bin/python"
    assert tree.run(python, "-V").startswith("Python 3.14.")
    asked = "import kafka_compat.storage.log.log as log; print(log.__file__)"
    compiled = ("env", f"PYTHONPATH={checkout}/.compiled", "PYTHONSAFEPATH=1")
    assert tree.run(*compiled, python, "-c", asked).strip().endswith(".so")
    tree.run(python, "-m", "pip", "install", "-q", "pytest", "confluent-kafka", "lz4", "aiokafka")
    (tree.root / "work" / "test_flights.py").write_text(_CHECK)
    pytest_line = ("-m", "pytest", "-q", "--rootdir", "/work", "/work/test_flights.py")
    for line in ((python, *pytest_line), (*compiled, python, *pytest_line)):
        said = tree.run(*line)
        assert "1 passed" in said and "warning" not in said, said
    wheels_found = tree.run("sh", "-c", f"{checkout}/scripts/build-wheel && ls {checkout}/dist")
    assert "-cp314-cp314-" in wheels_found and "-py3-none-any" in wheels_found
