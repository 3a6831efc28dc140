"""Where this broker's defaults differ from Kafka's, and the settings that only it has.

Kafka's defaults suit a cluster on a server: every interface, data under /tmp, an id asked of ZooKeeper. Ours
suit one person who types `kafka-compat serve`: loopback only, a data folder that survives a reboot, id 1.
"""

import os

from kafka_compat.config.machine import memory_bytes

_MIB = 1024 * 1024


def default_log_dir() -> str:
    """The data folder when neither log.dirs nor log.dir is set: a folder of the user's own (XDG base
    directories)."""
    base = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/share")
    return os.path.join(base, "kafka-compat", "logs")


OWN_DEFAULTS: dict[str, str] = {
    "broker.id": "1",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dir": default_log_dir(),
    # Kafka's default is -1, no limit: its memory is that of a JVM, which has a limit of its own.
    "queued.max.request.bytes": str(min(128 * _MIB, memory_bytes() // 8)),
}

#: `kafka.compat.record.validation.enable`: look into every record of a produced batch, as Kafka does; without
#: it only the batch header and its CRC are checked.
#: `kafka.compat.frame.timeout.ms`: how long a client may take to send the rest of a request that it has
#: begun.
#: `kafka.compat.queued.max.response.bytes`: how much of all answers together may wait in memory to be sent.
#: `kafka.compat.transaction.version`: the level of the feature transaction.version that clients are told of;
#: with 2 those of Kafka 4 use an epoch for each transaction (KIP-890 part 2). All brokers of a cluster alike.
#: `kafka.compat.scram.credentials.file`: users that the cluster begins with (security/first_users.py).
#: `kafka.compat.sasl.jaas.file`: a JAAS file whose section LISTENER.KafkaServer, or else KafkaServer, says
#: what sasl.jaas.config of a listener does not: Java's property java.security.auth.login.config.
#: `kafka.compat.http.listener`: where HTTP is served, as http://127.0.0.1:8080; nowhere where it is empty.
#: `kafka.compat.http.token`: what whoever asks there has to send, as a bearer token; needed where other
#: machines can ask.
#: `kafka.compat.client.metrics.series.max`: how many time series of what clients push are kept for /metrics.
#: `kafka.compat.otlp.endpoint`: where metrics are pushed to as OTLP, as http://127.0.0.1:4318/v1/metrics,
#: each `kafka.compat.otlp.interval.ms`, with the headers of `kafka.compat.otlp.headers`, name=value,….
#: `kafka.compat.metrics.dialect`: by whose rules for the JMX exporter metrics have their names.
#: `kafka.compat.control.enable`: serve the control API there, by which tests put the time forward.
#: `kafka.compat.http.page.enable`: serve the page for people there. It may do what its principal may,
#: `kafka.compat.http.page.principal`, and changes nothing unless `kafka.compat.http.page.write.enable`.
#: `kafka.compat.schema.registry.url`: who is asked for schemas of keys and values that the page shows, as
#: http://127.0.0.1:8081; `….basic.auth.user.info`, a user and a password as user:password, is sent to it.
#: `kafka.compat.log.level`: from which levels on loggers write, as INFO,kafka_compat.cluster=DEBUG.
#: `kafka.compat.log.format`: text, or json: one object for each line.
#: `kafka.compat.log.slow.request.ms`: from which time on a request is told of as slow; -1: none is.
#: `kafka.compat.zookeeper.sasl.jaas.config`: with what this broker logs in at ZooKeeper, as in
#: sasl.jaas.config. In its stead counts a section of a JAAS file, `kafka.compat.zookeeper.sasl.jaas.file` and
#: `….jaas.section`: Java's properties java.security.auth.login.config and zookeeper.sasl.clientconfig.
#: `kafka.compat.zookeeper.sasl.enable` is Java's zookeeper.sasl.client.
OWN_TABLE = f"""
kafka.compat.scram.credentials.file string null medium read-only
kafka.compat.record.validation.enable boolean true medium read-only
kafka.compat.transaction.version short 0 medium read-only [0,...,2]
kafka.compat.frame.timeout.ms long 30000 medium read-only [1,...]
kafka.compat.queued.max.response.bytes long {min(64 * _MIB, memory_bytes() // 16)} medium read-only
kafka.compat.http.listener string null medium read-only
kafka.compat.http.token password null medium read-only
kafka.compat.client.metrics.series.max int 50000 low read-only [1,...]
kafka.compat.metrics.dialect string jmx-exporter low read-only one-of:jmx-exporter,confluent
kafka.compat.otlp.endpoint string null medium read-only
kafka.compat.otlp.headers password null medium read-only
kafka.compat.otlp.interval.ms long 60000 low read-only [100,...]
kafka.compat.control.enable boolean false medium read-only
kafka.compat.http.page.enable boolean false medium read-only
kafka.compat.http.page.principal string User:ANONYMOUS medium read-only
kafka.compat.http.page.write.enable boolean false medium read-only
kafka.compat.schema.registry.url string null medium read-only
kafka.compat.schema.registry.basic.auth.user.info password null medium read-only
kafka.compat.log.level string null medium read-only log-levels
kafka.compat.log.format string text medium read-only one-of:text,json
kafka.compat.log.slow.request.ms long -1 low cluster-wide [-1,...]
kafka.compat.sasl.jaas.file string null medium read-only
kafka.compat.zookeeper.sasl.jaas.config password null medium read-only
kafka.compat.zookeeper.sasl.jaas.file string null medium read-only
kafka.compat.zookeeper.sasl.jaas.section string Client low read-only
kafka.compat.zookeeper.sasl.enable boolean true low read-only
"""
