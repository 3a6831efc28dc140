"""Log directories of a node in KRaft mode: meta.properties, formatting, and directories of Apache Kafka.

Rules
1. meta.properties has version 1 with node.id, cluster.id and directory.id, as `kafka-storage format` writes
   it. The file of a broker that used ZooKeeper has version 0 with broker.id; it is accepted and kept, with
   node.id and directory.id added, so that the broker can return to ZooKeeper.
2. Nothing is changed before all directories have been checked.
3. A metadata log of Apache Kafka is refused and left untouched, because its records are Kafka's. Our log is
   marked by the file OWN_LOG, because a voter of ours may have records of Kafka's leader in its log.
4. A directory that was only formatted by Apache Kafka is accepted: its metadata log consists of the snapshot
   0-0, which contains only feature levels and voters. Feature levels do not apply here. Users in that
   snapshot (`--add-scram`) would be lost, so such a directory is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID, uuid4

from kafka_compat.quorum.checkpoints import BOOTSTRAP, Checkpoints, file_name
from kafka_compat.storage.directories.checkpoints import (
    META_PROPERTIES,
    decode_topic_id,
    encode_properties,
    encode_topic_id,
)
from kafka_compat.storage.directories.directory_claim import stored_meta_properties
from kafka_compat.storage.directories.directory_names import METADATA_LOG, parse_name
from kafka_compat.storage.errors import CorruptFile, InconsistentMetaProperties
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.segments.segment_files import LOG_SUFFIX

if TYPE_CHECKING:
    from kafka_compat.coordination.raft.values import VoterSet
    from kafka_compat.storage.filesystem import Filesystem

OWN_LOG: Final = "kafka-compat-metadata"
"""Name of the empty file that marks a metadata log as one of this project."""
_FEATURE_LEVEL: Final = 12
_RESERVED_IDS: Final = 100
"""Kafka reserves the directory IDs below this number."""


class MetaProperties(NamedTuple):
    """The content of meta.properties. Fields are None if the file does not have them."""

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: UUID | None


class NodeDirectories(NamedTuple):
    """The log directories of a node. `unformatted` contains those without meta.properties."""

    cluster_id: str | None
    properties: Mapping[str, MetaProperties]
    unformatted: Sequence[str]


def new_directory_id() -> UUID:
    """Return a random directory ID. As with Kafka's IDs, its text does not begin with a dash."""
    while True:
        directory_id = uuid4()
        if directory_id.int >= _RESERVED_IDS and not encode_topic_id(directory_id).startswith("-"):
            return directory_id


def read_properties(directory: str, filesystem: Filesystem | None = None) -> MetaProperties | None:
    """Read meta.properties, or return None if it is missing. Raises InconsistentMetaProperties."""
    stored = stored_meta_properties([directory], filesystem)
    if not stored:
        return None
    path = f"{directory}/{META_PROPERTIES}"
    version = int(stored.get("version", "0"))
    if version not in (0, 1):
        raise InconsistentMetaProperties(f"{path} has version={version}, but only 0 and 1 are supported")
    node_id = stored.get("node.id") or stored.get("broker.id")
    directory_id = stored.get("directory.id")
    try:
        return MetaProperties(
            version,
            int(node_id) if node_id else None,
            stored.get("cluster.id"),
            decode_topic_id(directory_id) if directory_id else None,
        )
    except ValueError:
        raise InconsistentMetaProperties(
            f"{path} has directory.id={directory_id}, which is not a UUID in base64: restore the file"
        ) from None


def check_directories(
    directories: Sequence[str],
    metadata_directory: str,
    node_id: int,
    cluster_id: str | None,
    filesystem: Filesystem | None = None,
) -> NodeDirectories:
    """Check that all log directories belong to this node, or are empty, without changing them.

    `cluster_id` is the configured ID, or None if it is unknown. Raises InconsistentMetaProperties.
    """
    files = filesystem or RealFilesystem()
    found: dict[str, MetaProperties] = {}
    unformatted = []
    for directory in dict.fromkeys((*directories, metadata_directory)):
        properties = read_properties(directory, files)
        if properties is None:
            unformatted.append(directory)
            continue
        found[directory] = properties
        path = f"{directory}/{META_PROPERTIES}"
        if properties.node_id not in (None, node_id):
            raise InconsistentMetaProperties(
                f"{path} belongs to node.id={properties.node_id}, but this node has node.id={node_id}: use "
                "the same ID or other log.dirs"
            )
        if cluster_id is None:
            cluster_id = properties.cluster_id
        elif properties.cluster_id not in (None, cluster_id):
            raise InconsistentMetaProperties(
                f"{path} belongs to the cluster {properties.cluster_id}, but this node belongs to the "
                f"cluster {cluster_id}: use the same cluster ID or other log.dirs"
            )
    is_ours = files.exists(f"{metadata_directory}/{METADATA_LOG}/{OWN_LOG}")
    reason = why_kafkas(metadata_directory, files)
    if reason is not None:
        raise InconsistentMetaProperties(
            f"{reason}. This node cannot open the metadata of Apache Kafka: choose other log.dirs"
        )
    if not is_ours:
        for directory, properties in found.items():
            if properties.version == 1 and _has_partitions(directory, files):
                raise InconsistentMetaProperties(_without_metadata(directory, metadata_directory))
    return NodeDirectories(cluster_id, found, unformatted)


def why_kafkas(metadata_directory: str, filesystem: Filesystem | None = None) -> str | None:
    """Return why the metadata log in a log directory is one of Apache Kafka that cannot be taken over, or
    None if there is no log, it is ours, or Kafka has only formatted it.
    """
    files = filesystem or RealFilesystem()
    path = f"{metadata_directory}/{METADATA_LOG}"
    if not files.exists(path) or files.exists(f"{path}/{OWN_LOG}"):
        return None
    for name in sorted(files.listdir(path)):
        if name.endswith(LOG_SUFFIX) or name == "quorum-state":
            return f"{path} belongs to a Kafka in KRaft mode (it contains {name})"
        if name.endswith(".checkpoint") and name != file_name(BOOTSTRAP):
            return f"{path} belongs to a Kafka in KRaft mode (it contains {name})"
    bootstrap = f"{path}/{file_name(BOOTSTRAP)}"
    if files.exists(bootstrap):
        try:
            types = {record.type for record in Checkpoints.records_of_file(bootstrap, files)}
        except CorruptFile as error:
            return str(error)
        if types - {_FEATURE_LEVEL}:
            return (
                f"{bootstrap} was written by Kafka's kafka-storage and contains records of the types "
                f"{sorted(types)}, of which only {_FEATURE_LEVEL} (feature levels) can be ignored"
            )
    return None


def _without_metadata(directory: str, metadata_directory: str) -> str:
    return (
        f"{directory} contains partitions, but {metadata_directory} (metadata.log.dir) contains no metadata "
        "log: it was deleted, or the partitions belong to Apache Kafka in KRaft mode, whose directories this "
        "node cannot open. Restore the metadata log, or choose other log.dirs. If the partitions belong to "
        "this node and other voters have the metadata, create the empty file "
        f"{metadata_directory}/{METADATA_LOG}/{OWN_LOG}: the node then fetches the metadata from them"
    )


def _has_partitions(directory: str, files: Filesystem) -> bool:
    names = files.listdir(directory) if files.exists(directory) else []
    return any(
        name != METADATA_LOG and parse_name(name) is not None and files.is_directory(f"{directory}/{name}")
        for name in names
    )


def claim_metadata_log(metadata_directory: str, filesystem: Filesystem | None = None) -> None:
    """Create the directory of the metadata log if it is missing, and mark it as ours. Raises
    InconsistentMetaProperties if it belongs to Apache Kafka, and OSError.
    """
    files = filesystem or RealFilesystem()
    path = f"{metadata_directory}/{METADATA_LOG}"
    if files.exists(f"{path}/{OWN_LOG}"):
        return
    reason = why_kafkas(metadata_directory, files)
    if reason is not None:
        raise InconsistentMetaProperties(f"{reason}: choose another metadata.log.dir")
    files.mkdir(path)
    files.write_file_atomically(f"{path}/{OWN_LOG}", b"")
    files.sync_directory(metadata_directory)


def write_properties(
    directory: str,
    node_id: int,
    cluster_id: str,
    directory_id: UUID | None = None,
    filesystem: Filesystem | None = None,
) -> MetaProperties:
    """Write meta.properties durably, and create the directory if it is missing. A directory ID in the file is
    kept; otherwise `directory_id` (default: a random ID) is written. Raises OSError.
    """
    files = filesystem or RealFilesystem()
    stored = read_properties(directory, files)
    if stored is not None and stored.directory_id is not None:
        directory_id = stored.directory_id
    directory_id = directory_id or new_directory_id()
    version = stored.version if stored is not None else 1
    lines = {"broker.id": str(node_id)} if version == 0 else {}
    lines |= {
        "node.id": str(node_id),
        "directory.id": encode_topic_id(directory_id),
        "version": str(version),
        "cluster.id": cluster_id,
    }
    if not files.exists(directory):
        files.mkdir(directory)
        files.sync_directory(os.path.dirname(os.path.abspath(directory)))
    files.write_file_atomically(f"{directory}/{META_PROPERTIES}", encode_properties(lines))
    return MetaProperties(version, node_id, cluster_id, directory_id)


def prepare(
    found: NodeDirectories,
    node_id: int,
    cluster_id: str,
    filesystem: Filesystem | None = None,
) -> dict[str, UUID]:
    """Write meta.properties where it is missing or has no directory ID, once the cluster ID is known. `found`
    is the result of `check_directories`. Returns the ID of each directory. Raises OSError.
    """
    ids: dict[str, UUID] = {}
    for directory in (*found.properties, *found.unformatted):
        properties = found.properties.get(directory)
        if properties is None or properties.directory_id is None or properties.cluster_id is None:
            properties = write_properties(directory, node_id, cluster_id, filesystem=filesystem)
        assert properties.directory_id is not None
        ids[directory] = properties.directory_id
    return ids


def write_bootstrap(
    metadata_directory: str, voters: VoterSet, now_ms: int, filesystem: Filesystem | None = None
) -> None:
    """Create the metadata log with the snapshot 0-0, which contains the first voters (KIP-853). Raises
    OSError, and InconsistentMetaProperties if the log belongs to Apache Kafka.
    """
    claim_metadata_log(metadata_directory, filesystem)
    checkpoints = Checkpoints(f"{metadata_directory}/{METADATA_LOG}", lambda: now_ms, filesystem)
    with checkpoints.write(BOOTSTRAP, timestamp_ms=0, voters=voters) as writing:
        writing.complete()
