"""kafka-configs --entity-type groups: Kafka's tool and our command, on our broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.java_tools import JavaTools, Printed
from tests.support.kafka_jars import TOOLS_VERSION
from tests.support.servers import KafkaCompatBroker, run_kafka_compat

SESSION = "consumer.session.timeout.ms"
Run = Callable[..., Printed]


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    found = JavaTools(TOOLS_VERSION)
    yield found
    found.close()


@pytest.fixture(params=["Kafka's tool", "our command"])
def configs(request: pytest.FixtureRequest, tools: JavaTools, shared_broker: KafkaCompatBroker) -> Run:
    """Return a function that runs kafka-configs with the given arguments."""
    where = ("--bootstrap-server", shared_broker.address)

    def run(*arguments: str) -> Printed:
        if request.param == "Kafka's tool":
            return tools.run("kafka-configs", *where, *arguments)
        ended = run_kafka_compat("configs", *where, *arguments)
        return Printed(ended.returncode, ended.stdout, ended.stderr)

    return run


def test_settings_of_a_group_are_altered_and_described(configs: Run) -> None:
    group = ("--entity-type", "groups", "--entity-name", "readers")
    added = configs("--alter", *group, "--add-config", f"{SESSION}=46000")
    assert (added.code, added.lines) == (0, ["Completed updating config for group readers."])
    shown = [
        "Dynamic configs for group readers are:",
        f"  {SESSION}=46000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{SESSION}=46000, "
        f"DEFAULT_CONFIG:group.{SESSION}=45000}}",
    ]
    assert configs("--describe", *group).lines == shown
    lines = configs("--describe", "--entity-type", "groups").lines
    begin = lines.index(shown[0])
    assert lines[begin : begin + 2] == shown
    assert f"  {SESSION}=46000 sensitive=false" in configs("--describe", "--all", *group).out
    refused = configs("--alter", *group, "--add-config", f"{SESSION}=1")
    assert refused.code == 1
    assert f"{SESSION} must be in the range 45000 to 60000 inclusive." in refused.out + refused.err
    deleted = configs("--alter", *group, "--delete-config", SESSION)
    assert deleted.code == 0
    assert "readers are:" not in configs("--describe", *group).out
