"""The suites of other projects."""

from __future__ import annotations

from tests.others import (
    apicurio,
    connect,
    debezium,
    flink,
    franz_go,
    kafka_go,
    kafka_programs,
    kafka_python,
    librdkafka,
    python_frameworks,
    quarkus,
    rskafka,
    sarama,
    spring,
    watermill,
)
from tests.others.suite import Suite

SUITES: tuple[Suite, ...] = (
    franz_go.SUITE,
    kafka_go.SUITE,
    sarama.SUITE,
    watermill.SUITE,
    kafka_python.SUITE,
    librdkafka.SUITE,
    rskafka.SUITE,
    kafka_programs.SUITE,
    *connect.SUITES,
    *python_frameworks.SUITES,
    spring.SUITE,
    apicurio.SUITE,
    flink.SUITE,
    debezium.SUITE,
    quarkus.SUITE,
)
