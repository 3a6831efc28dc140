"""Where this broker's defaults differ from Kafka's, and the settings that only it has.

Kafka's defaults suit a cluster on a server: every interface, data under /tmp, an id asked of ZooKeeper. Ours
suit one person who types `kafka-compat serve`: loopback only, a data folder that survives a reboot, id 1.
"""

import contextlib
import os
import sys

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes() -> int:
    """The memory that this process may use: the machine's, or less if its cgroup (v2 or v1) says so."""
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

OWN_TABLE = f"""
kafka.compat.scram.credentials.file string null medium read-only works
kafka.compat.record.validation.enable boolean true medium read-only works
kafka.compat.transaction.version short 0 medium read-only works [0,...,2]
kafka.compat.frame.timeout.ms long 30000 medium read-only works [1,...]
kafka.compat.queued.max.response.bytes long {min(64 * _MIB, memory_bytes() // 16)} medium read-only works
kafka.compat.http.listener string null medium read-only works
kafka.compat.http.token password null medium read-only works
kafka.compat.client.metrics.series.max int 50000 low read-only works [1,...]
kafka.compat.metrics.dialect string jmx-exporter low read-only works one-of:jmx-exporter,confluent
kafka.compat.otlp.endpoint string null medium read-only works
kafka.compat.otlp.headers password null medium read-only works
kafka.compat.otlp.interval.ms long 60000 low read-only works [100,...]
kafka.compat.control.enable boolean false medium read-only works
kafka.compat.http.page.enable boolean false medium read-only works
kafka.compat.http.page.principal string User:ANONYMOUS medium read-only works
kafka.compat.http.page.write.enable boolean false medium read-only works
kafka.compat.schema.registry.url string null medium read-only works
kafka.compat.schema.registry.basic.auth.user.info password null medium read-only works
kafka.compat.log.level string null medium read-only works log-levels
kafka.compat.log.format string text medium read-only works one-of:text,json
kafka.compat.log.slow.request.ms long -1 low cluster-wide works [-1,...]
kafka.compat.sasl.jaas.file string null medium read-only works
kafka.compat.zookeeper.sasl.jaas.config password null medium read-only works
kafka.compat.zookeeper.sasl.jaas.file string null medium read-only works
kafka.compat.zookeeper.sasl.jaas.section string Client low read-only works
kafka.compat.zookeeper.sasl.enable boolean true low read-only works
"""
