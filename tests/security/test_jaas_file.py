"""The KafkaServer sections of the JAAS file in KAFKA_OPTS apply as in Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.sasl.offer import login_module
from tests.conformance.wire import Connection
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

PACKAGE = "org.apache.kafka.common.security"
FILE = f"""
// What Kafka's documentation shows, with a section for one listener.
KafkaServer {{
    {PACKAGE}.scram.ScramLoginModule required
        username="broker" password="x;y";
    {PACKAGE}.plain.PlainLoginModule required
        user_alice="of the file"
        user_bob="bob;'s {{ }}";
}};
own.KafkaServer {{
    {PACKAGE}.plain.PlainLoginModule required user_alice="of her listener";
}};
KafkaClient {{ {PACKAGE}.plain.PlainLoginModule required username="a" password="b"; }};
"""
LISTENERS = ("COMMON", "OWN", "SET")


class Place(NamedTuple):
    server: Server
    ports: dict[str, int]

    def lets_in(self, listener: str, user: str, password: str) -> bool:
        with Connection(f"127.0.0.1:{self.ports[listener]}") as connection:
            connection.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
            token = {"auth_bytes": f"\0{user}\0{password}".encode()}
            refused: int = connection.ask(ApiKey.SASL_AUTHENTICATE, 2, token)["error_code"]
            return not refused


KINDS = [
    "ours",
    pytest.param("genuine", marks=pytest.mark.skipif(not campaign.enabled(), reason="--campaign")),
]


@pytest.fixture(params=KINDS)
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    file = tmp_path / "jaas.conf"
    file.write_text(FILE)
    port, ports = free_port(), {name: free_port() for name in LISTENERS}
    settings = {
        "listeners": ",".join(
            [f"PLAINTEXT://127.0.0.1:{port}", *(f"{name}://127.0.0.1:{ports[name]}" for name in LISTENERS)]
        ),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,COMMON:SASL_PLAINTEXT,OWN:SASL_PLAINTEXT,"
        "SET:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "connection.failed.authentication.delay.ms": "10",
        "listener.name.set.plain.sasl.jaas.config": (
            f'{PACKAGE}.plain.PlainLoginModule required user_alice="of a setting";'
        ),
    }
    option = f"-Djava.security.auth.login.config={file}"
    server: Server
    if request.param == "ours":
        environment = {"KAFKA_OPTS": option}
        server = KafkaCompatBroker(
            tmp_path / "ours", settings, port=port, arguments=["--env"], environment=environment
        )
    else:
        server = GenuineKafka(tmp_path / "genuine", settings, port=port, jvm_options=[option])
    server.start()
    yield Place(server, ports)
    server.stop()


def test_sections_of_the_jaas_file_apply_where_no_setting_is_given(place: Place) -> None:
    assert place.lets_in("COMMON", "alice", "of the file")
    assert place.lets_in("COMMON", "bob", "bob;'s { }")
    assert place.lets_in("OWN", "alice", "of her listener")
    assert place.lets_in("SET", "alice", "of a setting")
    assert not place.lets_in("OWN", "alice", "of the file")
    assert not place.lets_in("OWN", "bob", "bob;'s { }")
    assert not place.lets_in("SET", "alice", "of the file")


def test_invalid_files_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    config = BrokerConfig({"kafka.compat.sasl.jaas.file": str(file)})
    listener = config.for_listener("PLAINTEXT")
    with pytest.raises(ConfigError, match="No such file"):
        login_module(listener, "PLAIN")
    file.write_text('KafkaServer { x.PlainLoginModule required password="hidden; };')
    with pytest.raises(ConfigError, match="quotation mark") as refused:
        login_module(listener, "PLAIN")
    assert "hidden" not in refused.value.in_full
    file.write_text("KafkaClient { x.PlainLoginModule required; }; KafkaServer { x.OtherModule required; };")
    assert login_module(listener, "PLAIN") is None
