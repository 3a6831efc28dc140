"""The settings that Testcontainers' modules pass in KRaft mode, as compose files.

The clusters are those of the examples for Java. The modules for Node.js, Python and Go start one node, whose
voter is the alias of the container in its network. A script in the container sets the advertised listeners,
whose first port is the one that Docker has chosen on the host.
"""

from __future__ import annotations

from typing import Final

from tests.compose.kraft_file import CLUSTER_ID, ComposeFile, services

_JAVA = "testcontainers/testcontainers-java: examples/kafka-cluster/src/test/java/com/example/kafkacluster"
_BROKERS = {"broker-0": 0, "broker-1": 1, "broker-2": 2}
_CLUSTER = f"""
CLUSTER_ID={CLUSTER_ID}
KAFKA_BROKER_ID={{id}}
KAFKA_NODE_ID={{id}}
KAFKA_PROCESS_ROLES=broker,controller
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
KAFKA_CONTROLLER_QUORUM_VOTERS=0@broker-0:9094,1@broker-1:9094,2@broker-2:9094
KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
KAFKA_INTER_BROKER_LISTENER_NAME=BROKER
KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=3
KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS=3
KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=3
KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=3
KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
KAFKA_LOG_FLUSH_INTERVAL_MESSAGES=9223372036854775807"""
_NEW = f"""{_CLUSTER}
KAFKA_LISTENERS=PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094
KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{{port}},BROKER://{{name}}:9093"""
_OLD = f"""{_CLUSTER}
KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094
KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{{port}},BROKER://{{name}}:9092"""
_PORTS = (32768, 32769, 32770)


def _one(language: str, source: str, name: str, more: str, port: int = 9092) -> ComposeFile:
    text = f"""
KAFKA_BROKER_ID={{id}}
KAFKA_NODE_ID={{id}}
KAFKA_PROCESS_ROLES=broker,controller
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
KAFKA_CONTROLLER_QUORUM_VOTERS=1@{{name}}:9094
KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094
KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
KAFKA_INTER_BROKER_LISTENER_NAME=BROKER
KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS=1
KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{{port}},BROKER://{{name}}:{port}{more}"""
    return ComposeFile(
        f"testcontainers-{language}-in-a-network", source, "confluent", services({name: 1}, text, _PORTS)
    )


FILES: Final = (
    ComposeFile(
        "testcontainers-java-apache",
        f"{_JAVA}/ApacheKafkaContainerCluster.java",
        "apache",
        services(_BROKERS, _NEW, _PORTS),
    ),
    ComposeFile(
        "testcontainers-java-confluent",
        f"{_JAVA}/ConfluentKafkaContainerCluster.java",
        "confluent",
        services(_BROKERS, _NEW, _PORTS),
    ),
    ComposeFile(
        "testcontainers-java-with-kraft",
        f"{_JAVA}/KafkaContainerKraftCluster.java",
        "confluent",
        services(_BROKERS, _OLD, _PORTS),
        command="sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure; "
        f"echo 'kafka-storage format --ignore-formatted -t \"{CLUSTER_ID}\" -c /etc/kafka/kafka.properties'"
        " >> /etc/confluent/docker/configure; echo '' > /etc/confluent/docker/ensure; "
        "/etc/confluent/docker/run",
    ),
    _one(
        "node",
        "testcontainers/testcontainers-node: packages/modules/kafka/src/kafka-container.ts",
        "kafka",
        f"\nCLUSTER_ID={CLUSTER_ID}\nKAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE=false",
    ),
    _one(
        "python",
        "testcontainers/testcontainers-python: testcontainers/community/kafka/__init__.py",
        "kafka",
        f"\nCLUSTER_ID={CLUSTER_ID}",
    ),
    _one(
        "go",
        "testcontainers/testcontainers-go: modules/kafka/kafka.go",
        "kafka",
        "\nCLUSTER_ID=test-cluster\nKAFKA_REST_BOOTSTRAP_SERVERS=PLAINTEXT://0.0.0.0:9093",
    ),
)
