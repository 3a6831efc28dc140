"""Defaults that differ from Kafka's, and settings that Kafka does not have.

Kafka's defaults suit a cluster of servers: all network interfaces, data under /tmp, and an ID from ZooKeeper.
The defaults here suit a developer who runs `kafka-compat serve`: only the loopback interface, data that
survives a reboot, and ID 1.
"""

import contextlib
import os
import sys

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes() -> int:
    """Return the memory available to this process: the machine's, or the limit of its cgroup if lower."""
    found = sys.maxsize
    with contextlib.suppress(ValueError, OSError):
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        try:
            with open(path) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdecimal():
            found = min(found, int(text))
    return found


_MIB = 1024 * 1024


def default_log_dir() -> str:
    """Return the data directory in the user's home (XDG), which is used if log.dirs and log.dir are unset."""
    base = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/share")
    return os.path.join(base, "kafka-compat", "logs")


OWN_DEFAULTS: dict[str, str] = {
    "broker.id": "1",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dir": default_log_dir(),
    # Limit requests in memory by default. Kafka's default is -1 (no limit), because the JVM limits its heap.
    "queued.max.request.bytes": str(min(128 * _MIB, memory_bytes() // 8)),
}

OWN_TABLE = f"""
kafka.compat.scram.credentials.file string null medium read-only works # File with SCRAM credentials that are imported at startup, before the broker accepts connections. Each version of the file is imported only once per cluster. Unset: no credentials are imported.
kafka.compat.record.validation.enable boolean true medium read-only works # Whether each record in a produced batch is validated. false: only the batch header and the checksum are validated.
kafka.compat.group.version short null medium read-only works [0,...,1] # Default level of the feature group.version, until kafka-features changes the level. 1: groups may use the consumer protocol (KIP-848). Use the same value on all brokers. Unset: 0 with ZooKeeper, otherwise 1.
kafka.compat.share.version short null medium read-only works [0,...,2] # Default level of the feature share.version, until kafka-features changes the level. 1: groups may be share groups (KIP-932). 2: share groups may have dead letter queues (KIP-1191). Use the same value on all brokers. Unset: 0 with ZooKeeper, otherwise 2.
kafka.compat.transaction.version short null medium read-only works [0,...,2] # Default level of the feature transaction.version, until kafka-features changes the level. 2: Kafka 4 clients use a new epoch for each transaction (KIP-890). Use the same value on all brokers. Unset: 0 with ZooKeeper, otherwise 2.
kafka.compat.emulated.version string null medium read-only works one-of:0.10.0,0.10.1,0.10.2,0.11.0,1.0,1.1,2.0,2.1,2.2,2.3,2.4,2.5,2.6,2.7,2.8,3.0,3.1,3.2,3.3,3.4,3.5,3.6,3.7,3.8,3.9,4.0,4.1,4.2,4.3,4.4 # Kafka version whose APIs, versions and features the broker reports to clients, for tests of clients with older brokers. The broker rejects other versions of requests. If there are several listeners, the setting does not apply to the inter-broker listener. Unset: the broker reports all that it supports.
kafka.compat.published.listeners string null medium read-only works # Addresses that clients outside the broker's networks receive, such as those that connect through a published port of its container, in the format of listeners. Other clients receive the address to which they connected. Listeners in advertised.listeners are not affected. Unset: each client receives the address to which it connected.
kafka.compat.metadata.store string null medium cluster-wide works one-of:zookeeper,quorum # Store to which the metadata of a cluster moves as soon as all brokers have zookeeper.metadata.migration.enable=true: zookeeper or quorum. Unset: the metadata stays where it is.
kafka.compat.frame.timeout.ms long 30000 medium read-only works [1,...] # Maximum time in milliseconds between the first and the last byte of a request. The broker closes the connections of slower clients.
kafka.compat.queued.max.response.bytes long {min(64 * _MIB, memory_bytes() // 16)} medium read-only works # Maximum size in bytes of responses waiting to be sent. Above the limit, the broker does not serve clients that have unread responses; above twice the limit, it disconnects them.
kafka.compat.http.listener string null medium read-only works # Address of the HTTP listener for metrics, health checks and the web console, such as http://127.0.0.1:8080. With --processes N, this is the first of N consecutive ports. Unset: no listener.
kafka.compat.http.token password null medium read-only works # Bearer token that HTTP requests must contain. Unset: no token is required, and the listener may bind only to loopback addresses.
kafka.compat.client.metrics.series.max int 50000 low read-only works [1,...] # Maximum number of time series stored from metrics that clients push. A single client may use up to a tenth of this limit.
kafka.compat.metrics.dialect string jmx-exporter low read-only works one-of:jmx-exporter,confluent # Naming scheme of metrics: jmx-exporter (used by Strimzi and Grafana) or confluent (used by jmx-monitoring-stacks).
kafka.compat.otlp.endpoint string null medium read-only works # URL to which metrics are pushed with OTLP, such as http://127.0.0.1:4318/v1/metrics. Unset: metrics are not pushed.
kafka.compat.otlp.headers password null medium read-only works # HTTP headers of OTLP requests, as NAME=VALUE,NAME=VALUE with percent-encoded values, such as Authorization=Bearer%20TOKEN. Unset: no additional headers.
kafka.compat.otlp.interval.ms long 60000 low read-only works [100,...] # Interval in milliseconds between pushes of metrics.
kafka.compat.control.enable boolean false medium read-only works # Whether the HTTP listener serves the control API for tests (docs/testing.md). Do not enable it in production.
kafka.compat.http.page.enable boolean false medium read-only works # Whether the HTTP listener serves the web console.
kafka.compat.http.page.principal string User:ANONYMOUS medium read-only works # Principal whose permissions the authorizer checks for requests from the web console.
kafka.compat.http.page.write.enable boolean false medium read-only works # Whether the web console can change topics, groups and settings. false: the web console is read-only.
kafka.compat.schema.registry.url string null medium read-only works # URL of the schema registry that the web console uses to decode records, such as http://127.0.0.1:8081. Unset: no registry is used.
kafka.compat.schema.registry.basic.auth.user.info password null medium read-only works # User name and password for the schema registry, as USER:PASSWORD. Unset: requests are not authenticated.
kafka.compat.log.level string null medium read-only works log-levels # Log levels of the root logger and of other loggers, such as INFO,kafka_compat.cluster=DEBUG. Unset: WARN.
kafka.compat.log.format string text medium read-only works one-of:text,json # Format of log lines: text or json.
kafka.compat.log.slow.request.ms long -1 low cluster-wide works [-1,...] # Duration in milliseconds above which a request is logged as slow. -1: no requests are logged.
kafka.compat.sasl.jaas.file string null medium read-only works # JAAS file whose KafkaServer section applies to listeners without a sasl.jaas.config. Unset: no file is read.
kafka.compat.zookeeper.sasl.jaas.config password null medium read-only works # Credentials for ZooKeeper (DIGEST-MD5), in the format of sasl.jaas.config. Unset: the credentials in kafka.compat.zookeeper.sasl.jaas.file, if that is set.
kafka.compat.zookeeper.sasl.jaas.file string null medium read-only works # JAAS file with the credentials for ZooKeeper. If neither this nor kafka.compat.zookeeper.sasl.jaas.config is set, the broker does not log in.
kafka.compat.zookeeper.sasl.jaas.section string Client low read-only works # Section of the JAAS file that contains the credentials for ZooKeeper.
kafka.compat.zookeeper.sasl.enable boolean true low read-only works # Whether the broker logs in to ZooKeeper if credentials are configured. false: it never logs in.
"""  # noqa: E501
