"""The most requested Kafka Improvement Proposals: which are supported, and which test verifies each."""

from __future__ import annotations

from typing import NamedTuple

from kafka_compat.protocol.api_keys import ApiKey


class Kip(NamedTuple):
    """One proposal. `shown_by` is a test, relative to tests/; without one the proposal is not supported.

    `api`: if set, the proposal is supported exactly when this API is served.
    """

    number: int
    what: str
    shown_by: str = ""
    note: str = ""
    api: ApiKey | None = None


KIPS = (
    Kip(11, "Access control lists", "security/acls/test_mixed_cluster.py"),
    Kip(13, "Byte-rate quotas", "quotas/test_clients.py"),
    Kip(31, "Relative offsets in compressed batches", "interop/test_old_formats.py"),
    Kip(32, "Record timestamps; `message.timestamp.type`", "clients/test_matrix.py"),
    Kip(33, "Time index", "storage/segments/test_indexes.py"),
    Kip(35, "ApiVersions", "clients/test_matrix.py"),
    Kip(36, "Rack-aware replica assignment", "cluster/test_assignment.py"),
    Kip(43, "Several SASL mechanisms", "security/test_secured_clients.py"),
    Kip(48, "Delegation tokens", "security/tokens/test_token_requests.py"),
    Kip(55, "Quotas for authenticated users", "broker/test_quota_enforcement.py"),
    Kip(62, "Rebalance timeout separate from the session timeout", "groups/classic/test_transcripts.py"),
    Kip(73, "Replication quotas", "replication/test_replication_quota.py"),
    Kip(74, "Size limit for a Fetch response", "conformance/test_records.py"),
    Kip(82, "Record headers", "clients/test_matrix.py"),
    Kip(84, "SCRAM-SHA-256 and SCRAM-SHA-512", "security/sasl/test_scram.py"),
    Kip(98, "Idempotence and transactions", "transactions/test_clients.py"),
    Kip(101, "Truncation by leader epoch", "simulation/test_known_cases.py"),
    Kip(103, "Separate listeners for clients and brokers", "security/test_inter_broker_security.py"),
    Kip(107, "DeleteRecords", "replication/test_delete_records.py"),
    Kip(110, "zstd compression", "storage/records/test_compression.py"),
    Kip(112, "Disk failure takes only its partitions offline", "disks/test_faults.py"),
    Kip(113, "Replica movement between log directories", "disks/test_moves.py"),
    Kip(124, "Request time quotas", "quotas/test_throttle_times.py"),
    Kip(133, "DescribeConfigs and AlterConfigs", "conformance/test_configs.py"),
    Kip(134, "`group.initial.rebalance.delay.ms`", "groups/classic/test_transcripts.py"),
    Kip(152, "SASL authentication errors in responses", "security/test_sasl_conversations.py"),
    Kip(211, "Offsets expire only after the group is empty", "groups/test_coordinator.py"),
    Kip(219, "Immediate responses to throttled clients", "quotas/test_throttle_times.py"),
    Kip(226, "Dynamic broker configuration", "config/test_config_manager.py"),
    Kip(227, "Fetch sessions", "replication/test_fetch_session.py"),
    Kip(255, "OAUTHBEARER", "security/oauth/test_listener.py"),
    Kip(279, "Truncation after fast leader failover", "simulation/test_known_cases.py"),
    Kip(290, "Prefixed ACLs", "security/acls/test_rules.py"),
    Kip(320, "Detection of log truncation by consumers", "simulation/test_known_cases.py"),
    Kip(339, "IncrementalAlterConfigs", "conformance/test_configs.py"),
    Kip(345, "Static membership", "clients/test_matrix.py"),
    Kip(354, "`max.compaction.lag.ms`", "storage/compaction/test_cleaner.py"),
    Kip(360, "Producer recovery from UNKNOWN_PRODUCER_ID", "transactions/test_machine.py"),
    Kip(368, "SASL re-authentication", "security/test_sasl_conversations.py"),
    Kip(380, "Requests with a stale broker epoch are rejected", "cluster/test_epoch_fencing.py"),
    Kip(390, "Compression levels", "storage/records/test_validation.py"),
    Kip(392, "Fetching from the closest replica", "cluster/test_nearest_replica.py"),
    Kip(394, "Member id required to join a group", "groups/classic/test_transcripts.py"),
    Kip(405, "Tiered storage"),
    Kip(412, "Dynamic log levels", "conformance/test_broker_loggers.py"),
    Kip(429, "Incremental cooperative rebalancing", "clients/test_matrix.py"),
    Kip(447, "Exactly-once semantics with one producer per group member", "streams/test_word_count.py"),
    Kip(455, "Reassignment API", "tools/test_same_output_clusters.py"),
    Kip(460, "Leader election API", "tools/test_same_output_clusters.py"),
    Kip(464, "Broker defaults for partitions and replicas in CreateTopics", "conformance/test_topics.py"),
    Kip(467, "Per-record errors in Produce responses", "conformance/test_bad_inputs.py"),
    Kip(482, "Flexible versions and tagged fields", "protocol/messages/test_against_kafka.py"),
    Kip(496, "OffsetDelete", "conformance/test_groups.py"),
    Kip(497, "AlterPartition: ISR changes through the controller", "cluster/test_isr_proposals.py"),
    Kip(
        500,
        "KRaft: clusters without ZooKeeper",
        "quorum/test_quorum_cluster.py",
        "a quorum of kafka-compat's nodes only: its metadata log has records of its own",
    ),
    Kip(511, "Client names and versions", "conformance/test_cluster.py"),
    Kip(516, "Topic ids", "conformance/test_topics.py"),
    Kip(534, "Timely removal of tombstones and transaction markers", "storage/compaction/test_cleaner.py"),
    Kip(546, "Client quota APIs", "conformance/test_client_quotas.py"),
    Kip(554, "SCRAM credential API", "conformance/test_scram_credentials.py"),
    Kip(584, "Feature versioning", "cluster/test_features.py"),
    Kip(588, "Producer recovery from transaction timeouts", "transactions/test_late_requests.py"),
    Kip(595, "Raft: the protocol of the metadata quorum", "quorum/test_genuine_kafka.py"),
    Kip(599, "Quotas for topic creation and deletion", "quotas/test_clients.py"),
    Kip(612, "Connection creation rate limits", "quotas/test_clients.py"),
    Kip(651, "PEM certificates and keys", "security/test_key_stores.py"),
    Kip(664, "Tools for hanging transactions", "tools/test_same_output.py"),
    Kip(699, "Several coordinators in one FindCoordinator request", "conformance/test_groups.py"),
    Kip(700, "DescribeCluster", "conformance/test_cluster.py"),
    Kip(709, "Several groups in one OffsetFetch request", "conformance/test_groups.py"),
    Kip(714, "Client metrics", "telemetry/test_clients.py"),
    Kip(734, "ListOffsets by maximum timestamp", "clients/test_matrix.py"),
    Kip(768, "OAUTHBEARER with an OIDC token issuer", "security/oauth/test_token_validation.py"),
    Kip(800, "Reasons in JoinGroup and LeaveGroup", "groups/test_records.py"),
    Kip(827, "Disk space in DescribeLogDirs", "restart/test_log_dirs.py"),
    Kip(848, "The `consumer` group protocol", "groups/consumer/test_histories.py"),
    Kip(853, "Adding and removing voters of the quorum", "quorum/test_voter_changes.py"),
    Kip(
        890,
        "Transaction verification",
        "transactions/test_version_2.py",
        "part 2 at level 2 of transaction.version",
    ),
    Kip(
        903,
        "Replicas with a stale broker epoch do not join the ISR",
        "cluster/test_embedded_cluster.py",
    ),
    Kip(
        932,
        "Share groups",
        "conformance/test_share_groups.py",
        "`tests/groups/share`, `tests/share_partitions`, `tests/share_coordinator` and `tests/share_groups` "
        "compare histories, stored states and clients",
        api=ApiKey.SHARE_GROUP_HEARTBEAT,
    ),
    Kip(951, "New leader in Produce and Fetch responses", "conformance/test_records.py"),
    Kip(
        966,
        "DescribeTopicPartitions",
        "authorization/test_against_kafka.py",
        "without eligible leader replicas",
    ),
    Kip(996, "Pre-vote in elections of the quorum", "coordination/raft/test_elections.py"),
    Kip(1071, "Streams groups", api=ApiKey.STREAMS_GROUP_HEARTBEAT),
)
