"""Brokers that need no group coordinator for share groups."""

from tests.support.servers import KafkaCompatBroker

SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1500",
    "group.share.max.size": "10",
    "group.share.max.share.sessions": "10",
    "kafka.compat.share.version": "2",
}


class MemoryBroker(KafkaCompatBroker):
    """A broker that keeps the state of share-partitions in memory (`memory_broker`)."""

    def command(self) -> list[str]:
        return [
            "tests.share_partitions.memory_broker" if each == "kafka_compat" else each
            for each in super().command()
        ]
