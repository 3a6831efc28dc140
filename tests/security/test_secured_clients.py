"""Real clients get the same results over TLS and SASL from our broker as from Apache Kafka: in the scenarios
of tests/clients, without permissions, and with wrong passwords.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.clients import group_scenarios, scenarios
from tests.clients.lane import Lane, attempted
from tests.clients.lane_pool import Topics
from tests.clients.programs import CLIENTS, ClientKind, ClientProgram
from tests.clients.scenarios import NEEDS
from tests.security import kdc
from tests.security.authority import Authority
from tests.security.client_credentials import WAYS, Files
from tests.security.oauth.issuer import Issuer, SigningKey
from tests.security.secured import Secured, listeners, up
from tests.security.unauthorized_client import no_right, outcome, settle_rights
from tests.support import campaign
from tests.support.servers import GenuineKafka, KafkaCompatBroker

SCENARIOS = (
    scenarios.produce_and_consume,
    scenarios.acknowledgements,
    scenarios.idempotent_producer,
    scenarios.transactions,
    scenarios.large_records,
    scenarios.commits,
    group_scenarios.group_life,
    scenarios.topic_admin,
    group_scenarios.group_admin,
)
EVERYDAY = {
    ("confluent-kafka", "SSL"),
    ("confluent-kafka", "SCRAM-SHA-256"),
    ("kafka-python", "SCRAM-SHA-512"),
    ("aiokafka", "PLAIN"),
    ("kafkajs", "SCRAM-SHA-256"),
    ("java-1.1.1", "SSL"),
    ("java-3.9.1", "SCRAM-SHA-512"),
    ("java-4.1.0", "OAUTHBEARER"),
    ("aiokafka", "GSSAPI"),
    ("franz-go", "SCRAM-SHA-512"),
}
UNENTITLED = {("java-3.9.1", "SCRAM-SHA-512")}
IMPOSTORS = {("aiokafka", "SCRAM-SHA-512"), ("java-3.9.1", "SCRAM-SHA-512"), ("franz-go", "PLAIN")}


@pytest.fixture(scope="module")
def files(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    directory = tmp_path_factory.mktemp("stores")
    tickets = None if kdc.missing() else kdc.Kdc(directory / "kdc")
    with Issuer(SigningKey("k1")) as issuer:
        try:
            if tickets is not None:
                tickets.start()
            yield Files(authority, directory, issuer, tickets)
        finally:
            if tickets is not None:
                tickets.stop()


_RULES = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Clients of the PLAINTEXT listener, and the broker itself, are super users."""


def _settings(files: Files, name: str) -> tuple[dict[str, str], dict[str, int]]:
    settings, ports = listeners(files.authority, name)
    # Advertise localhost, because Kerberos tickets are issued for host names.
    advertised = {**dict.fromkeys(ports, "127.0.0.1"), "SAFE": "localhost"}
    addresses = ",".join(f"{listener}://{advertised[listener]}:{port}" for listener, port in ports.items())
    return {**settings, **_RULES, **files.broker("SAFE"), "advertised.listeners": addresses}, ports


def _ready(secured: Secured) -> Secured:
    settle_rights(secured.addresses["PLAINTEXT"])
    secured.addresses["SAFE"] = secured.addresses["SAFE"].replace("127.0.0.1", "localhost")
    return secured


@pytest.fixture(scope="module")
def ours(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    settings, ports = _settings(files, "ours")
    environment = files.kdc.environment if files.kdc else {}
    directory = tmp_path_factory.mktemp("ours")
    server = KafkaCompatBroker(directory, settings, port=ports["PLAINTEXT"], environment=environment)
    yield _ready(up(server, ports, files.authority))
    server.stop()


@pytest.fixture(scope="module")
def theirs(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    settings, ports = _settings(files, "theirs")
    settings = {name: value.replace("\\", "\\\\") for name, value in settings.items()}
    options = [f"-Djava.security.krb5.conf={files.kdc.configuration}"] if files.kdc else []
    directory = tmp_path_factory.mktemp("theirs")
    server = GenuineKafka(directory, settings, port=ports["PLAINTEXT"], jvm_options=options)
    yield _ready(up(server, ports, files.authority))
    server.stop()


def _address(secured: Secured, way: str) -> str:
    return secured.addresses["SSL" if way == "SSL" else "SAFE"]


class Lanes:
    """A client program of one kind for each broker, authenticated in one way."""

    def __init__(
        self, both: tuple[Secured, Secured], files: Files, kind: ClientKind, way: str, **who: Any
    ) -> None:
        """`who` has the arguments of Files.environment."""
        self._programs: list[ClientProgram] = []
        self._environment = files.environment(way, **who)
        run = f"{kind.name}-{way.lower()}-{secrets.token_hex(3)}"
        self.all = [self._lane(secured, files, kind, way, run) for secured in both]

    def _lane(self, secured: Secured, files: Files, kind: ClientKind, way: str, run: str) -> Lane:
        address = _address(secured, way)

        def new_program() -> ClientProgram:
            log = files.directory / f"{run}-{len(self._programs)}.log"
            self._programs.append(ClientProgram(kind, address, log, self._environment))
            return self._programs[-1]

        return Lane(address, new_program(), new_program, Topics(secured.server.address).make, run)

    def close(self) -> None:
        while self._programs:
            self._programs.pop().close()


@pytest.fixture
def lanes(ours: Secured, theirs: Secured, files: Files) -> Iterator[Callable[..., list[Lane]]]:
    opened: list[Lanes] = []

    def open_them(name: str, way: str, **who: Any) -> list[Lane]:
        if way == "GSSAPI" and files.kdc is None:
            pytest.skip(str(kdc.missing()))
        opened.append(Lanes((ours, theirs), files, CLIENTS[name], way, **who))
        return opened[-1].all

    yield open_them
    for one in opened:
        one.close()


_LACKING = {
    # SCRAM and sasl.jaas.config were added in 0.10.2.
    "java-0.9.0.1": {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"},
    # OAUTHBEARER was added in 2.0.
    "java-0.10.2.2": {"OAUTHBEARER"},
    "java-1.1.1": {"OAUTHBEARER"},
    # The wheels are built without Cyrus SASL.
    "confluent-kafka": {"GSSAPI"},
    "kafkajs": {"GSSAPI"},
}
"""Mechanisms that a client does not support."""
CASES = [(name, way) for name in CLIENTS for way in WAYS if way not in _LACKING.get(name, ())]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_clients_see_the_same_results_over_tls_as_on_apache_kafka(
    lanes: Callable[..., list[Lane]], name: str, way: str
) -> None:
    if (name, way) not in EVERYDAY and not campaign.enabled():
        pytest.skip("in campaigns")
    wanted = SCENARIOS if campaign.enabled() else SCENARIOS[:1]
    both = lanes(name, way)
    for scenario in wanted:
        if NEEDS[scenario] <= CLIENTS[name].features:
            with ThreadPoolExecutor(2) as pool:
                ours, theirs = pool.map(partial(attempted, scenario), both)
            assert ours == theirs, scenario.__name__


# Permissions depend on the principal. Its name is either that of a certificate or that of a user.
@pytest.mark.parametrize(("name", "way"), [case for case in CASES if case[1] in ("SSL", "SCRAM-SHA-512")])
def test_a_client_without_permission_gets_kafkas_errors(
    lanes: Callable[..., list[Lane]], name: str, way: str
) -> None:
    if (name, way) not in UNENTITLED and not campaign.enabled():
        pytest.skip("in campaigns")
    with ThreadPoolExecutor(2) as both:
        ours, theirs = both.map(no_right, lanes(name, way, user="bob"))
    assert ours == theirs


@pytest.mark.parametrize(("name", "way"), [case for case in CASES if case[1] not in ("SSL", "GSSAPI")])
def test_a_client_with_a_wrong_password_gets_kafkas_error(
    lanes: Callable[..., list[Lane]], name: str, way: str
) -> None:
    if (name, way) not in IMPOSTORS and not campaign.enabled():
        pytest.skip("in campaigns")
    with ThreadPoolExecutor(2) as both:
        ours, theirs = both.map(_refused, lanes(name, way, impostor=True))
    assert ours == theirs
    assert ours not in ([], [0])


def _refused(lane: Lane) -> object:
    """The error code of the response, or of each record; None for an expired record."""
    return outcome(lane.program.ask("produce", topic="t", records=[{"value": "v", "partition": 0}]))
