"""Tests of other projects that may fail here although they pass on Apache Kafka, each with the decision."""

from __future__ import annotations

from collections.abc import Mapping

_CREATED_AT_ONCE = (
    "The test deletes topics, and then requests their metadata in a way that creates them. The response "
    "contains the new topics here (docs/design/decisions/0036-topics-created-by-metadata.md)."
)

_STANDALONE = (
    "A standalone broker has no metadata quorum and does not serve DescribeQuorum; nodes of a quorum do "
    "(docs/clusters.md)."
)
_AS_IN_3_9 = (
    "The broker reports its settings as Kafka 3.9 does, in which advertised.listeners can be changed at run "
    "time. Kafka 4 reports it as read-only."
)
_GROUP_SETTINGS = (
    "The broker stores the settings of groups, as Kafka 4 does. The test expects that brokers older than "
    "Kafka 4 reject them, as Kafka 3.9 with ZooKeeper does."
)

KNOWN: Mapping[str, Mapping[str, str]] = {
    "kafka-go": {
        "..TestConn/test_delete_topics": _CREATED_AT_ONCE,
        "..TestConn/test_delete_topics_with_an_invalid_topic": _CREATED_AT_ONCE,
    },
    "kafka-python": {
        "test.integration.test_admin_integration.test_describe_metadata_quorum": _STANDALONE,
        "test.integration.test_admin_integration.test_describe_configs_broker_resource_returns_configs": (
            _AS_IN_3_9
        ),
    },
    "librdkafka": {"0081_admin": _GROUP_SETTINGS},
}
"""The decision, by suite and test."""
