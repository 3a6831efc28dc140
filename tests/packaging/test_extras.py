"""Dependencies of the project and of each extra: `pip install` in a new virtual environment without the test
dependencies must be sufficient. test_first_runs.py covers `docs` and `test`.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka_compat.errors import ErrorCode
from tests.conformance.wire import Connection
from tests.metrics.scraping import Scrape
from tests.otlp.receiver import Receiver
from tests.packaging import wheels
from tests.packaging.wheels import Installed
from tests.pipelines.environment import QUICK_START
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.process import Process
from tests.support.servers import KafkaCompatBroker
from tests.telemetry.pushing import gauges, push

RECORDS = 100
campaign_only = pytest.mark.skipif(not campaign.enabled(), reason="installs many packages: with --campaign")


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


def test_the_pure_wheel_contains_only_sources_and_supports_any_python(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheels.contents(wheel) == wheels.sources() | {"kafka_compat/py.typed"}


@campaign_only
@pytest.mark.parametrize("extra", ["", "[fast]"])
def test_the_wheel_can_run_a_broker_and_installs_only_its_own_packages(
    wheel: Path, tmp_path: Path, extra: str
) -> None:
    """The wheel is tested without extras, and with the extras that make the broker faster."""
    installed = Installed(tmp_path / "venv", f"kafka-compat{extra} @ file://{wheel}")
    ask = (
        "import importlib.util as u; import kafka_compat.storage.log.log; "
        "import kafka_compat.coordination.zookeeper_store.zookeeper, "
        "kafka_compat.broker, kafka_compat.cli.local_cluster; "
        "print([n for n in ('storage', 'coordination', 'tests', 'pytest', 'pyspark') if u.find_spec(n)])"
    )
    assert installed.run(installed.python, "-c", ask).strip() == "[]"
    said = installed.serve(tmp_path / "data")
    assert ("Using the uvloop event loop" in said) == (extra == "[fast]")
    endpoint = "--override=kafka.compat.otlp.endpoint=http://127.0.0.1:4318"
    said = installed.run(installed.program, "serve", "--ephemeral", endpoint, exit_code=2)
    assert "kafka.compat.otlp.endpoint=http://127.0.0.1:4318 requires more packages" in said
    assert "pip install 'kafka-compat[otel]'" in said


@contextlib.contextmanager
def _serving(installed: Installed, folder: Path, **settings: str) -> Iterator[str]:
    """Run a broker from the installation, and yield its address."""
    port = free_port()
    given = [f"--override={name.replace('_', '.')}={value}" for name, value in settings.items()]
    line = [installed.program, "serve", "--ephemeral", "--port", str(port), *given]
    process = Process(line, folder / "log", rf"ready on .*:{port}\b", directory=Path("/"))
    process.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        assert process.stop() == 0


@campaign_only
def test_pushed_metrics_are_accepted_with_the_telemetry_extra(wheel: Path, tmp_path: Path) -> None:
    installed = Installed(tmp_path / "venv", f"kafka-compat[telemetry] @ file://{wheel}")
    url = f"http://127.0.0.1:{free_port()}"
    serving = _serving(installed, tmp_path, kafka_compat_http_listener=url)
    with serving as address, Connection(address) as connection:
        assert push(connection, gauges({"org.apache.kafka.x": 4.5})) == ErrorCode.NONE
        told = Scrape(url).samples.items()
    assert [value for (name, _), value in told if name == "org_apache_kafka_x"] == [4.5]


@campaign_only
def test_metrics_can_be_pushed_with_the_otel_extra(wheel: Path, tmp_path: Path) -> None:
    installed = Installed(tmp_path / "venv", f"kafka-compat[otel] @ file://{wheel}")
    with Receiver(free_port()) as receiver:
        settings = {"kafka_compat_otlp_endpoint": receiver.url, "kafka_compat_otlp_interval_ms": "200"}
        with _serving(installed, tmp_path, **settings):
            pushed = receiver.next_push()
    assert pushed.samples["kafka_brokers", frozenset()] == 1


@campaign_only
def test_values_can_be_decoded_with_the_schemas_extra(wheel: Path, tmp_path: Path) -> None:
    installed = Installed(tmp_path / "venv", f"kafka-compat[schemas] @ file://{wheel}")
    asked = (
        "from kafka_compat.decoding.avro import AvroSchema; "
        "print(AvroSchema('\"string\"').read(bytes([6]) + b'EWR')); "
        "from google.protobuf import descriptor_pool; import kafka_compat.decoding.protobuf"
    )
    assert installed.run(installed.python, "-c", asked).strip() == '"EWR"'


@campaign_only
@pytest.mark.skipif(shutil.which("krb5-config") is None, reason="gssapi needs Kerberos headers")
def test_the_kerberos_extra_installs_the_packages_that_gssapi_needs(wheel: Path, tmp_path: Path) -> None:
    installed = Installed(tmp_path / "venv", f"kafka-compat[kerberos] @ file://{wheel}")
    asked = "import gssapi; from kafka_compat.security.sasl import gssapi as ours; print(ours.__name__)"
    assert installed.run(installed.python, "-c", asked).strip() == "kafka_compat.security.sasl.gssapi"


_FIVE_LINES = """\
from confluent_kafka import Producer
def test_flights(kafka):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("flights", b"EWR")
    assert producer.flush() == 0
"""


def test_a_five_line_test_needs_only_a_client_and_pytest(wheel: Path, tmp_path: Path) -> None:
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


@campaign_only
@pytest.mark.parametrize("version", ["4.0.0", "4.2.0"])
def test_a_topic_can_be_archived_with_the_spark_extra(
    wheel: Path, tmp_path: Path, broker: KafkaCompatBroker, version: str
) -> None:
    requirements = (f"kafka-compat[spark,delta] @ file://{wheel}", f"pyspark=={version}")
    installed = Installed(tmp_path / "venv", *requirements)
    line = [installed.program, "pipeline", "archive", "--bootstrap-server", broker.address]
    archive = tmp_path / "archive"
    said = installed.run(*line, "--topic", "numbers", "--to", str(archive), "--json", environment=QUICK_START)
    assert f'"rows": {RECORDS}' in said
    table = ("--to", str(tmp_path / "table"), "--format", "delta", "--json")
    said = installed.run(*line, "--topic", "numbers", *table, environment=QUICK_START)
    assert f'"rows": {RECORDS}' in said
    said = installed.run(*line, "--topic", "absent", "--to", str(tmp_path / "other"), exit_code=2)
    assert "No such topic" in said
    installed.run(
        *(installed.program, "pipeline", "report", "--log-dir", str(broker.log_dir)),
        *("--plot", str(tmp_path / "report.png")),
        environment=QUICK_START,
    )
