"""IncrementalAlterConfigs replaces the certificate of a running listener, or reports why it cannot."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.security.authority import Authority
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker

SETTING = "listener.name.ssl.ssl.keystore.location"


class World:
    """A broker with a PLAINTEXT and an SSL listener."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.authority = Authority(folder / "ca")
        self.first = self.authority.sign("broker")
        self.tls_port = free_port()
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.first.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.file),
        }
        make = KafkaCompatBroker if kind == "ours" else GenuineKafka
        self.server = make(folder / "broker", settings)
        listeners = f"PLAINTEXT://127.0.0.1:{self.server.port},SSL://127.0.0.1:{self.tls_port}"
        self.server.overrides["listeners"] = listeners
        self.server.start()
        self.admin = AdminClient({"bootstrap.servers": self.server.address})

    def alter(self, location: str) -> str | None:
        """Set the key store of the SSL listener. Return the error message, or None."""
        entry = ConfigEntry(SETTING, location, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        (answer,) = self.admin.incremental_alter_configs([resource]).values()
        try:
            answer.result(30)
        except KafkaException as error:
            return str(error.args[0].str())
        return None

    def shown(self) -> bytes:
        """The certificate that the broker presents to new connections."""
        return ssl.get_server_certificate(("127.0.0.1", self.tls_port)).encode()


@pytest.fixture(params=campaign.sides())
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, request.param)
    yield made
    made.server.stop()


def test_a_certificate_can_be_changed_by_request_if_allowed(world: World) -> None:
    before = world.shown()
    prefix = "Validation of dynamic config update of SSLFactory failed: "
    problem = world.alter("/nowhere")
    assert problem is not None and prefix in problem and "/nowhere" in problem
    problem = world.alter(str(world.authority.sign("another").store))
    assert problem is not None
    owners = "existing={alias=kafka, DN=CN=broker}, new={alias=kafka, DN=CN=another}"
    told = f"Keystore DistinguishedName does not match:  {owners}"
    assert f"{prefix}org.apache.kafka.common.config.ConfigException: {told}" in problem
    assert problem.startswith("Invalid value org.apache.kafka.common.config.ConfigException: ")
    assert problem.endswith(" for configuration Invalid dynamic configuration")
    assert world.shown() == before

    renewed = world.authority.sign("broker")
    other = renewed.store.rename(world.folder / "renewed.pem")
    assert world.alter(str(other)) is None
    wait_until(lambda: world.shown() != before, 30, "the broker presents a new certificate")


def test_a_changed_key_store_is_reloaded_when_its_location_is_set_again(world: World) -> None:
    location = world.first.store
    before = world.shown()
    prefix = (
        "Invalid config value for resource ConfigResource(type=BROKER, name='1'): "
        "Validation of dynamic config update of SSLFactory failed: "
    )
    location.write_bytes(b"rubbish")
    problem = world.alter(str(location))
    assert problem is not None and problem.startswith(prefix) and str(location) in problem
    another = world.authority.sign("another").store.read_bytes()
    # Apache Kafka detects a change by the modification time in milliseconds, so move the time forward.
    location.write_bytes(another)
    os.utime(location, (time.time() + 1, time.time() + 1))
    owners = "existing={alias=kafka, DN=CN=broker}, new={alias=kafka, DN=CN=another}"
    told = f"Keystore DistinguishedName does not match:  {owners}"
    problem = world.alter(str(location))
    assert problem == f"{prefix}org.apache.kafka.common.config.ConfigException: {told}"
    assert world.shown() == before
    location.write_bytes(world.authority.sign("broker").store.read_bytes())
    assert world.alter(str(location)) is None
    wait_until(lambda: world.shown() != before, 30, "the broker presents a new certificate")
