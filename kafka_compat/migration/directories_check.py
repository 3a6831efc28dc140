"""Check of a broker's log directories: owner, format, checkpoint files and partition directories. Read-only.

The directories can be checked while their broker runs, or as a copy on another machine.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.migration.findings import MIRROR, Finding, Level, named
from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.directories.directory_claim import stored_meta_properties, why_unusable
from kafka_compat.storage.directories.directory_names import (
    DELETE_SUFFIX,
    METADATA_LOG,
    STRAY_SUFFIX,
    is_future,
    parse_name,
)
from kafka_compat.storage.errors import CorruptFile, InconsistentMetaProperties

if TYPE_CHECKING:
    from uuid import UUID

AREA: Final = "directories"


class CheckedDirectories(NamedTuple):
    """What the log directories of one broker contain, and the findings. The IDs are None if no directory
    contains them, and `topic_ids` has the IDs of the topics whose partition directories name one.
    """

    broker_id: int | None
    cluster_id: str | None
    topic_ids: Mapping[str, UUID]
    findings: list[Finding]


class _Directory(NamedTuple):
    path: str
    properties: Mapping[str, str]
    findings: list[Finding]


def check_directories(paths: Sequence[str], broker: int | None) -> CheckedDirectories:
    """Check the log directories of a broker. `broker` is its broker.id, or None if the settings have none."""
    found: list[Finding] = []
    owners: dict[str, dict[str, str]] = {"broker.id": {}, "cluster.id": {}}
    topic_ids: dict[str, UUID] = {}
    absent = []
    for path in paths:
        if not os.path.isdir(path):
            absent.append(path)
            continue
        properties: dict[str, str] = {}
        try:
            properties = stored_meta_properties([path])
        except InconsistentMetaProperties as error:
            found.append(Finding(broker, Level.CHANGE, AREA, str(error), "restore the file from a backup"))
        for name, values in owners.items():
            if name in properties:
                values[path] = properties[name]
        found += _check(path, properties, broker, topic_ids)
    found += _absent(absent, paths, broker)
    for name, values in owners.items():
        if len({*values.values()}) > 1:
            texts = named(f"{value} in {path}" for path, value in values.items())
            remedy = "expected the same value in the meta.properties of all log.dirs"
            found.append(Finding(broker, Level.CHANGE, AREA, f"{name} differs: {texts}", remedy))
    owner = next(iter(owners["broker.id"].values()), "")
    owner_id = int(owner) if owner.isdecimal() else None
    if broker is not None and owner_id not in (None, broker):
        text = f"meta.properties has broker.id={owner_id}, but the settings have broker.id={broker}"
        found.append(
            Finding(broker, Level.CHANGE, AREA, text, f"expected broker.id={owner_id}, or other log.dirs")
        )
    cluster_id = next(iter(owners["cluster.id"].values()), None)
    if broker is None and owner_id is not None:
        found = [finding._replace(broker=owner_id) for finding in found]
    return CheckedDirectories(owner_id, cluster_id, topic_ids, found)


def _absent(absent: Sequence[str], paths: Sequence[str], broker: int | None) -> Iterator[Finding]:
    if not absent:
        return
    if len(absent) < len(paths):
        # The other disks are here, so these have failed or are not mounted.
        text = f"{named(absent)}: the directory is missing, the other log.dirs exist"
        remedy = (
            "mount or replace the disk, and wait until its replicas are in sync, or remove it from log.dirs"
        )
        yield Finding(broker, Level.CHANGE, AREA, text, remedy)
    else:
        text = f"{named(absent)}: not on this machine, so the directories were not checked"
        remedy = "run the check on the broker's machine, or skip them with --skip directories"
        yield Finding(broker, Level.UNCHECKED, AREA, text, remedy)


def _check(
    path: str, properties: Mapping[str, str], broker: int | None, topic_ids: dict[str, UUID]
) -> Iterator[Finding]:
    def finding(level: Level, text: str, remedy: str = "") -> Finding:
        return Finding(broker, level, AREA, text, remedy)

    version = properties.get("version", "0")
    if version != "0":
        yield finding(
            Level.CHANGE, f"{path}/meta.properties has version={version}: a node in KRaft mode", MIRROR
        )
        return
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        yield finding(Level.CHANGE, why_unusable(path, error), "let the user of the broker read and write it")
        return
    if METADATA_LOG in names:
        text = f"{path}/{METADATA_LOG}: the metadata log of a node in KRaft mode"
        yield finding(Level.CHANGE, text, "finish or undo Kafka's migration to KRaft")
    if not os.access(path, os.W_OK | os.X_OK):
        text = f"{path}: user {os.geteuid()} cannot write in it"
        yield finding(Level.CHANGE, text, "give the directory to the user that will run kafka-compat")
    if not properties and names:
        text = f"{path} has files, but no meta.properties"
        yield finding(Level.DIFFERS, text, "none needed if the directory belongs to this broker")
    for name in checkpoints.OFFSETS:
        if name in names:
            yield from _checkpoint(f"{path}/{name}", broker)
    yield from _partitions(path, names, broker, topic_ids)
    is_used = checkpoints.LOCK in names and _is_locked(f"{path}/{checkpoints.LOCK}")
    if is_used:
        yield finding(Level.INFO, f"{path} is in use: stop its broker before you start kafka-compat")
    elif checkpoints.CLEAN_SHUTDOWN not in names and properties:
        text = f"{path} has no {checkpoints.CLEAN_SHUTDOWN}: the broker was killed"
        remedy = "none needed: the first startup checks the last segments, which takes longer"
        yield finding(Level.DIFFERS, text, remedy)


def _checkpoint(path: str, broker: int | None) -> Iterator[Finding]:
    try:
        with open(path, "rb") as file:
            checkpoints.decode_offsets(file.read())
    except (CorruptFile, OSError) as error:
        remedy = "start Kafka once more, stop it cleanly, and check again"
        yield Finding(broker, Level.CHANGE, AREA, f"{path}: {error}", remedy)


def _partitions(
    path: str, names: Sequence[str], broker: int | None, topic_ids: dict[str, UUID]
) -> Iterator[Finding]:
    logs, moving, leftover, other = 0, [], [], []
    for name in names:
        if not os.path.isdir(f"{path}/{name}"):
            continue
        if is_future(name):
            moving.append(name)
        elif name.endswith((DELETE_SUFFIX, STRAY_SUFFIX)):
            leftover.append(name)
        elif (partition := parse_name(name)) is not None and name != METADATA_LOG:
            logs += 1
            try:
                with open(f"{path}/{name}/{checkpoints.PARTITION_METADATA}", "rb") as file:
                    topic_ids[partition[0]] = checkpoints.decode_partition_metadata(file.read())
            except FileNotFoundError:
                pass  # The topic was created before Kafka 2.8.
            except (CorruptFile, OSError) as error:
                text = f"{path}/{name}/{checkpoints.PARTITION_METADATA}: {error}"
                remedy = "remove the file: the broker writes it again with the ID that the controller sends"
                yield Finding(broker, Level.CHANGE, AREA, text, remedy)
        elif name not in (METADATA_LOG, "lost+found"):
            other.append(name)
    yield Finding(broker, Level.INFO, AREA, f"{path}: {logs} partitions")
    if moving:
        text = f"{path}: replicas are being moved between log directories: {named(moving)}"
        remedy = (
            "wait until kafka-reassign-partitions --verify reports completion, or go on: the move continues"
        )
        yield Finding(broker, Level.DIFFERS, AREA, text, remedy)
    if leftover:
        remedy = "none needed: kafka-compat deletes *-delete at startup, and leaves *-stray alone"
        yield Finding(broker, Level.DIFFERS, AREA, f"{path}: leftover directories: {named(leftover)}", remedy)
    if other:
        remedy = "none needed: the broker leaves directories alone whose names are not those of partitions"
        yield Finding(broker, Level.DIFFERS, AREA, f"{path}: other directories: {named(other)}", remedy)


def _is_locked(path: str) -> bool:
    """Return whether a process holds Kafka's lock. The attempt leaves nothing behind."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        # Java and kafka-compat lock the file with fcntl's record locks.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
