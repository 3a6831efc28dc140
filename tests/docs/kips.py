"""The Kafka Improvement Proposals that people ask a broker for: what is here, and which test shows it."""

from __future__ import annotations

from typing import NamedTuple

from kafka_compat.protocol.api_keys import ApiKey


class Kip(NamedTuple):
    """One proposal. `shown_by` is a test, relative to tests/; without one it is not here.

    `api`: it is here when that is served, whatever else is said.
    """

    number: int
    what: str
    shown_by: str = ""
    note: str = ""
    api: ApiKey | None = None


KIPS = (
    Kip(11, "Access control lists", "security/acls/test_beside_genuine.py"),
    Kip(13, "Quotas of bytes", "quotas/test_clients.py"),
    Kip(31, "Offsets inside a compressed batch are relative", "interop/test_old_formats.py"),
    Kip(32, "Timestamps of records; `message.timestamp.type`", "clients/test_matrix.py"),
    Kip(33, "The index by time", "storage/test_indexes.py"),
    Kip(35, "Clients ask for versions", "clients/test_matrix.py"),
    Kip(36, "Racks: replicas are spread over them", "cluster/test_assignment.py"),
    Kip(43, "SASL with several mechanisms", "security/test_clients_like_genuine.py"),
    Kip(48, "Delegation tokens", "security/tokens/test_like_genuine.py"),
    Kip(55, "Quotas of users", "quotas/test_in_force.py"),
    Kip(62, "Members that poll late leave; the rebalance timeout", "groups/test_transcripts.py"),
    Kip(73, "Replication that is throttled", "replication/test_replication_quota.py"),
    Kip(74, "A limit for a whole fetch", "conformance/test_records.py"),
    Kip(82, "Headers of records", "clients/test_matrix.py"),
    Kip(84, "SCRAM-SHA-256 and -512", "security/sasl/test_scram.py"),
    Kip(98, "Idempotence and transactions", "transactions/test_clients.py"),
    Kip(101, "Followers truncate by leader epochs", "simulation/test_known_cases.py"),
    Kip(103, "Listeners for clients and for brokers", "security/test_between_brokers.py"),
    Kip(107, "DeleteRecords", "replication/test_delete_records.py"),
    Kip(110, "zstd", "storage/test_compression.py"),
    Kip(112, "A disk that fails takes its partitions along, not the broker", "disks/test_faults.py"),
    Kip(113, "Moves between folders of a broker", "disks/test_moves.py"),
    Kip(124, "Quotas of time", "quotas/test_throttle_times.py"),
    Kip(133, "Settings are read and changed by requests", "conformance/test_configs.py"),
    Kip(134, "The first rebalance waits for more members", "groups/test_transcripts.py"),
    Kip(152, "A refused login is told", "security/test_exchange_like_genuine.py"),
    Kip(211, "Offsets expire when their group has gone", "groups/test_coordinator.py"),
    Kip(219, "Throttled clients are answered at once, and muted", "quotas/test_throttle_times.py"),
    Kip(226, "Settings of a running broker", "config/test_config_manager.py"),
    Kip(227, "Fetch sessions", "replication/test_fetch_session.py"),
    Kip(255, "OAUTHBEARER", "security/oauth/test_listener.py"),
    Kip(279, "Followers truncate right after quick failovers", "simulation/test_known_cases.py"),
    Kip(290, "ACLs of name prefixes", "security/acls/test_rules.py"),
    Kip(320, "Consumers notice that a log was truncated", "simulation/test_known_cases.py"),
    Kip(339, "Settings are changed one by one", "conformance/test_configs.py"),
    Kip(345, "Static members", "clients/test_matrix.py"),
    Kip(354, "`max.compaction.lag.ms`", "storage/test_cleaner.py"),
    Kip(360, "Producers go on after an unknown producer id", "transactions/test_machine.py"),
    Kip(368, "Connections log in anew", "security/test_exchange_like_genuine.py"),
    Kip(380, "Orders to an earlier life of a broker are refused", "cluster/test_fences.py"),
    Kip(390, "Levels of compression", "", "each codec has its default level"),
    Kip(392, "Consumers read from the nearest replica", "cluster/test_nearest_replica.py"),
    Kip(394, "Members get their id before they join", "groups/test_transcripts.py"),
    Kip(405, "Tiered storage"),
    Kip(412, "Levels of loggers while the broker runs", "conformance/test_broker_loggers.py"),
    Kip(429, "Cooperative rebalances", "clients/test_matrix.py"),
    Kip(447, "Exactly once for groups without a producer for each partition", "streams/test_word_count.py"),
    Kip(455, "Reassignments by request", "tools/test_same_output_clusters.py"),
    Kip(460, "Elections by request", "tools/test_same_output_clusters.py"),
    Kip(464, "Topics with the broker's numbers of partitions and replicas", "conformance/test_topics.py"),
    Kip(467, "The refused record is named", "conformance/test_bad_inputs.py"),
    Kip(482, "Flexible versions and tagged fields", "protocol/test_against_kafka.py"),
    Kip(496, "OffsetDelete", "conformance/test_groups.py"),
    Kip(497, "In-sync replicas are changed through the controller", "cluster/test_isr_proposals.py"),
    Kip(500, "KRaft", "", "clusters are on ZooKeeper, or on the store of `--brokers` and `--processes`"),
    Kip(511, "Names and versions of clients", "conformance/test_cluster.py"),
    Kip(516, "Ids of topics", "conformance/test_topics.py"),
    Kip(534, "Tombstones and markers go in time", "storage/test_cleaner.py"),
    Kip(546, "Quotas by request", "conformance/test_client_quotas.py"),
    Kip(554, "SCRAM credentials by request", "conformance/test_scram_credentials.py"),
    Kip(584, "Features of a cluster", "cluster/test_features.py"),
    Kip(588, "Producers go on after a transaction that took too long", "transactions/test_late.py"),
    Kip(599, "Quotas of topics made and deleted", "quotas/test_clients.py"),
    Kip(612, "Limits of connections", "quotas/test_clients.py"),
    Kip(651, "Certificates and keys as PEM", "security/test_key_stores.py"),
    Kip(664, "Tools for transactions that hang", "tools/test_same_output.py"),
    Kip(699, "Several coordinators in a request", "conformance/test_groups.py"),
    Kip(700, "DescribeCluster", "conformance/test_cluster.py"),
    Kip(709, "Offsets of several groups in a request", "conformance/test_groups.py"),
    Kip(714, "Metrics of clients", "telemetry/test_clients.py"),
    Kip(734, "The largest timestamp", "clients/test_matrix.py"),
    Kip(768, "OAUTHBEARER with an issuer of tokens", "security/oauth/test_against_kafka.py"),
    Kip(800, "Members say why they leave", "groups/test_records.py"),
    Kip(827, "Space of disks", "restart/test_log_dirs.py"),
    Kip(848, "The `consumer` group protocol", api=ApiKey.CONSUMER_GROUP_HEARTBEAT),
    Kip(
        890,
        "Transactions that are verified",
        "transactions/test_version_2.py",
        "part 2 where `kafka.compat.transaction.version=2`",
    ),
    Kip(
        903,
        "Followers of an earlier life do not come into the in-sync replicas",
        "cluster/test_embedded_cluster.py",
    ),
    Kip(932, "Share groups", api=ApiKey.SHARE_GROUP_HEARTBEAT),
    Kip(951, "The new leader is in the answer", "conformance/test_records.py"),
    Kip(966, "DescribeTopicPartitions", "authorization/test_like_genuine.py", "not eligible leader replicas"),
    Kip(1071, "Streams groups", api=ApiKey.STREAMS_GROUP_HEARTBEAT),
)
