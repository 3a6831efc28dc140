"""Convert a snapshot to a JSON object with stable names and units."""

import time
from collections.abc import Sequence
from typing import Any, Final

from kafka_compat.status.rules import Problem
from kafka_compat.status.snapshot import (
    Broker,
    Group,
    LogDir,
    Migration,
    Partition,
    Quorum,
    Rates,
    Snapshot,
    Topic,
)

VERSION: Final = 1
"""Version of the JSON format. Added fields do not change the version."""


def as_json(snapshot: Snapshot, problems: Sequence[Problem], rates: Rates | None = None) -> dict[str, Any]:
    """Return the snapshot as a JSON-compatible dict, in which None means unknown."""
    return {
        "version": VERSION,
        "time": timestamp(snapshot.time_ms),
        "problems": [problem._asdict() for problem in problems],
        "not_known": list(snapshot.missing),
        "cluster_id": snapshot.cluster_id,
        "is_kraft": snapshot.is_kraft,
        "controller_id": snapshot.controller_id,
        "quorum": None if snapshot.quorum is None else _quorum(snapshot.quorum),
        "migration": None if snapshot.migration is None else _migration(snapshot.migration),
        "brokers": [_broker(each) for each in snapshot.brokers],
        "topics": [_topic(each, rates) for each in snapshot.topics],
        "groups": [_group(each) for each in snapshot.groups],
        "log_dirs": [_log_dir(each) for each in snapshot.log_dirs],
    }


def failure(text: str) -> dict[str, Any]:
    """Return the JSON object that reports that no broker can be reached."""
    return {"version": VERSION, "time": timestamp(int(time.time() * 1000)), "error": text}


def timestamp(time_ms: int) -> str:
    """Format a time in UTC, in ISO 8601 with milliseconds."""
    seconds, left_ms = divmod(time_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{left_ms:03}Z"


def _quorum(quorum: Quorum) -> dict[str, Any]:
    return {
        "leader_id": quorum.leader_id,
        "epoch": quorum.epoch,
        "high_watermark": quorum.high_watermark,
        "error": quorum.error,
        "replicas": [
            {
                "id": each.node_id,
                "is_voter": each.is_voter,
                "lag": each.lag,
                "fetched_before_ms": each.fetched_before_ms,
            }
            for each in quorum.replicas
        ],
    }


def _migration(migration: Migration) -> dict[str, Any]:
    return {"brokers": list(migration.brokers), "target": migration.target}


def _broker(broker: Broker) -> dict[str, Any]:
    return {
        "id": broker.broker_id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "kafka": broker.release,
        "is_up": broker.is_up,
        "fault": broker.fault,
    }


def _topic(topic: Topic, rates: Rates | None) -> dict[str, Any]:
    return {
        "name": topic.name,
        "is_internal": topic.is_internal,
        "min_insync_replicas": topic.min_isr,
        "replication_factor": topic.replication_factor,
        "records": topic.records,
        "records_per_second": None if rates is None else rates.by_topic.get(topic.name),
        "size_bytes": topic.size_bytes,
        "disk_bytes": topic.disk_bytes,
        "partitions": [_partition(each, topic.min_isr) for each in topic.partitions],
    }


def _partition(partition: Partition, min_isr: int | None) -> dict[str, Any]:
    return {
        "partition": partition.number,
        "leader": partition.leader,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "adding_replicas": list(partition.adding),
        "is_under_replicated": partition.is_under_replicated,
        "is_under_min_isr": partition.is_under_min_isr(min_isr),
        "start_offset": partition.start,
        "end_offset": partition.end,
        "size_bytes": partition.size_bytes,
        "disk_bytes": partition.disk_bytes,
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "state": group.state or None,
        "type": group.type.lower() or None,
        "protocol_type": group.protocol_type,
        "coordinator": group.coordinator,
        "epoch": group.epoch,
        "target_epoch": group.target_epoch,
        "members": group.members,
        "lag": group.lag,
        "error": group.error,
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed_offset": each.committed,
                "end_offset": each.end,
                "lag": each.lag,
            }
            for each in group.positions
        ],
    }


def _log_dir(log_dir: LogDir) -> dict[str, Any]:
    return {
        "broker": log_dir.broker_id,
        "path": log_dir.path,
        "replicas": log_dir.replicas,
        "replica_bytes": log_dir.replica_bytes,
        "total_bytes": log_dir.total_bytes,
        "usable_bytes": log_dir.usable_bytes,
        "error": log_dir.error,
    }
