"""Settings in the server.properties files of Apache Kafka's releases, line by line."""

from __future__ import annotations

_COMMON = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "num.partitions": "1",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.retention.check.interval.ms": "300000",
}
_KRAFT = {
    **_COMMON,
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
    "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    "log.dirs": "/tmp/kraft-combined-logs",
    "log.segment.bytes": "1073741824",
}

STOCK_FILES = {
    "3.9 with ZooKeeper": {
        **_COMMON,
        "broker.id": "0",
        "log.dirs": "/tmp/kafka-logs",
        "zookeeper.connect": "localhost:2181",
        "zookeeper.connection.timeout.ms": "18000",
        "group.initial.rebalance.delay.ms": "0",
    },
    "3.9 with KRaft": {**_KRAFT, "controller.quorum.voters": "1@localhost:9093"},
    "3.9 with KRaft, a dynamic quorum": {**_KRAFT, "controller.quorum.bootstrap.servers": "localhost:9093"},
    "4.4": {
        **_KRAFT,
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    },
}


def text(settings: dict[str, str]) -> str:
    """Return the settings as the text of a properties file."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())
