"""Compose files for confluentinc/cp-kafka and confluentinc/confluent-local."""

from __future__ import annotations

from typing import Final

from tests.compose.kraft_file import CLUSTER_ID, ComposeFile, services

_WITHOUT_CHECKS = (
    "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure; "
    "sed -i 's/cub zk-ready/echo ignore zk-ready/' /etc/confluent/docker/ensure; "
    f'echo "kafka-storage format --ignore-formatted -t {CLUSTER_ID} -c /etc/kafka/kafka.properties"'
    " >> /etc/confluent/docker/ensure; /etc/confluent/docker/run"
)
"""What the scripts of compose files for cp-kafka before version 7.4 do."""
_KEY_STORE = """
{prefix}SSL_KEYSTORE_LOCATION=/etc/kafka/secrets/kafka.{who}.keystore.jks
{prefix}SSL_KEYSTORE_PASSWORD=confluent
{prefix}SSL_KEY_PASSWORD=confluent
{prefix}SSL_TRUSTSTORE_LOCATION=/etc/kafka/secrets/kafka.{who}.truststore.jks
{prefix}SSL_TRUSTSTORE_PASSWORD=confluent
{prefix}SSL_CLIENT_AUTH=requested
{prefix}SSL_ENDPOINT_IDENTIFICATION_ALGORITHM={{blank}}"""

FILES: Final = [
    ComposeFile(
        "confluent-one-with-script",
        "confluentinc/cp-all-in-one: cp-all-in-one-kraft/docker-compose.yml",
        "confluent",
        services(
            {"broker": 1},
            """
            KAFKA_BROKER_ID={id}
            KAFKA_NODE_ID={id}
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
            KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092
            KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
            KAFKA_JMX_PORT=9101
            KAFKA_JMX_HOSTNAME=localhost
            KAFKA_PROCESS_ROLES=broker,controller
            KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
            KAFKA_LISTENERS=PLAINTEXT://broker:29092,CONTROLLER://broker:29093,PLAINTEXT_HOST://0.0.0.0:9092
            KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
            KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
            KAFKA_LOG_DIRS=/tmp/kraft-combined-logs
            """,
        ),
        command=_WITHOUT_CHECKS,
    ),
    ComposeFile(
        "confluent-local-one",
        "confluentinc/kafka-images: examples/confluent-local/docker-compose.yml",
        "confluent",
        services(
            {"broker": 1},
            f"""
            CLUSTER_ID={CLUSTER_ID}
            KAFKA_NODE_ID={{id}}
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
            KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092
            KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
            KAFKA_PROCESS_ROLES=broker,controller
            KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
            KAFKA_LISTENERS=PLAINTEXT://broker:29092,CONTROLLER://broker:29093,PLAINTEXT_HOST://0.0.0.0:9092
            KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
            KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
            KAFKA_LOG_DIRS=/tmp/kraft-combined-logs
            KAFKA_REST_HOST_NAME=rest-proxy
            KAFKA_REST_BOOTSTRAP_SERVERS=broker:29092
            KAFKA_REST_LISTENERS=http://0.0.0.0:8082
            """,
        ),
    ),
    ComposeFile(
        "confluent-isolated-ssl",
        "confluentinc/kafka-images: examples/kafka-cluster-ssl/docker-compose.yml",
        "confluent",
        {
            **services(
                {"controller-1": 1},
                f"""
CLUSTER_ID={CLUSTER_ID}
KAFKA_NODE_ID={{id}}
KAFKA_PROCESS_ROLES=controller
KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:SSL
KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:9093
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
KAFKA_LISTENERS=CONTROLLER://localhost:9093"""
                + _KEY_STORE.format(prefix="KAFKA_LISTENER_NAME_CONTROLLER_", who="controller"),
            ),
            **services(
                {"kafka-ssl-1": 2, "kafka-ssl-2": 3, "kafka-ssl-3": 4},
                f"""
CLUSTER_ID={CLUSTER_ID}
KAFKA_NODE_ID={{id}}
KAFKA_PROCESS_ROLES=broker
KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:SSL,SSL:SSL
KAFKA_LISTENER_NAME_SSL_SSL_CLIENT_AUTH=requested
KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:9093
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
KAFKA_ADVERTISED_LISTENERS=SSL://localhost:{{port}}
KAFKA_INTER_BROKER_LISTENER_NAME=SSL
KAFKA_SSL_KEYSTORE_FILENAME=kafka.broker{{n}}.keystore.jks
KAFKA_SSL_KEYSTORE_CREDENTIALS=broker{{n}}_keystore_creds
KAFKA_SSL_KEY_CREDENTIALS=broker{{n}}_sslkey_creds
KAFKA_SSL_TRUSTSTORE_FILENAME=kafka.broker{{n}}.truststore.jks
KAFKA_SSL_TRUSTSTORE_CREDENTIALS=broker{{n}}_truststore_creds
KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM={{blank}}
KAFKA_SSL_CLIENT_AUTH=requested""",
                (19092, 29092, 39092),
            ),
        },
        uses_host_network=True,
    ),
    ComposeFile(
        "confluent-combined-durable",
        "sinarostami75/kafka-kraft-docker-cluster: docker-compose.yml",
        "confluent",
        services(
            {"kafka1": 1, "kafka2": 2, "kafka3": 3},
            """
            CLUSTER_ID=fg2SpXj-Rs2Cb0-amGPTsw
            KAFKA_NODE_ID={id}
            KAFKA_PROCESS_ROLES=broker,controller
            KAFKA_CONTROLLER_QUORUM_VOTERS=1@kafka1:19093,2@kafka2:19093,3@kafka3:19093
            KAFKA_LISTENERS=INTERNAL://0.0.0.0:19092,EXTERNAL://0.0.0.0:9092,CONTROLLER://0.0.0.0:19093
            KAFKA_ADVERTISED_LISTENERS=INTERNAL://{name}:19092,EXTERNAL://localhost:{port}
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
            KAFKA_INTER_BROKER_LISTENER_NAME=INTERNAL
            KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
            KAFKA_LOG_DIRS=/var/lib/kafka/data
            KAFKA_DEFAULT_REPLICATION_FACTOR=3
            KAFKA_MIN_INSYNC_REPLICAS=2
            KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=3
            KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=3
            KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=2
            KAFKA_AUTO_CREATE_TOPICS_ENABLE=false
            KAFKA_JMX_PORT=9999
            KAFKA_OPTS=-javaagent:/opt/jmx-exporter/jmx_prometheus_javaagent.jar=19101:/opt/jmx-exporter/kafka.yml
            """,
            (9092, 9093, 9094),
        ),
    ),
    ComposeFile(
        "confluent-combined-with-script",
        "katyagorshkova/kafka-kraft: docker-compose.yml, scripts/update_run.sh",
        "confluent",
        {
            name: each
            for node_id in (1, 2, 3)
            for name, each in services(
                {f"kafka{node_id}": node_id},
                f"""
                KAFKA_LISTENERS=BROKER://{{name}}:{19091 + node_id},EXTERNAL://{{name}}:{39091 + node_id},CONTROLLER://{{name}}:9093
                KAFKA_ADVERTISED_LISTENERS=BROKER://{{name}}:{19091 + node_id},EXTERNAL://{{name}}:{39091 + node_id}
                KAFKA_INTER_BROKER_LISTENER_NAME=BROKER
                KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
                KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,BROKER:PLAINTEXT,EXTERNAL:PLAINTEXT
                KAFKA_PROCESS_ROLES=controller,broker
                KAFKA_NODE_ID={{id}}
                KAFKA_CONTROLLER_QUORUM_VOTERS=1@kafka1:9093,2@kafka2:9093,3@kafka3:9093
                KAFKA_METADATA_LOG_SEGMENT_MS=15000
                KAFKA_METADATA_MAX_RETENTION_MS=1200000
                KAFKA_METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS=2800
                KAFKA_LOG_DIRS=/tmp/kraft-combined-logs
                """,  # noqa: E501
            ).items()
        },
        command=_WITHOUT_CHECKS,
    ),
    ComposeFile(
        "confluent-local-combined",
        "siddharth-nandagopal/kafka-kraft-cluster: docker-compose.yaml",
        "confluent",
        services(
            {"kafka01": 1, "kafka02": 2, "kafka03": 3},
            f"""
            CLUSTER_ID={CLUSTER_ID}
            KAFKA_PROCESS_ROLES=broker,controller
            KAFKA_NODE_ID={{id}}
            KAFKA_CONTROLLER_QUORUM_VOTERS=1@kafka01:9093,2@kafka02:9093,3@kafka03:9093
            KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093,JINPC_PLAINTEXT://0.0.0.0:{{port}}
            KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
            KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{{name}}:9092,JINPC_PLAINTEXT://localhost:{{port}}
            KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,JINPC_PLAINTEXT:PLAINTEXT
            KAFKA_NUM_PARTITIONS=8
            KAFKA_DEFAULT_REPLICATION_FACTOR=3
            KAFKA_MIN_INSYNC_REPLICAS=2
            KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=3
            KAFKA_REPLICA_LAG_TIME_MAX_MS=30000
            KAFKA_REST_BOOTSTRAP_SERVERS=localhost:{{port}}
            """,
            (29192, 29292, 29392),
        ),
    ),
]
