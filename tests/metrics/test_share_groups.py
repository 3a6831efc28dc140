"""Metrics of share groups, with the names and values of Apache Kafka 4.4."""

from __future__ import annotations

from confluent_kafka import AcknowledgeType, Message, ShareConsumer
from prometheus_client.parser import text_string_to_metric_families

from kafka_compat.testing import KafkaBroker
from tests.control.clients import produce
from tests.metrics.scraping import get
from tests.share_groups.share_members import configure_group
from tests.support.process import wait_until

_GROUP = {
    "share.auto.offset.reset": "earliest",
    "errors.deadletterqueue.topic.name": "dlq.t",
}


def scraped(broker: KafkaBroker) -> dict[tuple[str, ...], float]:
    """Return the samples of share groups by name, and the values of their labels in the order of names."""
    text = get(broker.control.url, "/metrics")[1].decode()
    return {
        (
            sample.name.removeprefix("kafka_server_"),
            *(sample.labels[each] for each in sorted(sample.labels)),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("kafka_server_share")
    }


def member(broker: KafkaBroker) -> ShareConsumer:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "share.acknowledgement.mode": "explicit",
            "log_level": 0,
        }
    )
    consumer.subscribe(["t"])
    return consumer


def read(consumer: ShareConsumer) -> list[Message]:
    """Return the four records of the topic, which one poll returns."""
    found: list[Message] = []

    def are_read() -> bool:
        found.extend(consumer.poll(0.2))
        return len(found) == 4

    wait_until(are_read, 20, "records")
    return found


def test_share_groups_have_kafkas_metrics() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t")
        broker.create_topic("dlq.t", config={"errors.deadletterqueue.group.enable": "true"})
        configure_group(broker.bootstrap_servers, "g", _GROUP)
        produce(broker, "t", 4)
        slow, consumer = member(broker), member(broker)
        read(slow)
        assert broker.control.expire_locks("g", "t") == 4
        for message in read(consumer)[:3]:
            how = AcknowledgeType.REJECT if message.offset() == 0 else AcknowledgeType.ACCEPT
            consumer.acknowledge(message, how)
        consumer.commit_sync()
        broker.control.await_records("dlq.t", 1)
        broker.control.await_accepted("g", "t", remaining=1)
        now = scraped(broker)
        slow.close()
        consumer.close()

    assert now["sharepartitionmetrics_inflightmessagecount", "g", "0", "t"] == 1
    assert now["sharepartitionmetrics_acquisitionlocktimeout_total", "g", "0", "t"] == 4
    assert now["sharepartitionmetrics_inflightbatchmessagecount", "g", "0", "0.50", "t"] == 4
    assert now["sharegroupmetrics_recordacknowledgements_total", "Accept"] == 2
    assert now["sharegroupmetrics_recordacknowledgements_total", "Reject"] == 1
    assert now["sharegroupmetrics_recordacknowledgements_total", "Release"] == 0
    assert now["sharegroupmetrics_requesttopicpartitionsfetchratio", "g", "0.99"] == 100
    assert ("sharegroupmetrics_topicpartitionsacquiretimems", "g", "0.50") in now
    assert ("sharegroupmetrics_partitionloadtimems", "0.50") in now
    assert now["sharegroupmetrics_deadletterqueuerecordcount_count_total", "g"] == 1
    assert now["sharegroupmetrics_deadletterqueuetotalproducerequests_total", "g"] == 1
    assert now["sharegroupmetrics_deadletterqueuefailedproducerequests_total", "g"] == 0
    assert now["share_coordinator_metrics_write_total",] >= 2
    assert now["share_coordinator_metrics_write_latency_max",] >= 0
    assert now["share_coordinator_metrics_num_partitions", "active"] >= 1
