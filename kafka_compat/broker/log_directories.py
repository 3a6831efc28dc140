"""Log directories at broker startup: locks, and checks of the broker ID and cluster ID."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_compat.errors import StartupError
from kafka_compat.storage.directories.checkpoints import META_PROPERTIES
from kafka_compat.storage.directories.directory_claim import stored_meta_properties
from kafka_compat.storage.directories.directory_names import RETURNING
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.storage.directories.log_dirs import LoadReport, LogDirs

log = logging.getLogger(__name__)


def lock(log_dirs: LogDirs) -> None:
    """Lock the directories. Raises StartupError if another process uses any of them, or if none is usable."""
    try:
        log_dirs.lock()
    except (StorageError, OSError) as error:
        raise StartupError(str(error)) from error
    if len(log_dirs.offline) == len(log_dirs.directories):
        raise StartupError("no directory of log.dirs is usable: " + "; ".join(map(str, log_dirs.failures)))


def finish_return(log_dirs: LogDirs) -> None:
    """Complete an interrupted restore of a snapshot, if any. Raises StartupError if this fails."""
    first = log_dirs.directories[0]
    if os.path.exists(f"{first}/{RETURNING}"):
        from kafka_compat.storage.directories import saved_states

        try:
            saved_states.finish_return(log_dirs.directories)
        except OSError as error:
            raise StartupError(
                f"cannot restore the snapshot named in {first}/{RETURNING}: {error}"
            ) from error


def claim(log_dirs: LogDirs, config: BrokerConfig) -> str | None:
    """Check that the log directories belong to this broker. Return their cluster ID, or None if they are new.

    If broker.id is not configured, `config` gets the ID in meta.properties. Raises StartupError on conflicts.
    """
    for directory in log_dirs.directories:
        check_not_of_cluster(directory, config)
    try:
        stored = stored_meta_properties(log_dirs.directories)
    except (StorageError, OSError) as error:
        raise StartupError(str(error)) from error
    _check(stored, ", ".join(log_dirs.directories), config)
    if not config.has_broker_id and stored.get("broker.id", "").isdecimal():
        # broker.id is not configured: use the ID of the broker that owns the directories.
        config.adopt_broker_id(int(stored["broker.id"]))
    return stored.get("cluster.id")


def check_not_of_cluster(directory: str, config: BrokerConfig) -> None:
    """Raise StartupError if brokers that one command started (--brokers, --processes) use the directory:
    their directories would be taken for partitions of a topic.
    """
    ids = {1, config.broker_id} if config.has_broker_id else {1}
    for broker_id in sorted(ids):
        of_broker = os.path.join(directory, f"broker-{broker_id}")
        if os.path.exists(os.path.join(of_broker, META_PROPERTIES)):
            raise StartupError(
                f"log.dirs={directory} belongs to several brokers (it contains {of_broker}): start them with "
                "--processes or --brokers, as before, or choose other log.dirs"
            )


def _check(stored: Mapping[str, str], paths: str, config: BrokerConfig) -> None:
    if stored.get("version", "0") != "0" and config.quorum is None:
        raise StartupError(
            f"{paths} belong to a Kafka in KRaft mode (meta.properties has version={stored['version']}), "
            "whose directories this broker cannot open: choose other log.dirs"
        )
    if config.has_broker_id and stored.get("broker.id", "") not in ("", str(config.broker_id)):
        raise StartupError(
            f"{paths} belong to broker.id={stored['broker.id']}, but this broker has "
            f"broker.id={config.broker_id}: use the same ID or other log.dirs"
        )


def load(log_dirs: LogDirs, *, keep_gaps: bool) -> LoadReport:
    """Open all logs, and log any problems. Raises StartupError if this fails."""
    try:
        report = log_dirs.load(keep_gaps=keep_gaps)
    except StorageError as error:
        raise StartupError(str(error)) from error
    if not report.clean:
        checked = report.log_count, report.recovered_bytes
        log.warning("Recovered from an unclean shutdown (logs checked: %d, bytes checked: %d)", *checked)
    for directory in report.offline:
        log.error("Log directory %s is offline: check the disk", directory)
    return report
