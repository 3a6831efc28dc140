"""Compose files for bitnami/kafka."""

from __future__ import annotations

from typing import Final

from tests.compose.kraft_file import ComposeFile, services

_BITNAMI_NODES = {"kafka-0": 0, "kafka-1": 1, "kafka-2": 2}
_BITNAMI_VOTERS = "0@kafka-0:9093,1@kafka-1:9093,2@kafka-2:9093"

FILES: Final = [
    ComposeFile(
        "bitnami-combined",
        "bitnami/containers: bitnami/kafka/3.4/debian-12/docker-compose-cluster.yml",
        "bitnami",
        services(
            _BITNAMI_NODES,
            f"""
            KAFKA_CFG_NODE_ID={{id}}
            KAFKA_CFG_PROCESS_ROLES=controller,broker
            KAFKA_CFG_CONTROLLER_QUORUM_VOTERS={_BITNAMI_VOTERS}
            KAFKA_KRAFT_CLUSTER_ID=abcdefghijklmnopqrstuv
            KAFKA_CFG_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093
            KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://:9092
            KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
            KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
            KAFKA_CFG_INTER_BROKER_LISTENER_NAME=PLAINTEXT
            KAFKA_CFG_OFFSETS_TOPIC_REPLICATION_FACTOR=3
            KAFKA_CFG_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=3
            KAFKA_CFG_TRANSACTION_STATE_LOG_MIN_ISR=2
            """,
        ),
    ),
    ComposeFile(
        "bitnami-combined-external",
        "folt/kafka-kraft-cluster-docker-example: kafka-docker/docker-compose.yml",
        "bitnami",
        services(
            _BITNAMI_NODES,
            f"""
            KAFKA_CFG_NODE_ID={{id}}
            KAFKA_CFG_PROCESS_ROLES=controller,broker
            KAFKA_CFG_CONTROLLER_QUORUM_VOTERS={_BITNAMI_VOTERS}
            KAFKA_KRAFT_CLUSTER_ID=7VIMbIghSXClDAAA5EMuHg
            KAFKA_CFG_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093,EXTERNAL://:9094
            KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://:9092,EXTERNAL://localhost:{{port}}
            KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT
            KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
            KAFKA_CFG_INTER_BROKER_LISTENER_NAME=PLAINTEXT
            KAFKA_CFG_OFFSETS_TOPIC_REPLICATION_FACTOR=3
            KAFKA_CFG_AUTO_CREATE_TOPICS_ENABLE=false
            """,
            (29094, 29194, 29294),
        ),
    ),
    ComposeFile(
        "bitnami-combined-host-name",
        "rusmansurov/Demo: Kafka/docker-compose.yaml",
        "bitnami",
        services(
            {"kafka-1": 1, "kafka-2": 2, "kafka-3": 3},
            """
            KAFKA_CFG_NODE_ID={id}
            KAFKA_KRAFT_CLUSTER_ID=QoykSY6BTyS1PdtJDsYIQA
            KAFKA_CFG_PROCESS_ROLES=controller,broker
            KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=1@kafka-1:9091,2@kafka-2:9091,3@kafka-3:9091
            KAFKA_CFG_LISTENERS=PLAINTEXT://:9090,CONTROLLER://:9091,EXTERNAL://:{port}
            KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://{name}:9090,EXTERNAL://localhost:{port}
            KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT
            KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
            KAFKA_CFG_INTER_BROKER_LISTENER_NAME=PLAINTEXT
            """,
            (9092, 9093, 9094),
        ),
    ),
    ComposeFile(
        "bitnami-one-voter-more-brokers",
        "vishalendu/kafka-kraft-cluster-setup: docker-compose.yaml (whose brokers also bind "
        "CONTROLLER, which Kafka rejects)",
        "bitnami",
        {
            name: each
            for node_id, roles, controller in (
                (0, "broker,controller", ",CONTROLLER://:9093"),
                (1, "broker", ""),
                (2, "broker", ""),
            )
            for name, each in services(
                {f"kafka-{node_id}": node_id},
                f"""
                KAFKA_ENABLE_KRAFT=yes
                ALLOW_PLAINTEXT_LISTENER=yes
                KAFKA_CFG_PROCESS_ROLES={roles}
                KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
                KAFKA_CFG_LISTENERS=PLAINTEXT://:{node_id + 1}9092{controller}
                KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
                KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://{{name}}:{node_id + 1}9092
                KAFKA_BROKER_ID={{id}}
                KAFKA_CFG_NODE_ID={{id}}
                KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=0@kafka-0:9093
                KAFKA_KRAFT_CLUSTER_ID=TkU3oEVVNTZwNJJENDL2Q0
                """,
            ).items()
        },
    ),
    ComposeFile(
        "bitnami-isolated-one-broker",
        "DonaldKellett/kafka-kraft-1c1b: compose.yaml",
        "bitnami",
        {
            **services(
                {"kafka-controller-0": 0},
                """
                KAFKA_CFG_NODE_ID={id}
                KAFKA_CFG_PROCESS_ROLES=controller
                KAFKA_CFG_LISTENERS=CONTROLLER://0.0.0.0:9093
                KAFKA_CFG_ADVERTISED_LISTENERS=CONTROLLER://kafka-controller-0:9093
                KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT
                KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=0@kafka-controller-0:9093
                KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
                KAFKA_KRAFT_CLUSTER_ID=ZmViNjFkY2NkNWE4MTFlZm
                """,
            ),
            **services(
                {"kafka-broker-0": 1},
                """
                KAFKA_CFG_NODE_ID={id}
                KAFKA_CFG_PROCESS_ROLES=broker
                KAFKA_CFG_LISTENERS=PLAINTEXT://0.0.0.0:9092
                KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://kafka-broker-0:9092
                KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
                KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=0@kafka-controller-0:9093
                KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
                KAFKA_KRAFT_CLUSTER_ID=ZmViNjFkY2NkNWE4MTFlZm
                """,
            ),
        },
    ),
]
