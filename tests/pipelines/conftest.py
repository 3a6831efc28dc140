"""Fixtures for all pipeline tests: one Spark session, and one broker with the flights data set.

KAFKA_COMPAT_SPARK_AGAINST=genuine runs the same tests against Apache Kafka 3.9.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.pipelines.environment import copy_jars, spark_release
from kafka_compat.pipelines.session import SparkSettings, create_session
from tests.pipelines.cluster import Cluster
from tests.pipelines.environment import QUICK_START
from tests.pipelines.flights import PARTITIONS, flights
from tests.support.campaign import enabled
from tests.support.kafka_jars import cache_directory
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

FLIGHTS_TOPIC = "flights"


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("spark-broker")
    if os.environ.get("KAFKA_COMPAT_SPARK_AGAINST") == "genuine":
        server: Server = GenuineKafka(directory)
    else:
        server = KafkaCompatBroker(directory)
    server.start()
    yield Cluster(server)
    server.stop()


@pytest.fixture(scope="package")
def flights_topic(kafka: Cluster) -> str:
    """A topic with all 336,776 flights in 4 partitions: flight i is at offset i // 4 of partition i % 4."""
    kafka.create_topic(FLIGHTS_TOPIC, PARTITIONS)
    kafka.fill(FLIGHTS_TOPIC, PARTITIONS, flights())
    return FLIGHTS_TOPIC


@pytest.fixture(scope="package")
def connector_jars() -> Path:
    """A directory with the connector's jars, downloaded as `kafka-compat spark jars` does. In a campaign,
    Iceberg's jar is one of them.
    """
    release = spark_release()
    directory = cache_directory() / f"spark-{release.version}"
    copy_jars(directory, release, iceberg=_with_iceberg())
    return directory


def _with_iceberg() -> bool:
    return enabled() and spark_release().iceberg != ""


@pytest.fixture(scope="package")
def spark(connector_jars: Path) -> Iterator[Any]:
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.execution.arrow.pyspark.enabled": "true"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUICK_START.items():
            patch.setenv(name, value)
        own = SparkSettings("local[2]", connector_jars, iceberg=_with_iceberg())
        session = create_session("tests", own, settings=settings)
    yield session
    session.stop()


@pytest.fixture
def read_batch(spark: Any, kafka: Cluster) -> Callable[..., Any]:
    """`read_batch(topic, option=value, …)` returns a batch DataFrame of Spark's Kafka source."""

    def read(topic: str, options: Mapping[str, str] | None = None) -> Any:
        own = {"kafka.bootstrap.servers": kafka.address, "subscribe": topic, "includeHeaders": "true"}
        return spark.read.format("kafka").options(**{**own, **(options or {})}).load()

    return read
