"""Log levels: settings at startup, and kafka-configs at runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.logs.reading import lines_with, make_topic, wait_for
from tests.support import java
from tests.support.servers import KafkaCompatBroker, StartBroker, run_kafka_compat

LOGGERS = ("--entity-type", "broker-loggers", "--entity-name", "1")
STORAGE = "kafka_compat.storage"


def configs(broker: KafkaCompatBroker, *arguments: str) -> str:
    """Return the output of our kafka-configs for the broker's loggers."""
    ran = run_kafka_compat("configs", "--bootstrap-server", broker.address, *LOGGERS, *arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def levels(broker: KafkaCompatBroker) -> dict[str, str]:
    """Return the level of each logger, as Kafka's tools show it."""
    shown = configs(broker, "--describe")
    return dict(line.split()[0].split("=") for line in shown.splitlines() if line.startswith("  "))


def test_messages_below_warn_are_not_logged_by_default(start_broker: StartBroker) -> None:
    broker = start_broker()
    make_topic(broker, "orders")
    found = levels(broker)
    assert found["root"] == found["kafka"] == found["kafka_compat"] == found[STORAGE] == "WARN"
    assert broker.log.read_text().count("\n") == 1, "the ready line"


def test_configured_levels_apply(start_broker: StartBroker) -> None:
    broker = start_broker({"kafka.compat.log.level": f"error, kafka=info,{STORAGE} = DEBUG"})
    found = levels(broker)
    assert found["root"] == found["asyncio"] == "ERROR"
    assert found["kafka"] == found["kafka_compat"] == found["kafka_compat.network.server"] == "INFO"
    assert found[STORAGE] == found[f"{STORAGE}.directories.log_dirs"] == "DEBUG"


@pytest.mark.parametrize(("given", "in_force"), [("ERROR", "INFO"), ("DEBUG", "DEBUG")])
def test_verbose_lowers_the_level_to_info_or_below(tmp_path: Path, given: str, in_force: str) -> None:
    broker = KafkaCompatBroker(tmp_path, {"kafka.compat.log.level": given}, arguments=["--verbose"])
    broker.start()
    try:
        assert levels(broker)["root"] == in_force
    finally:
        broker.stop()


def test_levels_can_be_changed_at_runtime(start_broker: StartBroker) -> None:
    """Kafka's own tool sets levels for `kafka`, which stands for all of our loggers, for Kafka's logger
    names, and for a package.
    """
    broker = start_broker()
    for name in ("kafka_compat", "kafka", "kafka_compat.metadata"):
        given = ("kafka-configs", "--bootstrap-server", broker.address, *LOGGERS, "--alter")
        assert "Completed updating" in java.run(*given, "--add-config", f"{name}=INFO").stdout
        make_topic(broker, f"with-{name}")
        wait_for(broker, f"with-{name}")
        assert "Completed updating" in java.run(*given, "--delete-config", name).stdout
        assert levels(broker)[name] == "WARN"
        make_topic(broker, f"without-{name}")
    assert not lines_with(broker, "without-")
