"""Spark's Kafka connector with every security protocol: it reads, writes and reports login failures in the
same way as with Apache Kafka.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.oracle.sasl_oracle import PACKAGE, SECURED
from tests.security.authority import Authority
from tests.security.oauth.issuer import Issuer, SigningKey
from tests.security.secured import USERS, listeners, store_users
from tests.support import campaign
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

WAYS = ("SSL", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""SSL means a client certificate; the others are mechanisms over SASL_SSL."""
pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
PARTITIONS = 3
RECORDS = 60
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": f"{PACKAGE}OAuthBearerLoginModule",
}

Options = dict[str, str]


class Place(NamedTuple):
    """A broker. `addresses` maps listener names to addresses."""

    server: Server
    addresses: dict[str, str]

    def address(self, way: str) -> str:
        return self.addresses["SSL" if way == "SSL" else "SAFE"]

    def create_topic(self, name: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.addresses["PLAINTEXT"]})
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)


class Clients:
    """The credentials of clients."""

    def __init__(self, authority: Authority, issuer: Issuer, other_issuer: Issuer) -> None:
        """`other_issuer` is a token issuer that the brokers do not trust."""
        self._authority = authority
        self._issuers = (issuer, other_issuer)

    def options(self, way: str, *, impostor: bool = False) -> Options:
        """Return Spark options for a login. An impostor has a wrong password, or a token signed with an
        untrusted key.
        """
        given = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._authority.file)}
        if way == "SSL":
            given["security.protocol"] = "SSL"
            given["ssl.keystore.type"] = "PEM"
            given["ssl.keystore.location"] = str(self._authority.sign("alice").store)
            return _of_kafka(given)
        given |= {"security.protocol": "SASL_SSL", "sasl.mechanism": way}
        login = f'username="alice" password="{"wrong" if impostor else USERS["alice"]}"'
        if way == "OAUTHBEARER":
            login = 'clientId="client" clientSecret="secret" scope="kafka"'
            given["sasl.login.callback.handler.class"] = f"{PACKAGE}OAuthBearerLoginCallbackHandler"
            given["sasl.oauthbearer.token.endpoint.url"] = self._issuers[impostor].token_url
        given["sasl.jaas.config"] = f"{_MODULES[way]} required {login};"
        return _of_kafka(given)


def _of_kafka(settings: Options) -> Options:
    """Add the prefix of the options that Spark passes to Kafka clients."""
    return {f"kafka.{name}": value for name, value in settings.items()}


def _settings(authority: Authority, issuer: Issuer, name: str) -> tuple[Options, dict[str, int]]:
    settings, ports = listeners(authority, name)
    prefix = "listener.name.safe"
    mechanisms = {
        f"{prefix}.sasl.enabled.mechanisms": ",".join(WAYS[1:]),
        f"{prefix}.oauthbearer.sasl.server.callback.handler.class": SECURED,
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{_MODULES['OAUTHBEARER']} required;",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
    }
    return settings | mechanisms, ports


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def issuers() -> Iterator[tuple[Issuer, Issuer]]:
    """Two issuers whose keys differ but have the same key id."""
    with Issuer(SigningKey("k1")) as issuer, Issuer(SigningKey("k1")) as other:
        yield issuer, other


@pytest.fixture(scope="module")
def clients(authority: Authority, issuers: tuple[Issuer, Issuer]) -> Clients:
    return Clients(authority, *issuers)


@pytest.fixture(scope="module")
def places(
    authority: Authority, issuers: tuple[Issuer, Issuer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Place, Place]]:
    """This project's broker, and Apache Kafka with the same listeners."""
    directory: Path = tmp_path_factory.mktemp("secured")
    with contextlib.ExitStack() as stack:

        def launched(server: Server, ports: dict[str, int]) -> Place:
            stack.callback(server.stop)
            server.launch()
            return Place(server, {name: f"127.0.0.1:{port}" for name, port in ports.items()})

        settings, ports = _settings(authority, issuers[0], "ours")
        ours = launched(KafkaCompatBroker(directory / "ours", settings, port=ports["PLAINTEXT"]), ports)
        settings, ports = _settings(authority, issuers[0], "theirs")
        # Apache Kafka reads the settings from a properties file, where a backslash must be doubled.
        settings = {name: value.replace("\\", "\\\\") for name, value in settings.items()}
        theirs = launched(GenuineKafka(directory / "theirs", settings, port=ports["PLAINTEXT"]), ports)
        for place in (ours, theirs):
            place.server.wait_ready(120)
            store_users(place.addresses["PLAINTEXT"])
        yield ours, theirs


def _records(spark: Any) -> Any:
    """Create RECORDS records in one Spark task, so that the order within each partition is deterministic."""
    rows = [
        (
            None if number % 7 == 0 else f"key-{number}".encode(),
            None if number % 11 == 0 else f"value-{number}".encode(),
            [("trace", f"{number}".encode()), ("null", None)] if number % 2 else [],
            number % PARTITIONS,
        )
        for number in range(RECORDS)
    ]
    schema = "key binary, value binary, headers array<struct<key string, value binary>>, partition int"
    return spark.createDataFrame(rows, schema).coalesce(1)


def _plain(frame: Any) -> list[tuple[Any, ...]]:
    """Return all columns except the timestamp, sorted by partition and offset."""
    return sorted(
        (
            row["partition"],
            row["offset"],
            row["key"] and bytes(row["key"]),
            row["value"] and bytes(row["value"]),
            row["timestampType"],
            [(each["key"], each["value"] and bytes(each["value"])) for each in row["headers"] or []],
        )
        for row in frame.collect()
    )


def _write(spark: Any, options: Options, topic: str) -> None:
    _records(spark).write.format("kafka").options(**options, topic=topic).save()


def _read(spark: Any, options: Options, topic: str, **more: str) -> list[tuple[Any, ...]]:
    reader = spark.read.format("kafka").options(**options, subscribe=topic, includeHeaders="true", **more)
    return _plain(reader.load())


def _stream(spark: Any, options: Options, topic: str, checkpoint: Path) -> list[tuple[Any, ...]]:
    """Read the topic with two queries. The second one resumes where the first one ended, after more records
    were written.
    """
    found: list[tuple[Any, ...]] = []

    def more_than_one_batch() -> None:
        source = {"subscribe": topic, "includeHeaders": "true", "startingOffsets": "earliest"}
        reader = spark.readStream.format("kafka").options(**options, **source, maxOffsetsPerTrigger="25")
        writer = reader.load().writeStream.foreachBatch(lambda frame, _: found.extend(_plain(frame)))
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(120), query.lastProgress
        finally:
            query.stop()

    more_than_one_batch()
    assert len(found) == RECORDS
    _write(spark, options, topic)
    more_than_one_batch()
    return sorted(found)


def _scenario(spark: Any, options: Options, topic: str, checkpoint: Path) -> dict[str, Any]:
    _write(spark, options, topic)
    everything = _read(spark, options, topic)
    starts, ends = (json.dumps({topic: offsets}) for offsets in ({0: 5, 1: -2, 2: 19}, {0: 7, 1: 3, 2: -1}))
    part = _read(spark, options, topic, startingOffsets=starts, endingOffsets=ends)
    streamed = _stream(spark, options, topic, checkpoint)
    assert [row[:2] for row in everything] == [
        (partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS // PARTITIONS)
    ]
    assert [row[:2] for row in part] == [(0, 5), (0, 6), (1, 0), (1, 1), (1, 2), (2, 19)]
    assert len({row[:2] for row in streamed}) == len(streamed) == 2 * RECORDS
    return {"everything": everything, "part": part, "streamed": streamed}


@pytest.mark.parametrize("way", WAYS)
def test_spark_gets_the_same_results_as_on_apache_kafka(
    spark: Any, places: tuple[Place, Place], clients: Clients, way: str, tmp_path: Path
) -> None:
    observed = []
    for number, place in enumerate(places):
        options = {**clients.options(way), "kafka.bootstrap.servers": place.address(way)}
        topic = f"spark-{way.lower()}"
        place.create_topic(topic)
        observed.append(_scenario(spark, options, topic, tmp_path / f"{number}"))
    assert observed[0] == observed[1]


def _causes(failing: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the exception classes of a failure and its causes, outermost first, with the messages of Kafka's
    exceptions.
    """
    with pytest.raises(Exception) as failed:  # a py4j exception, or a pyspark exception that wraps it
        failing()
    error: Any = failed.value
    thrown = error.java_exception if hasattr(error, "java_exception") else error._origin
    found = []
    while thrown is not None:
        name = thrown.getClass().getName()
        found.append((name, thrown.getMessage() if name.startswith("org.apache.kafka.") else ""))
        thrown = thrown.getCause()
    return found


@pytest.mark.parametrize("way", WAYS[1:])
def test_a_wrong_password_is_reported_as_in_apache_kafka(
    spark: Any, places: tuple[Place, Place], clients: Clients, way: str
) -> None:
    impostor = clients.options(way, impostor=True)
    told = []
    for place in places:
        options = {**impostor, "kafka.bootstrap.servers": place.address(way)}
        reading = _causes(lambda options=options: _read(spark, options, "t"))  # type: ignore[misc]
        writing = _causes(lambda options=options: _write(spark, options, "t"))  # type: ignore[misc]
        told.append((reading, writing))
    assert told[0] == told[1]
    refused = "org.apache.kafka.common.errors.SaslAuthenticationException"
    assert all(chain[-1][0] == refused for chain in told[0]), told
