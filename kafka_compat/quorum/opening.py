"""Startup of a quorum node: its directory, its log and its election state, as the Raft machine needs them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from kafka_compat.coordination.raft.log_state import LogState
from kafka_compat.coordination.raft.machine import RaftMachine
from kafka_compat.coordination.raft.values import RaftSettings, ReplicaKey, Voter
from kafka_compat.quorum.election_file import ElectionFile
from kafka_compat.quorum.metadata_log import MetadataLog
from kafka_compat.quorum.node import QuorumNode
from kafka_compat.quorum.requests import Local
from kafka_compat.quorum.snapshots import SnapshotSettings
from kafka_compat.storage.directories.directory_worker import ThreadWorker

if TYPE_CHECKING:
    import asyncio
    from uuid import UUID

    from kafka_compat.config.quorum import QuorumConfig
    from kafka_compat.quorum.requests import Endpoints
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.filesystem import Filesystem


def open_node(
    config: QuorumConfig,
    cluster_id: str,
    directory_id: UUID,
    endpoints: Endpoints,
    clock: Clock,
    filesystem: Filesystem,
    loop: asyncio.AbstractEventLoop,
) -> QuorumNode:
    """Open the log in metadata.log.dir, and return the node, which is not started yet. `endpoints` are the
    addresses of this node's controller listeners. Raises CorruptFile or OSError.
    """
    metadata_log = MetadataLog.open(
        config.metadata_log_dir,
        clock,
        filesystem,
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
    )
    static_ids = config.voters if config.is_static else None
    elections = ElectionFile(metadata_log.directory, static_ids, filesystem)
    key = ReplicaKey(config.node_id, directory_id)
    found = metadata_log.found()
    machine = RaftMachine(
        key,
        {
            node_id: Voter(ReplicaKey(node_id), {config.listener_name: address})
            for node_id, address in config.voters.items()
        },
        RaftSettings(
            config.election_timeout_ms,
            config.election_backoff_max_ms,
            config.fetch_timeout_ms,
            config.request_timeout_ms,
            config.retry_backoff_ms,
            config.append_linger_ms,
        ),
        elections.load(),
        LogState(found.start, found.end_offset, found.epochs, found.snapshot, found.voter_sets),
        random.Random(),
    )
    return QuorumNode(
        Local(key, cluster_id, endpoints),
        machine,
        metadata_log,
        elections,
        metadata_log.checkpoints,
        ThreadWorker(f"metadata log of node {config.node_id}", loop.call_soon_threadsafe),
        SnapshotSettings(
            config.snapshot_max_new_record_bytes,
            config.snapshot_max_interval_ms,
            config.max_retention_bytes,
            config.max_retention_ms,
        ),
        joins_voters=config.auto_join,
    )
