"""KafkaBroker(security=…): clients log in with the returned settings, and wrong secrets are rejected."""

from __future__ import annotations

import json
import re
import ssl
import textwrap
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from kafka_compat.testing import KafkaBroker, KafkaCluster
from tests.support.process import wait_until
from tests.support.servers import run_kafka_compat
from tests.testing.left_over import folders
from tests.testing.suites import run

KINDS = ["mtls", "oauthbearer", "plain", "scram"]


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[str, KafkaBroker]]:
    """Running brokers by their kind of security."""
    found: dict[str, KafkaBroker] = {}
    yield found
    for broker in found.values():
        broker.close()


@pytest.fixture(params=KINDS)
def broker(request: pytest.FixtureRequest, brokers: dict[str, KafkaBroker]) -> KafkaBroker:
    return _started(brokers, request.param)


def _started(brokers: dict[str, KafkaBroker], kind: str) -> KafkaBroker:
    if kind not in brokers:
        brokers[kind] = KafkaBroker(security=kind, users={"alice": 'a\\"s', "bob": "b's"}).start()
    return brokers[kind]


@pytest.mark.parametrize("client", ["confluent-kafka", "librdkafka"])
def test_confluent_kafka_logs_in(broker: KafkaBroker, client: str) -> None:
    producer = Producer(broker.client_settings(client))
    producer.produce("flights", b"EWR")
    assert producer.flush(20) == 0


def test_kafka_python_logs_in(broker: KafkaBroker) -> None:
    producer = KafkaProducer(**broker.client_settings("kafka-python"))
    producer.send("flights", b"EWR").get(20)
    producer.close()


async def test_aiokafka_logs_in(broker: KafkaBroker) -> None:
    async with AIOKafkaProducer(**broker.client_settings("aiokafka")) as producer:
        await producer.send_and_wait("flights", b"EWR")


def _rejected(broker: KafkaBroker, reason: str, **secret: Any) -> None:
    """Check that a client with this secret is rejected, and that the broker's log contains the reason."""
    settings = broker.client_settings("confluent-kafka", "alice", **secret)
    errors: list[KafkaError] = []
    before = len(broker.log)
    noted: Any = errors.append
    client = AdminClient({**settings, "log_level": 0, "error_cb": noted})

    def is_rejected() -> bool:
        client.poll(0.01)
        return bool(errors) and reason in broker.log[before:]

    wait_until(is_rejected, 10, f"{reason!r} in the log", 0.01)
    assert errors[0].code() in (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._TRANSPORT), errors


@pytest.mark.parametrize("kind", ["plain", "scram"])
def test_a_wrong_password_is_rejected(brokers: dict[str, KafkaBroker], kind: str) -> None:
    _rejected(_started(brokers, kind), "'alice': the password is wrong", password="wrong")


def test_expired_and_forged_certificates_are_rejected(brokers: dict[str, KafkaBroker]) -> None:
    broker = _started(brokers, "mtls")
    expired = broker.certificate("alice", expired=True)
    _rejected(broker, "the client's certificate has expired", certificate=expired)
    forged = broker.certificate("alice", forged=True)
    _rejected(broker, "certificate is not signed by a CA in ssl.truststore", certificate=forged)
    assert broker.client_settings("java", "bob", certificate=expired)


def test_wrong_expired_and_forged_tokens_are_rejected(brokers: dict[str, KafkaBroker]) -> None:
    broker = _started(brokers, "oauthbearer")
    issuer = broker.issuer
    for reason, token in {
        "the token has expired: exp=": issuer.token("alice", expired=True),
        "the token's signature is invalid": issuer.token("alice", forged=True),
        "aud='other', expected 'kafka' (sasl.oauthbearer.expected.audience)": issuer.token(
            "alice", claims={"aud": "other"}
        ),
        f"iss='other', expected '{issuer.url}' (sasl.oauthbearer.expected.issuer)": issuer.token(
            "alice", claims={"iss": "other"}
        ),
        "the token does not contain the principal claim 'sub'": issuer.token("alice", claims={"sub": None}),
        "the token does not have a header, a payload and a signature": "rubbish",
    }.items():
        _rejected(broker, reason, token=token)


def test_a_rejection_is_logged_if_the_client_only_disconnects(brokers: dict[str, KafkaBroker]) -> None:
    broker = _started(brokers, "oauthbearer")
    with pytest.raises(Exception, match=r"."):
        settings = broker.client_settings("kafka-python", token=broker.issuer.token("x", claims={"exp": "y"}))
        KafkaProducer(**settings, bootstrap_timeout_ms=1000)
    wait_until(lambda: "exp is not a time" in broker.log, 10, "the reason in the log", 0.01)


def _fetched(url: str, form: dict[str, str] | None = None) -> Any:
    data = None if form is None else urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(url, data, timeout=10) as response:
        return json.load(response)


def test_the_issuer_can_be_discovered(brokers: dict[str, KafkaBroker]) -> None:
    broker = _started(brokers, "oauthbearer")
    found = _fetched(broker.issuer.discovery_url)
    assert found["issuer"] == broker.issuer.url
    assert len(_fetched(found["jwks_uri"])["keys"]) == 1
    form = {"grant_type": "client_credentials", "client_id": "bob", "client_secret": "b's"}
    token = _fetched(found["token_endpoint"], form)["access_token"]
    producer = Producer(broker.client_settings("confluent-kafka", token=token))
    assert "flights" in producer.list_topics(timeout=20).topics or broker.topics() == []
    for wrong in ({"client_secret": "wrong"}, {"client_id": "nobody"}, {"grant_type": "password"}):
        with pytest.raises(urllib.error.HTTPError):
            _fetched(found["token_endpoint"], {**form, **wrong})


def test_a_cluster_has_the_same_security() -> None:
    with KafkaCluster(2, security="scram") as cluster:
        cluster.create_topic("flights", 2)
        producer = Producer(cluster.client_settings("confluent-kafka"))
        for partition in range(2):
            producer.produce("flights", b"EWR", partition=partition)
        assert producer.flush(20) == 0
        address = cluster.bootstrap_servers
        cluster.restart()
        assert cluster.bootstrap_servers == address
        assert KafkaConsumer(**cluster.client_settings("kafka-python")).topics() == {"flights"}
    assert not folders()


def test_users_need_permissions_if_acls_are_enabled() -> None:
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:root",
    }
    with KafkaBroker(settings, security="plain", users={"alice": "a", "root": "r"}) as broker:
        broker.create_topic("flights")
        found = {
            user: set(AdminClient(broker.client_settings("librdkafka", user)).list_topics(timeout=20).topics)
            for user in ("alice", "root")
        }
    assert found == {"alice": set(), "root": {"flights"}}


def test_files_contain_the_settings_of_clients(brokers: dict[str, KafkaBroker], tmp_path: Path) -> None:
    broker = _started(brokers, "mtls")
    for client in ("java", "librdkafka", "franz-go", "kafkajs"):
        assert broker.bootstrap_servers in broker.client_file(client, tmp_path).read_text().replace("\\", "")
    own = broker.certificate("alice")
    ssl.create_default_context().load_cert_chain(own.certificate_file, own.key_file)


def test_invalid_arguments_are_reported(brokers: dict[str, KafkaBroker]) -> None:
    with pytest.raises(ValueError, match=r"'kerberos': expected one of mtls, oauthbearer, plain, scram"):
        KafkaBroker(security="kerberos")
    with pytest.raises(ValueError, match=r"set security as well"):
        KafkaBroker(users={"alice": "a"})
    with pytest.raises(ValueError, match=r"remove the setting listeners"):
        KafkaBroker({"listeners": "PLAINTEXT://127.0.0.1:0"}, security="plain")
    broker = _started(brokers, "plain")
    with pytest.raises(ValueError, match=r"client 'ruby': expected one of java, "):
        broker.client_settings("ruby")
    with pytest.raises(ValueError, match=r"user 'carol': expected one of alice, bob"):
        broker.client_settings("java", "carol")
    with pytest.raises(ValueError, match=r"token: a broker with security='plain' does not use it"):
        broker.client_settings("java", token="x")
    with pytest.raises(RuntimeError, match=r"security='oauthbearer'"):
        broker.issuer  # noqa: B018


def test_a_broker_without_security_also_has_settings_for_clients() -> None:
    with KafkaBroker() as broker:
        producer = Producer(broker.client_settings("confluent-kafka"))
        producer.produce("flights", b"EWR")
        assert producer.flush(20) == 0
        with pytest.raises(ValueError, match=r"requires no login"):
            broker.client_settings("java", "alice")


def test_the_fixture_takes_the_kind_of_security_as_a_parameter(tmp_path: Path) -> None:
    suite = """
        import pytest
        from confluent_kafka import Producer

        @pytest.mark.parametrize("kafka_security", ["plain", "mtls"], scope="session")
        def test_flights(kafka, kafka_topic, kafka_security):
            producer = Producer(kafka.client_settings("confluent-kafka"))
            producer.produce(kafka_topic, b"EWR")
            assert producer.flush(20) == 0
            assert ("ssl.key.location" in kafka.client_settings("librdkafka")) == (kafka_security == "mtls")
    """
    found = run(tmp_path, textwrap.dedent(suite))
    assert "2 passed" in found.stdout, found.stdout
    assert not folders()


def test_doctor_reports_that_the_clients_certificate_has_expired(
    brokers: dict[str, KafkaBroker], tmp_path: Path
) -> None:
    broker = _started(brokers, "mtls")
    expired = broker.certificate("alice", expired=True)
    ran = run_kafka_compat("doctor", str(broker.client_file("java", tmp_path, certificate=expired)))
    assert re.search(
        r"FAILED .* the broker rejects the client's certificate, which expired on \d{4}-\d\d-\d\d .*\n"
        r" +→ client: replace the certificate in ssl\.keystore\.location",
        ran.stdout,
    ), ran.stdout
    assert "on listener CLIENT" not in ran.stdout + ran.stderr
    ran = run_kafka_compat("doctor", str(broker.client_file("java", tmp_path)))
    assert ran.returncode == 0, ran.stdout
