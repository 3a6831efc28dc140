"""Compose files for apache/kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.compose.kraft_file import CLUSTER_ID, ComposeFile, services

_ONE_REPLICA = """
KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR=1
KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR=1
KAFKA_LOG_DIRS=/tmp/kraft-combined-logs"""
_CLIENT_TLS = """
KAFKA_SECURITY_PROTOCOL=SSL
KAFKA_SSL_KEYSTORE_FILENAME=kafka01.keystore.jks
KAFKA_SSL_KEYSTORE_CREDENTIALS=kafka_keystore_creds
KAFKA_SSL_KEY_CREDENTIALS=kafka_ssl_key_creds
KAFKA_SSL_TRUSTSTORE_FILENAME=kafka.truststore.jks
KAFKA_SSL_TRUSTSTORE_CREDENTIALS=kafka_truststore_creds
KAFKA_SSL_CLIENT_AUTH=required
KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM="""
_PLAIN_LOGIN = """
KAFKA_SASL_ENABLED_MECHANISMS=PLAIN
KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL=PLAIN
KAFKA_OPTS=-Djava.security.auth.login.config=/etc/kafka/secrets/broker_jaas.conf"""


_APACHE = "apache/kafka: docker/examples/docker-compose-files"
_APACHE_NODES = {"kafka-1": 1, "kafka-2": 2, "kafka-3": 3}
_APACHE_VOTERS = "1@kafka-1:{0},2@kafka-2:{0},3@kafka-3:{0}"
_APACHE_CONTROLLERS = {"controller-1": 1, "controller-2": 2, "controller-3": 3}
_ISOLATED_VOTERS = "1@controller-1:{0},2@controller-2:{0},3@controller-3:{0}"
_ISOLATED_BROKERS = {"kafka-1": 4, "kafka-2": 5, "kafka-3": 6}


def _apache(listener: str, port: int, internal: str = "") -> str:
    """Return the settings that Kafka's own examples have in common. Clients on the host use `listener`_HOST,
    or `listener` if `internal` is the name of the brokers' listener.
    """
    inside, outside = (internal, listener) if internal else (listener, f"{listener}_HOST")
    protocol = listener.partition("-")[0]
    return f"""
CLUSTER_ID={CLUSTER_ID}
KAFKA_NODE_ID={{id}}
KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,{inside}:{protocol},{outside}:{protocol}
KAFKA_INTER_BROKER_LISTENER_NAME={inside}
KAFKA_ADVERTISED_LISTENERS={inside}://{{name}}:1{port},{outside}://localhost:{{port}}
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER{_ONE_REPLICA}"""


def _apache_combined(
    kind: str, listeners: str, text: str, ports: Sequence[int], quorum_port: int = 9093
) -> ComposeFile:
    voters = _APACHE_VOTERS.format(quorum_port)
    roles = f"\nKAFKA_PROCESS_ROLES=broker,controller\nKAFKA_CONTROLLER_QUORUM_VOTERS={voters}"
    return ComposeFile(
        f"apache-combined-{kind}",
        f"{_APACHE}/cluster/combined/{kind}/docker-compose.yml",
        "apache",
        services(_APACHE_NODES, f"{text}{roles}\nKAFKA_LISTENERS={listeners}", ports),
    )


def _apache_isolated(
    kind: str, listeners: str, text: str, ports: Sequence[int], quorum_port: int = 9093
) -> ComposeFile:
    voters = f"\nKAFKA_CONTROLLER_QUORUM_VOTERS={_ISOLATED_VOTERS.format(quorum_port)}"
    controller = f"""
CLUSTER_ID={CLUSTER_ID}
KAFKA_NODE_ID={{id}}
KAFKA_PROCESS_ROLES=controller
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
KAFKA_LISTENERS=CONTROLLER://:{quorum_port}{voters}{_ONE_REPLICA}"""
    return ComposeFile(
        f"apache-isolated-{kind}",
        f"{_APACHE}/cluster/isolated/{kind}/docker-compose.yml",
        "apache",
        {
            **services(_APACHE_CONTROLLERS, controller),
            **services(
                _ISOLATED_BROKERS,
                f"{text}\nKAFKA_PROCESS_ROLES=broker{voters}\nKAFKA_LISTENERS={listeners}",
                ports,
            ),
        },
    )


def _apache_one(kind: str, listeners: str, text: str, port: int) -> ComposeFile:
    roles = "\nKAFKA_PROCESS_ROLES=broker,controller\nKAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093"
    return ComposeFile(
        f"apache-one-{kind}",
        f"{_APACHE}/single-node/{kind}/docker-compose.yml",
        "apache",
        services({"broker": 1}, f"{text}{roles}\nKAFKA_LISTENERS={listeners}", [port]),
    )


_PLAINTEXT = _apache("PLAINTEXT", 9092)
_SASL = _apache("SASL_PLAINTEXT", 9094) + _PLAIN_LOGIN
_SSL = _apache("SSL", 9093, "SSL-INTERNAL") + _CLIENT_TLS
_ON_THE_HOST = {9092: (29092, 39092, 49092), 9093: (29093, 39093, 49093), 9094: (29094, 39094, 49094)}

FILES: Final = [
    _apache_combined(
        "plaintext",
        "PLAINTEXT://:19092,CONTROLLER://:9093,PLAINTEXT_HOST://:9092",
        _PLAINTEXT,
        _ON_THE_HOST[9092],
    ),
    _apache_combined(
        "sasl_plaintext",
        "SASL_PLAINTEXT://:19094,CONTROLLER://:9093,SASL_PLAINTEXT_HOST://:9094",
        _SASL,
        _ON_THE_HOST[9094],
    ),
    _apache_combined(
        "ssl",
        "SSL-INTERNAL://:19093,CONTROLLER://{name}:29092,SSL://:9093",
        _SSL,
        _ON_THE_HOST[9093],
        quorum_port=29092,
    ),
    _apache_isolated(
        "plaintext", "PLAINTEXT://:19092,PLAINTEXT_HOST://:9092", _PLAINTEXT, _ON_THE_HOST[9092]
    ),
    _apache_isolated(
        "sasl_plaintext", "SASL_PLAINTEXT://:19094,SASL_PLAINTEXT_HOST://:9094", _SASL, _ON_THE_HOST[9094]
    ),
    _apache_isolated("ssl", "SSL-INTERNAL://:19093,SSL://:9093", _SSL, _ON_THE_HOST[9093], quorum_port=29092),
    _apache_one(
        "plaintext", "CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092", _PLAINTEXT, 9092
    ),
    _apache_one(
        "sasl_plaintext",
        "CONTROLLER://:29093,SASL_PLAINTEXT_HOST://:9094,SASL_PLAINTEXT://:19094",
        _SASL,
        9094,
    ),
    _apache_one("ssl", "SSL://:9093,CONTROLLER://:29093,SSL-INTERNAL://:19093", _SSL, 9093),
    ComposeFile(
        "apache-one-file-input",
        f"{_APACHE}/single-node/file-input/docker-compose.yml",
        "apache",
        services(
            {"broker": 1},
            f"""
            CLUSTER_ID={CLUSTER_ID}
            KAFKA_NODE_ID={{id}}
            KAFKA_PROCESS_ROLES=broker,controller
            KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
            KAFKA_LISTENERS=PLAINTEXT_HOST://:9092,CONTROLLER://:29093,PLAINTEXT://:19092
            """,
        ),
        properties="advertised.listeners=PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092\n"
        "controller.listener.names=CONTROLLER\n"
        "inter.broker.listener.name=PLAINTEXT\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT\n"
        "log.dirs=/tmp/kraft-combined-logs\n"
        "offsets.topic.replication.factor=1\n"
        "process.roles=broker\n",
    ),
    ComposeFile(
        "apache-isolated-with-users",
        "khiemdoan/kafka-kraft-cluster-docker-compose: compose.yaml",
        "apache",
        {
            **services(
                _APACHE_CONTROLLERS,
                f"""
                KAFKA_CLUSTER_ID={CLUSTER_ID}
                KAFKA_NODE_ID={{id}}
                KAFKA_PROCESS_ROLES=controller
                KAFKA_LISTENERS=CONTROLLER://:9093
                KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT
                KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
                KAFKA_CONTROLLER_QUORUM_VOTERS={_ISOLATED_VOTERS.format(9093)}
                KAFKA_JMX_PORT=9997
                """,
            ),
            **{
                name: {
                    **each,
                    "KAFKA_LISTENER_NAME_EXTERNAL_PLAIN_SASL_JAAS_CONFIG": "org.apache.kafka.common.security."
                    'plain.PlainLoginModule required \\\nusername="alice" \\\npassword="alice-secret" \\\n'
                    'user_alice="alice-secret";\n',
                }
                for name, each in services(
                    {"broker-1": 4, "broker-2": 5, "broker-3": 6, "broker-4": 7},
                    f"""
                    KAFKA_CLUSTER_ID={CLUSTER_ID}
                    KAFKA_NODE_ID={{id}}
                    KAFKA_PROCESS_ROLES=broker
                    KAFKA_LISTENERS=INTERNAL://:9092,EXTERNAL://:9094
                    KAFKA_ADVERTISED_LISTENERS=INTERNAL://{{name}}:9092,EXTERNAL://127.0.0.1:{{port}}
                    KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT
                    KAFKA_INTER_BROKER_LISTENER_NAME=INTERNAL
                    KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
                    KAFKA_CONTROLLER_QUORUM_VOTERS={_ISOLATED_VOTERS.format(9093)}
                    KAFKA_SASL_ENABLED_MECHANISMS=PLAIN
                    KAFKA_JMX_PORT=9997
                    """,
                    (19094, 29094, 39094, 49094),
                ).items()
            },
        },
    ),
    ComposeFile(
        "apache-isolated-without-id",
        "mat-sik/kafka-kraft-cluster-example: docker-compose.yaml",
        "apache",
        {
            **services(
                _APACHE_CONTROLLERS,
                f"""
                KAFKA_NODE_ID={{id}}
                KAFKA_PROCESS_ROLES=controller
                KAFKA_LISTENERS=CONTROLLER://:9093
                KAFKA_INTER_BROKER_LISTENER_NAME=BROKER
                KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
                KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,BROKER:PLAINTEXT
                KAFKA_CONTROLLER_QUORUM_VOTERS={_ISOLATED_VOTERS.format(9093)}
                """,
            ),
            **services(
                {"broker-1": 4, "broker-2": 5, "broker-3": 6},
                f"""
                KAFKA_NODE_ID={{id}}
                KAFKA_PROCESS_ROLES=broker
                KAFKA_LISTENERS=BROKER://:19092,CLIENT://:9092
                KAFKA_ADVERTISED_LISTENERS=BROKER://{{name}}:19092,CLIENT://localhost:{{port}}
                KAFKA_INTER_BROKER_LISTENER_NAME=BROKER
                KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
                KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,BROKER:PLAINTEXT,CLIENT:PLAINTEXT
                KAFKA_CONTROLLER_QUORUM_VOTERS={_ISOLATED_VOTERS.format(9093)}
                """,
                _ON_THE_HOST[9092],
            ),
        },
    ),
    ComposeFile(
        "apache-combined-named-hosts",
        "Nandanbharadwaj3797/kafka-kraft-docker-cluster: MultiBroker/docker-compose.yml",
        "apache",
        services(
            {"broker1": 1, "broker2": 2, "broker3": 3},
            """
            CLUSTER_ID=MkU3OEVBNTcwNTJENDM2QkQxQk
            KAFKA_NODE_ID={id}
            KAFKA_PROCESS_ROLES=broker,controller
            KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker1:29093,2@broker2:29093,3@broker3:29093
            KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
            KAFKA_LISTENERS=PLAINTEXT://{name}:29092,CONTROLLER://{name}:29093
            KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{name}:29092
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
            KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
            KAFKA_LOG_DIRS=/var/lib/kafka/data
            """,
        ),
    ),
]
